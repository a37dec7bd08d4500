// altiplano plan, validate, estimate: what would run, without running it.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "framework/base/console.hpp"
#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/cli/commands.hpp"
#include "framework/cli/job_arguments.hpp"
#include "framework/cli/plan_choice.hpp"
#include "framework/cli/plan_comparison.hpp"
#include "framework/cli/plan_export.hpp"
#include "framework/cli/simulation_text.hpp"
#include "framework/plan/assignment.hpp"
#include "framework/plan/layer_names.hpp"
#include "framework/runtime/job.hpp"
#include "framework/runtime/job_data.hpp"
#include "framework/runtime/job_plan.hpp"
#include "framework/runtime/kernel_choice.hpp"
#include "framework/runtime/output_folders.hpp"
#include "framework/runtime/plan_proof.hpp"
#include "framework/runtime/trainer.hpp"
#include "framework/simulate/plan_simulation.hpp"
#include "framework/storage/atomic_file.hpp"

namespace altiplano {
namespace {

constexpr int kMostCompared = 8;

struct PlanArguments {
  JobArguments job;
  int ranks = 1;
  std::string plan_file, output, svg;
  bool explain = false, full = false, program = false;
  int top = 0;
  std::vector<std::string> compare;  ///< none, or two and more
  std::string export_to;             ///< "megatron"
};

/// `may_stand_in`: of many ranks the first of every stage speak for the others. `will_run`: what the device has no
/// kernel for is refused.
Result<Job> prepare(const PlanArguments& arguments, bool may_stand_in = false, bool will_run = false) {
  ALTIPLANO_ASSIGN(JobConfig config, load_job(arguments.job));
  JobRequest request;
  request.num_ranks = arguments.ranks;
  request.plan_file = arguments.plan_file;
  request.is_only_shown = !will_run;
  request.only_first_of_stage = may_stand_in && arguments.ranks > kMostRanksEach;
  ALTIPLANO_ASSIGN(Job job, prepare_job(std::move(config), request));
  ALTIPLANO_RETURN_IF_ERROR(check_plan_kernels(job));
  print_notices(job.notices);
  return job;
}

/// Where predicted times come from.
std::string figures_in_words(const Job& job) {
  if (!job.figures.empty()) return "by figures " + job.figures;
  if (job.config.options.get_string("cluster") != "this-machine") return "a first estimate from the cluster's figures";
  return "by built-in figures of another processor; altiplano profile --cluster measures this one's";
}

std::string explain(const Job& job) {
  const Plan& plan = job.plan;
  std::string text = fmt::format("graph     {}, {}, {}          cluster  {}\n", plan.model_name,
                                 counted(num_parameters(job.graph->graph), "parameter"),
                                 layers_in_words(job.graph->graph.layers()), plan.cluster_shape);
  text += fmt::format("plan      {}, {} of {}          by {}, {} in {}\n\n", plan_summary(plan),
                      counted(plan.num_microbatches, "microbatch", "microbatches"), plan.microbatch, plan.planner,
                      job.plan_was_given ? "read" : "found", to_string(job.planning_time));
  text += fmt::format("{:<6} {:<28} {:<10} {:<12} {:>11} {:>11} {:>11} {:>11} {:>11}\n", "stage", "layers", "slots",
                      "data x tensor", "weights", "gradients", "optimizer", "activations", "peak");
  size_t first = 0;
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const PlanStage& stage = plan.stages[s];
    size_t fullest = first;
    for (size_t r = first; r < first + stage.slots.size(); ++r)
      if (job.estimate.peak_per_rank[r] > job.estimate.peak_per_rank[fullest]) fullest = r;
    std::string layers =
        stage.layers.size() == 1 ? stage.layers[0] : stage.layers.front() + " .. " + stage.layers.back();
    text += fmt::format(
        "{:<6} {:<28} {:<10} {:<13} {:>11} {:>11} {:>11} {:>11} {:>11}\n", stage.name, layers,
        fmt::format("{}-{}", stage.slots.front(), stage.slots.back()),
        fmt::format("{} x {}", stage.mesh.degree(Axis::kData), stage.mesh.degree(Axis::kTensor)),
        to_string(job.estimate.weights_per_rank[fullest]), to_string(job.estimate.gradients_per_rank[fullest]),
        to_string(job.estimate.optimizer_per_rank[fullest]), to_string(job.estimate.activations_per_rank[fullest]),
        to_string(job.estimate.peak_per_rank[fullest]));
    first += stage.slots.size();
  }
  text += fmt::format("\nstep      {} predicted ({}), bubble {:.0f} %, {} tokens/s\n", to_string(plan.predicted.step),
                      figures_in_words(job), 100 * plan.predicted.bubble,
                      with_thousands(static_cast<int64_t>(plan.predicted.tokens_per_second)));
  return text;
}

/// Every op's strategy and every value's specs.
Status print_full(const Job& job) {
  ALTIPLANO_ASSIGN(ShardingAssignment assignment, assign_shardings(*job.graph, job.plan));
  print_out("# sharding of every value, by stage of its producer\n");
  for (const Value& value : job.graph->graph.values()) {
    size_t i = value.id.index();
    if (!assignment.home[i].is_valid()) continue;
    std::string stored = assignment.stored[i].to_string(), produced = assignment.produced[i].to_string();
    print_out("# s{} {} {}{} {}{}\n", assignment.home[i], value.name, to_string(value.dtype), to_string(value.shape),
              stored, stored == produced ? "" : " from " + produced);
  }
  return Status::ok();
}

/// A plan file, or else a planner, as --compare names them.
bool is_plan_file(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".yaml") || name.ends_with(".yml");
}

