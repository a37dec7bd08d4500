// altiplano simulate: a step of a job played through, rank by rank, without running it.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "framework/base/console.hpp"
#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/cli/commands.hpp"
#include "framework/cli/job_arguments.hpp"
#include "framework/cli/simulation_text.hpp"
#include "framework/runtime/job.hpp"
#include "framework/simulate/critical_path.hpp"
#include "framework/simulate/plan_simulation.hpp"
#include "framework/simulate/timeline.hpp"
#include "framework/storage/atomic_file.hpp"

namespace altiplano {
namespace {

struct SimulateArguments {
  JobArguments job;
  int ranks = 1;
  std::string plan_file, trace, svg;
  bool every_rank = false;
  double jitter = 0;  ///< percent
  int draws = 20;
};

std::string share(Seconds part, Seconds whole) {
  return fmt::format("{} {:>3.0f} %", to_string(part), 100 * part.value / std::max(whole.value, 1e-300));
}

/// "0-7", "3": the ranks that a row tells about.
std::string ranks_of(const Plan& plan, const RankTimeline& rank) {
  if (rank.num_alike == 1) return fmt::format("{}", rank.rank);
  const std::vector<SlotId>& slots = plan.stages[rank.stage.index()].slots;
  const auto [least, most] = std::ranges::minmax_element(slots);
  const bool is_range = most->value - least->value + 1 == static_cast<int>(slots.size());
  return is_range ? fmt::format("{}-{}", *least, *most) : fmt::format("{} and {} more", rank.rank, rank.num_alike - 1);
}

/// Where every rank of a stage was simulated: the one that works most, with the fullest one's memory, for all of them.
std::vector<RankTimeline> one_per_stage(const ProgramSimulation& simulation, size_t num_stages) {
  std::vector<RankTimeline> rows(num_stages);
  std::vector<int> num_ranks(num_stages, 0);
  for (const RankTimeline& rank : simulation.ranks) {
    RankTimeline& row = rows[rank.stage.index()];
    const Bytes peak = std::max(row.peak, rank.peak);
    if (num_ranks[rank.stage.index()] == 0 || rank.busy > row.busy) {
      row = {rank.rank, rank.stage, 1, rank.busy, rank.exposed, rank.bubble, peak, {}, {}};
    }
    row.peak = peak;
    row.num_alike = num_ranks[rank.stage.index()] += rank.num_alike;
  }
  return rows;
}

std::string rank_table(const std::vector<RankTimeline>& rows, const Plan& plan, Seconds step) {
  std::string text = fmt::format("{:<6} {:<14} {:>16} {:>16} {:>16} {:>11}\n", "stage", "ranks", "computing", "exposed",
                                 "bubble", "memory");
  for (const RankTimeline& rank : rows)
    text += fmt::format("{:<6} {:<14} {:>16} {:>16} {:>16} {:>11}\n", plan.stages[rank.stage.index()].name,
                        ranks_of(plan, rank), share(rank.busy, step), share(rank.exposed, step),
                        share(rank.bubble, step), to_string(rank.peak));
  return text;
}

std::string report_text(const Job& job, const ProgramSimulation& simulation, bool every_rank) {
  const Plan& plan = job.plan;
  const double tokens = static_cast<double>(num_elements(job.graph->graph.value(job.graph->inputs[0]).shape));
  std::string text = fmt::format("graph     {}, {}          cluster  {}\n", plan.model_name,
                                 counted(num_parameters(job.graph->graph), "parameter"), plan.cluster_shape);
  text += fmt::format("plan      {}, {} of {}          by {}\n", plan_summary(plan),
                      counted(plan.num_microbatches, "microbatch", "microbatches"), plan.microbatch, plan.planner);
  text += fmt::format("step      {}          {} tokens/s\n", step_text(simulation),
                      with_thousands(static_cast<int64_t>(tokens / std::max(simulation.step.value, 1e-12))));
  text += fmt::format("traffic   {}\n\n", traffic_text(simulation, job.cluster));
  const auto rows = every_rank ? simulation.ranks : one_per_stage(simulation, plan.stages.size());
  return text + rank_table(rows, plan, simulation.step) + "\n" + critical_path_in_words(simulation, stage_names(plan));
}

/// Steps whose actions take now longer, now shorter, ascending.
Result<std::vector<double>> jittered_steps(const Job& job, double deviation, int draws) {
  ALTIPLANO_ASSIGN(const Timetable timetable, build_timetable(job.plan));
  ALTIPLANO_ASSIGN(const SimulatedPrograms lowered,
                   lower_for_simulation(*job.graph, job.plan, timetable, job.device->lowering(), /*each_rank=*/true));
  std::vector<double> steps;
  for (int draw = 0; draw < draws; ++draw) {
    const Jitter jitter{deviation, static_cast<uint64_t>(draw)};
    ALTIPLANO_ASSIGN(const ProgramSimulation simulation,
                     simulate_programs(lowered.programs, lowered.alike, job.cluster, jitter));
    steps.push_back(simulation.step.value);
  }
  std::ranges::sort(steps);
  return steps;
}

std::string jitter_text(const std::vector<double>& steps, double percent, Seconds without) {
  const auto at = [&](double share) {
    return steps[static_cast<size_t>(share * static_cast<double>(steps.size() - 1))];
  };
  return fmt::format(
      "jitter    {:g} % on the work of each action, {}: {} a step (quartiles {} to {}), {:.3f} of it without\n",
      percent, counted(static_cast<int64_t>(steps.size()), "draw"), to_string(Seconds(at(0.5))),
      to_string(Seconds(at(0.25))), to_string(Seconds(at(0.75))), at(0.5) / std::max(without.value, 1e-300));
}

Status check_outputs(const SimulateArguments& arguments) {
  const std::vector<NamedFile> outputs = {{"--trace", arguments.trace}, {"--svg", arguments.svg}};
  return check_output_files(outputs, {{"the job file", arguments.job.file}, {"the plan", arguments.plan_file}});
}

Status simulate(const SimulateArguments& arguments) {
  ALTIPLANO_RETURN_IF_ERROR(check_outputs(arguments));
  ALTIPLANO_ASSIGN(JobConfig config, load_job(arguments.job));
  JobRequest request;
  request.num_ranks = arguments.ranks;
  request.plan_file = arguments.plan_file;
  request.is_only_shown = true;
  request.only_first_of_stage = arguments.ranks > kMostRanksEach;
  ALTIPLANO_ASSIGN(Job job, prepare_job(std::move(config), request));
  print_notices(job.notices);
  ALTIPLANO_ASSIGN(const ProgramSimulation simulation, simulate_for(job, job.plan));
  if (!arguments.trace.empty())
    ALTIPLANO_RETURN_IF_ERROR(write_named_file(arguments.trace, chrome_trace(simulation, stage_names(job.plan))));
  if (!arguments.svg.empty()) ALTIPLANO_RETURN_IF_ERROR(write_timeline(arguments.svg, job.plan, simulation));
  print_out("{}", report_text(job, simulation, arguments.every_rank));
  if (arguments.jitter <= 0) return Status::ok();
  ALTIPLANO_ASSIGN(const auto steps, jittered_steps(job, arguments.jitter / 100, arguments.draws));
  print_out("{}", jitter_text(steps, arguments.jitter, simulation.step));
  return Status::ok();
}

}  // namespace

void add_simulate_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<SimulateArguments>();
  CLI::App* command = add_command(app, "simulate", "Play a step through without running it: time, waits, timeline", R"(
    altiplano simulate -n 4 -c configs/jobs/quickstart.yaml
    altiplano simulate -n 4 -c configs/jobs/quickstart.yaml --plan plan.yaml --svg step.svg
    altiplano simulate -n 4 -c configs/jobs/quickstart.yaml --jitter 5
    altiplano simulate -n 64 -c configs/jobs/gpt2_124m.yaml --set cluster=a100-40-8 --trace step.json)");
  add_job_arguments(*command, arguments->job);
  command->add_option("-n,--ranks", arguments->ranks, "Ranks to simulate (default 1); no allocation is needed")
      ->check(CLI::Range(1, 65536))
      ->type_name("RANKS");
  command->add_option("--plan", arguments->plan_file, "Take this plan instead of planning")->type_name("FILE");
  command->add_option("--trace", arguments->trace, "Write a trace for chrome://tracing or Perfetto (JSON)")
      ->type_name("FILE");
  command->add_option("--svg", arguments->svg, "Write the timeline as a picture")->type_name("FILE");
  command
      ->add_option("--jitter", arguments->jitter,
                   "Simulate again with the work of every action on every rank longer or shorter by as many percent "
                   "(standard deviation)")
      ->check(CLI::Range(0.0, 100.0))
      ->type_name("PERCENT");
  command->add_option("--draws", arguments->draws, "How often --jitter is drawn (default 20)")
      ->check(CLI::Range(1, 10000))
      ->type_name("COUNT");
  command->add_flag("--every-rank", arguments->every_rank,
                    "A row for every rank that was simulated, instead of one for every stage");
  on_run(command, exit_code, [arguments] { return simulate(*arguments); });
}

}  // namespace altiplano
