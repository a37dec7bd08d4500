#include "framework/cli/plan_choice.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/cli/simulation_text.hpp"

namespace altiplano {

namespace {

/// Better: it fits, is faster (or, where neither fits, smaller).
bool is_better(const ConsideredPlan& a, const ConsideredPlan& b) {
  if (a.fits != b.fits) return a.fits;
  return a.fits ? a.plan.predicted.step < b.plan.predicted.step : a.peak < b.peak;
}

/// Each kind of plan once, with the best shardings that were tried; best first. What was estimated for all ranks counts
/// before what was for some.
std::vector<ConsideredPlan> distinct_plans(const Job& job) {
  std::map<std::string, ConsideredPlan> by_kind;
  for (const ConsideredPlan& plan : job.considered) {
    const auto [known, is_new] = by_kind.try_emplace(plan_in_words(plan.plan), plan);
    const bool is_surer = known->second.is_preview && !plan.is_preview;
    const bool is_less_sure = plan.is_preview && !known->second.is_preview;
    if (!is_new && (is_surer || (!is_less_sure && is_better(plan, known->second)))) known->second = plan;
  }
  std::vector<ConsideredPlan> plans;
  for (auto& [kind, plan] : by_kind) plans.push_back(std::move(plan));
  std::ranges::stable_sort(plans, is_better);
  return plans;
}

std::string percent(Seconds step, Seconds of) {
  return fmt::format("{:+.0f} %", 100 * (step.value / std::max(of.value, 1e-300) - 1));
}

std::string with_sign(Seconds difference) {
  constexpr double kRounding = 1e-10;  // of sums that ought to be equal
  if (std::abs(difference.value) < kRounding) return "+0 us";
  return (difference < Seconds(0) ? "-" : "+") + to_string(Seconds(std::abs(difference.value)));
}
std::string with_sign(Bytes difference) {
  return (difference < Bytes(0) ? "-" : "+") + to_string(Bytes(std::abs(difference.value)));
}

/// Where the other plan's time differs, by what makes a step.
Result<std::string> differences(const Job& job, const Plan& other) {
  ALTIPLANO_ASSIGN(const ProgramSimulation mine, simulate_for(job, job.plan));
  ALTIPLANO_ASSIGN(const ProgramSimulation theirs, simulate_for(job, other));
  const StepParts a = parts_of(mine), b = parts_of(theirs);
  return fmt::format("computing {}, exposed communication {}, bubble {}", with_sign(b.busy - a.busy),
                     with_sign(b.exposed - a.exposed), with_sign(b.bubble - a.bubble));
}

}  // namespace

std::string plan_in_words(const Plan& plan) {
  std::string text = fmt::format("{}, {} of {}", plan_summary(plan),
                                 counted(plan.num_microbatches, "microbatch", "microbatches"), plan.microbatch);
  if (plan.stages.size() < 2) return text;
  std::vector<std::string> stages;
  for (const PlanStage& stage : plan.stages) {
    const int tensor = stage.mesh.degree(Axis::kTensor);
    const bool is_other = tensor != plan.stages[0].mesh.degree(Axis::kTensor);
    stages.push_back(fmt::format("{}{}", stage.layers.size(), is_other ? fmt::format(" (tensor {})", tensor) : ""));
  }
  return text + ", layers " + join(stages, "+");
}

std::string top_plans(const Job& job, size_t most) {
  if (job.plan_was_given) return "the plan was given: no other was considered\n";
  const std::vector<ConsideredPlan> plans = distinct_plans(job);
  const std::string chosen = plan_in_words(job.plan);
  std::string text = fmt::format("{:>4}  {:>11} {:>8} {:>12}  {}\n", "", "step", "", "fullest rank", "plan");
  for (size_t i = 0; i < std::min(most, plans.size()); ++i) {
    const ConsideredPlan& plan = plans[i];
    const std::string words = plan_in_words(plan.plan);
    text += fmt::format("{:>4}  {:>11} {:>8} {:>12}  {}{}{}\n", i + 1, to_string(plan.plan.predicted.step),
                        percent(plan.plan.predicted.step, job.plan.predicted.step), to_string(plan.peak), words,
                        words == chosen ? "  <- chosen" : "", plan.fits ? "" : "  (does not fit)");
  }
  return text + fmt::format("{} considered by {}{}\n", counted(static_cast<int64_t>(plans.size()), "plan"),
                            job.plan.planner, most < plans.size() ? fmt::format(", the best {} shown", most) : "");
}

Result<std::string> why_this_plan(const Job& job) {
  if (job.plan_was_given) return fmt::format("why       it was given: {}\n", job.plan.file);
  const std::vector<ConsideredPlan> plans = distinct_plans(job);
  const std::string chosen = plan_in_words(job.plan);
  const ConsideredPlan *runner_up = nullptr, *too_large = nullptr;
  int64_t num_fit = 0;
  for (const ConsideredPlan& plan : plans) {
    num_fit += plan.fits ? 1 : 0;
    if (plan_in_words(plan.plan) == chosen) continue;
    if (plan.fits && !runner_up) runner_up = &plan;
    if (!plan.fits && (!too_large || plan.plan.predicted.step < too_large->plan.predicted.step)) too_large = &plan;
  }
  const Seconds step = job.plan.predicted.step;
  Bytes peak;
  for (Bytes of_stage : job.plan.predicted.peak_memory) peak = std::max(peak, of_stage);
  std::string text = "why       ";
  if (plans.size() == 1)
    text += fmt::format("{} considered no other; `altiplano plan --compare` puts another planner's beside it\n",
                        job.plan.planner);
  else if (!runner_up)
    text += fmt::format("the only plan that fits of {} that {} considered\n",
                        counted(static_cast<int64_t>(plans.size()), "plan"), job.plan.planner);
  else if (runner_up->plan.predicted.step < step)
    text += fmt::format("{} took the first plan in its order that fits, not the fastest\n", job.plan.planner);
  else
    text += fmt::format("the fastest of {} that fit, {} considered by {}\n", counted(num_fit, "plan"),
                        counted(static_cast<int64_t>(plans.size()), "plan"), job.plan.planner);
  if (runner_up) {
    ALTIPLANO_ASSIGN(const std::string where, differences(job, runner_up->plan));
    text += fmt::format("runner-up {}: {} ({}), {}; fullest rank {} ({})\n", plan_in_words(runner_up->plan),
                        to_string(runner_up->plan.predicted.step), percent(runner_up->plan.predicted.step, step), where,
                        to_string(runner_up->peak), with_sign(runner_up->peak - peak));
  }
  if (too_large)
    text += fmt::format("no room   {}: {} ({}), but its fullest rank needs {}\n", plan_in_words(too_large->plan),
                        to_string(too_large->plan.predicted.step), percent(too_large->plan.predicted.step, step),
                        to_string(too_large->peak));
  return text;
}

}  // namespace altiplano