/// The job under one of the plans that are compared. A planner that finds no plan is an answer too.
Result<PlanColumn> column_of(const PlanArguments& arguments, const std::string& name) {
  PlanArguments with = arguments;
  if (is_plan_file(name))
    with.plan_file = name;
  else
    with.job.flags.emplace_back("--compare", "parallel.planner=" + name);
  PlanColumn column{name, std::nullopt, {}};
  auto job = prepare(with, true);
  if (job.is_ok())
    column.job = std::move(job).value();
  else if (job.status().code() == StatusCode::kInfeasible)
    column.refusal = job.status().to_string();
  else
    return job.status();
  return column;
}

Status compare(const PlanArguments& arguments) {
  std::vector<PlanColumn> columns;
  for (const std::string& name : arguments.compare) {
    ALTIPLANO_ASSIGN(PlanColumn column, column_of(arguments, name));
    columns.push_back(std::move(column));
  }
  ALTIPLANO_ASSIGN(const std::string text, compare_plans(columns));
  print_out("{}", text);
  return Status::ok();
}

Status check_outputs(const PlanArguments& arguments) {
  std::vector<NamedFile> inputs = {{"the job file", arguments.job.file}};
  for (const std::string& name : arguments.compare)
    if (is_plan_file(name)) inputs.push_back({"a plan that is compared", name});
  return check_output_files({{"-o", arguments.output, FileKind::kPlan}, {"--svg", arguments.svg}}, inputs);
}

/// Beside the plan itself.
Status print_choice(const PlanArguments& arguments, const Job& job) {
  ProgramSimulation simulation;
  if (arguments.explain || !arguments.svg.empty()) {
    ALTIPLANO_ASSIGN(simulation, simulate_for(job, job.plan));
  }
  if (arguments.explain) {
    ALTIPLANO_ASSIGN(const std::string why, why_this_plan(job, simulation));
    print_out("{}simulated {}\ntraffic   {}\n{}", explain(job), step_text(simulation),
              traffic_text(simulation, job.cluster), why);
  }
  if (arguments.top > 0)
    print_out("{}{}", arguments.explain ? "\n" : "", top_plans(job, static_cast<size_t>(arguments.top)));
  return arguments.svg.empty() ? Status::ok() : write_timeline(arguments.svg, job.plan, simulation);
}

