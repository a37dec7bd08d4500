#include "framework/runtime/progress.hpp"

#include <algorithm>

#include "framework/base/console.hpp"
#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/plan/layer_names.hpp"

namespace altiplano {

std::string banner_text(const Job& job, const BannerFacts& facts) {
  const Plan& plan = job.plan;
  Bytes peak;
  for (Bytes bytes : plan.predicted.peak_memory) peak = std::max(peak, bytes);
  std::string text = fmt::format("altiplano {}   {} on {}, comm {}, device {}, {} a rank\n", ALTIPLANO_VERSION,
                                 counted(job.num_ranks, "rank"), facts.host, facts.comm, facts.device,
                                 counted(facts.threads, "thread"));
  text +=
      fmt::format("model     {}, {}, {}          data  {}, {}\n", job.graph->graph.name,
                  counted(num_parameters(job.graph->graph), "parameter"), layers_in_words(job.graph->graph.layers()),
                  facts.data_name, counted(facts.training_tokens, "token"));
  text += fmt::format("batch     {} = micro {} x accumulate {} x data {}   plan  {}   ({} in {}, verified)\n",
                      plan.global_batch, plan.microbatch, plan.num_microbatches, plan.data_degree(), plan_summary(plan),
                      job.plan_was_given ? "read" : "planned", to_string(job.planning_time));
  if (!job.placement.empty()) text += fmt::format("placement {}\n", job.placement);
  text += fmt::format("memory    {} on the fullest rank predicted            checkpoints  {}, at most {} each, {} free",
                      to_string(peak), facts.checkpoint_directory, to_string(facts.checkpoint_bytes),
                      to_string(facts.free_bytes));
  return text;
}

std::string start_line(int64_t first_step, int64_t max_steps, Seconds predicted) {
  return fmt::format("start     step {} of {}; predicted {} a step, an estimate that counts no warming up", first_step,
                     max_steps, to_string(predicted));
}

std::string step_line(const StepMetrics& m, int64_t max_steps, Bytes memory, Seconds eta) {
  std::string mib = fmt::format("{:.1f}MiB", static_cast<double>(memory.value) / (1 << 20));
  std::string width = std::to_string(max_steps);
  return fmt::format("step: {:>{}}/{}  loss: {:.4f}  grad_norm: {:.4f}  lr: {:.2e}  tps: {}  memory: {}  eta: {}{}",
                     m.step, width.size(), max_steps, m.loss, m.gradient_norm, m.learning_rate,
                     with_thousands(static_cast<int64_t>(m.tokens_per_second)), mib, hours_minutes_seconds(eta),
                     m.skipped ? "  skipped: not finite" : "");
}

Progress::Progress(int64_t first_step, int64_t max_steps, int64_t log_every, int columns, Bytes memory)
    : first_step_(first_step), max_steps_(max_steps), log_every_(log_every), columns_(columns), memory_(memory) {}

void Progress::step(const StepMetrics& metrics) {
  seconds_ += metrics.seconds;
  double per_step = seconds_ / static_cast<double>(metrics.step - first_step_ + 1);
  Seconds eta(per_step * static_cast<double>(max_steps_ - metrics.step));
  if (metrics.step % log_every_ == 0 || metrics.step == max_steps_ || metrics.step == first_step_ || metrics.skipped) {
    clear_bar();
    print_out("{}\n", step_line(metrics, max_steps_, memory_, eta));
  }
  if (columns_ > 0) draw_bar(metrics.step, eta);
  flush_out();
}

void Progress::note(const std::string& text) {
  clear_bar();
  print_out("{}\n", text);
  flush_out();
}

void Progress::draw_bar(int64_t step, Seconds eta) {
  std::string tail = fmt::format(" {}/{}  eta {}", step, max_steps_, hours_minutes_seconds(eta));
  int width = std::max(0, std::min(columns_ - 3, 80) - static_cast<int>(tail.size()));
  int full = max_steps_ > 0 ? static_cast<int>(width * step / max_steps_) : 0;
  print_out("\r[{}{}]{}", std::string(static_cast<size_t>(full), '#'),
            std::string(static_cast<size_t>(width - full), '.'), tail);
  bar_is_drawn_ = true;
  if (step == max_steps_) clear_bar();
}

void Progress::clear_bar() {
  if (bar_is_drawn_) print_out("\r\033[K");
  bar_is_drawn_ = false;
}

}  // namespace altiplano