Status plan(const PlanArguments& arguments) {
  ALTIPLANO_RETURN_IF_ERROR(check_outputs(arguments));
  if (!arguments.compare.empty()) return compare(arguments);
  ALTIPLANO_ASSIGN(Job job, prepare(arguments, !arguments.program));
  ALTIPLANO_ASSIGN(const PlanProof proof, prove_plan(job));
  if (!proof.is_whole()) print_notices({proof.in_words()});
  ALTIPLANO_RETURN_IF_ERROR(print_choice(arguments, job));
  if (!arguments.export_to.empty()) {
    ALTIPLANO_ASSIGN(const std::string flags, export_megatron(job));
    print_out("{}", flags);
  } else if (!arguments.explain && arguments.top == 0 && arguments.output.empty()) {
    print_out("{}", job.plan.to_yaml());
  }
  if (arguments.full) ALTIPLANO_RETURN_IF_ERROR(print_full(job));
  if (arguments.program)
    for (const Program& program : job.programs) print_out("{}", program.to_string());
  if (arguments.output.empty()) return Status::ok();
  return write_named_file(arguments.output, job.plan.to_yaml());
}

/// Data, checkpoints and the folders of the run are looked at too: nothing of the job is left to be refused when it
/// starts. A job without data cannot start, only be planned.
Result<std::string> check_start(const Job& job) {
  const BatchSourceOptions options = job_data_options(job);
  if (options.train.empty()) return std::string();
  ALTIPLANO_ASSIGN(const BatchSource data, BatchSource::open(options));
  ALTIPLANO_RETURN_IF_ERROR(check_can_start(job));
  ALTIPLANO_RETURN_IF_ERROR(check_can_write(job.config.options, job.num_ranks, RunFolder::kUntouched));
  return fmt::format("; data {}, {} an epoch", data.training_name(), counted(data.num_training_samples(), "sample"));
}

Status validate(const PlanArguments& arguments) {
  ALTIPLANO_ASSIGN(Job job, prepare(arguments, false, true));
  ALTIPLANO_ASSIGN(const std::string data, check_start(job));
  ALTIPLANO_RETURN_IF_ERROR(verify_programs(job.programs));
  size_t instructions = 0;
  for (const Program& program : job.programs)
    for (const Block& block : program.blocks) instructions += block.instructions.size();
  print_out("ok: {} on {}: {}{}; {} with {} proved free of deadlock, of overlap and of reads before writes\n",
            arguments.job.file, counted(arguments.ranks, "rank"), plan_summary(job.plan), data,
            counted(static_cast<int64_t>(job.programs.size()), "program"),
            counted(static_cast<int64_t>(instructions), "instruction"));
  return Status::ok();
}

/// "memory    fits: yes (62 %): rank 3 needs 9.9 GiB of 16.0 GiB".
Result<std::string> fits_in_words(const Job& job) {
  ALTIPLANO_ASSIGN(const Bytes limit, memory_limit(job.config.options, job.cluster, job.ranks_of_a_host));
  const std::vector<Bytes>& peaks = job.estimate.peak_per_rank;
  const auto fullest = std::ranges::max_element(peaks);
  return fmt::format("memory    fits: {} ({:.0f} %); the fullest, rank {}, needs {} of {}\n",
                     *fullest <= limit ? "yes" : "no",
                     100 * static_cast<double>(fullest->value) / std::max(1.0, static_cast<double>(limit.value)),
                     fullest - peaks.begin(), to_string(*fullest), to_string(limit));
}

Status estimate(const PlanArguments& arguments) {
  ALTIPLANO_ASSIGN(Job job, prepare(arguments, true));
  ALTIPLANO_ASSIGN(const std::string fits, fits_in_words(job));
  print_out("{}{}", explain(job), fits);
  return Status::ok();
}

CLI::App* add_planning_command(CLI::App& app, const std::string& name, const std::string& help,
                               const std::string& examples, const std::shared_ptr<PlanArguments>& arguments) {
  CLI::App* command = add_command(app, name, help, examples);
  add_job_arguments(*command, arguments->job);
  command->add_option("-n,--ranks", arguments->ranks, "Ranks to plan for (default 1)")
      ->check(CLI::Range(1, 65536))
      ->type_name("RANKS");
  command->add_option("--plan", arguments->plan_file, "Take this plan instead of planning")->type_name("FILE");
  return command;
}

}  // namespace

void add_plan_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command = add_planning_command(app, "plan", "Print the plan of a job", R"(
    altiplano plan -n 4 -c configs/jobs/quickstart.yaml
    altiplano plan -n 4 -c configs/jobs/quickstart.yaml --explain --svg step.svg
    altiplano plan -n 4 -c configs/jobs/quickstart.yaml -o plan.yaml
    altiplano plan -n 16 -c configs/jobs/gpt2_124m.yaml --set cluster=a100-40-8 --set parallel.planner=dp --top 5
    altiplano plan -n 4 -c configs/jobs/quickstart.yaml --compare plan.yaml heuristic
    altiplano plan -n 16 -c configs/jobs/gpt2_124m.yaml --set cluster=a100-40-8 --compare heuristic deepspeed fsdp dp
    altiplano plan -n 16 -c configs/jobs/gpt2_124m.yaml --set cluster=a100-40-8 --export megatron)",
                                           arguments);
  command->add_flag("--explain", arguments->explain,
                    "A table for people instead of YAML, and why this plan: what the runner-up would lose");
  CLI::Option* top =
      command->add_option("--top", arguments->top, "The best K plans that the planner considered, instead of YAML")
          ->check(CLI::Range(1, 1000))
          ->type_name("K");
  CLI::Option* compared =
      command->add_option("--compare", arguments->compare, "Plans of several planners, or plan files, side by side")
          ->expected(2, kMostCompared)
          ->type_name("PLANNER-OR-FILE");
  CLI::Option* svg = command->add_option("--svg", arguments->svg, "Write the timeline of a simulated step as a picture")
                         ->type_name("FILE");
  command->add_flag("--full", arguments->full, "The sharding of every value too");
  command->add_flag("--program", arguments->program, "Every rank's program too");
  CLI::Option* exported =
      command->add_option("--export", arguments->export_to, "The plan as flags of another framework, instead of YAML")
          ->check(CLI::IsMember({"megatron"}))
          ->type_name("megatron");
  CLI::Option* output = command->add_option("-o,--output,--out", arguments->output, "Write the plan to this file");
  output->type_name("FILE");
  for (CLI::Option* other : {top, svg, output, exported}) compared->excludes(other);
  for (CLI::Option* other : {top, command->get_option("--explain")}) exported->excludes(other);
  for (const char* other : {"--plan", "--explain", "--full", "--program"})
    compared->excludes(command->get_option(other));
  on_run(command, exit_code, [arguments] { return plan(*arguments); });
}

void add_validate_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command =
      add_planning_command(app, "validate", "Check a job file and prove its plan safe, without running it", R"(
    altiplano validate -n 4 -c configs/jobs/quickstart.yaml
    altiplano validate -n 4 -c configs/jobs/quickstart.yaml --plan plan.yaml)",
                           arguments);
  on_run(command, exit_code, [arguments] { return validate(*arguments); });
}

void add_estimate_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command =
      add_planning_command(app, "estimate", "Memory per rank (exact) and step time (a first estimate)", R"(
    altiplano estimate -n 4 -c configs/jobs/quickstart.yaml
    altiplano estimate -n 8 -c configs/jobs/gpt2_124m.yaml --set cluster=a100-40-8)",
                           arguments);
  on_run(command, exit_code, [arguments] { return estimate(*arguments); });
}

}  // namespace altiplano
