// altiplano profile: where the time of a training step goes, on one rank or several.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "framework/base/console.hpp"
#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/cli/commands.hpp"
#include "framework/cli/job_arguments.hpp"
#include "framework/cli/local_ranks.hpp"
#include "framework/launch/launcher.hpp"
#include "framework/runtime/cluster_measurement.hpp"
#include "framework/runtime/job_data.hpp"
#include "framework/runtime/kernel_choice.hpp"
#include "framework/runtime/rank_model.hpp"
#include "framework/runtime/step_measurement.hpp"
#include "framework/storage/atomic_file.hpp"
#include "framework/storage/file_kind.hpp"

namespace altiplano {
namespace {

struct ProfileArguments {
  JobArguments job;
  std::string plan_file, cluster_file;
  int ranks = 1;
  int64_t steps = 5;
  bool json = false, kernels = false;
};

/// What each form takes, of the first one's time.
void print_kernels(const KernelChoice& choice) {
  print_out("kernels   {}\n\n{:<40} {:<9} {:>9} {:>7}  {}\n", choice.table.machine, "shape", "taken", "ms", "spread",
            "the others");
  for (const KernelMeasurement& m : choice.measurements) {
    const auto best = std::ranges::find(m.times, m.best, &FormTime::form);
    std::vector<std::string> others;
    for (const FormTime& time : m.times)
      if (time.form != m.best) others.push_back(fmt::format("{} {:.2f}x", time.form, time.median / best->median));
    print_out("{:<40} {:<9} {:>9.3f} {:>6.0f}%  {}\n", m.shape, m.best, best->median * 1e3,
              100 * (best->slowest - best->fastest) / best->median, join(others, ", "));
  }
  print_out("\n");
}

/// Of a rank that a launcher started.
Result<Job> prepare_launched(const ProfileArguments& arguments, const JobRequest& request) {
  ALTIPLANO_ASSIGN(JobConfig config, load_job(arguments.job, false));
  return prepare_job(std::move(config), request);
}

/// Of a launcher, or of a rank alone: refuses what can be refused, and chooses the kernels.
Result<Job> prepare(const ProfileArguments& arguments, const JobRequest& request) {
  ALTIPLANO_ASSIGN(JobConfig config, load_job(arguments.job));
  ALTIPLANO_ASSIGN(Job job, prepare_job(std::move(config), request));
  print_notices(job.notices);
  ALTIPLANO_RETURN_IF_ERROR(BatchSource::open(job_data_options(job)).status());
  ALTIPLANO_ASSIGN(const KernelChoice choice,
                   choose_job_kernels(job, arguments.kernels ? KernelStart::kAnew : KernelStart::kFresh));
  print_notices(choice.notices);
  if (arguments.kernels && !arguments.json) print_kernels(choice);
  return job;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void print_json(const Job& job, const RankModel& model, const StepProfile& profile) {
  nlohmann::json rows = nlohmann::json::array();
  for (const ProfileRow& row : profile.rows())
    rows.push_back({{"what", row.what},
                    {"group", to_string(row.group)},
                    {"during", row.during},
                    {"calls", row.calls},
                    {"seconds", row.seconds},
                    {"flops", row.flops},
                    {"bytes", row.bytes}});
  const nlohmann::json out = {{"plan", plan_summary(job.plan)},
                              {"ranks", job.num_ranks},
                              {"threads", model.device().info().threads},
                              {"device", model.device().info().name},
                              {"predicted_seconds", job.plan.predicted.step.value},
                              {"memory_bytes", model.program().peak().value},
                              {"step_seconds", profile.steps()},
                              {"rows", rows}};
  print_out("{}\n", out.dump());
}

constexpr double kLeastShare = 0.01;  // rows below that are summed up in one

void print_table(const Job& job, const RankModel& model, const StepProfile& profile) {
  const double step = median(profile.steps());
  const auto [best, worst] = std::ranges::minmax(profile.steps());
  print_out("plan      {}, {} of {} each; memory {}\n", plan_summary(job.plan), counted(job.num_ranks, "rank"),
            counted(model.device().info().threads, "thread"), to_string(model.program().peak()));
  print_out("step      {:.1f} ms (median of {}; {:.1f} to {:.1f}), predicted {:.1f} ms\n", step * 1e3,
            profile.steps().size(), best * 1e3, worst * 1e3, job.plan.predicted.step.value * 1e3);
  const std::vector<ProfileRow> rows = profile.rows();
  double sum = 0;
  for (const ProfileRow& row : rows) sum += row.seconds;
  const std::array<double, 4> groups = seconds_by_group(rows);
  for (size_t group = 0; group < groups.size(); ++group)
    print_out("{:<9} {:.1f} ms, {:.1f} %, {}\n", group == 0 ? "rank 0" : "", groups[group] * 1e3,
              100 * groups[group] / sum, to_string(static_cast<ProfileGroup>(group)));
  print_out("\n{:<24} {:<9} {:>7} {:>10} {:>7} {:>9} {:>8}\n", "rank 0 spent its time in", "during", "calls", "ms/step",
            "share", "GFLOP/s", "GB/s");
  for (const ProfileRow& row : with_small_rows_folded(rows, kLeastShare)) {
    const auto rate = [&](double amount) {
      return amount > 0 && row.seconds > 0 ? fmt::format("{:.1f}", amount / row.seconds / 1e9) : std::string();
    };
    print_out("{:<24} {:<9} {:>7.0f} {:>10.2f} {:>6.1f}% {:>9} {:>8}\n", row.what, row.during, row.calls,
              row.seconds * 1e3, 100 * row.seconds / sum, rate(row.flops), rate(row.bytes));
  }
}

Status check_cluster_file(const ProfileArguments& arguments) {
  return check_output_files({{"--cluster", arguments.cluster_file, FileKind::kCluster}},
                            {{"the job file", arguments.job.file}});
}

/// Of every rank: what its machine takes, written and kept by the first.
Status measure_machine(const ProfileArguments& arguments, const RankEnvironment& environment, Rendezvous& rendezvous) {
  const bool is_alone = environment.rendezvous.empty();
  if (is_alone) ALTIPLANO_RETURN_IF_ERROR(check_cluster_file(arguments));
  ALTIPLANO_ASSIGN(const JobConfig config, load_job(arguments.job, is_alone));
  const auto tell = [](const std::string& text) {
    print_out("measuring {}\n", text);
    flush_out();
  };
  ALTIPLANO_ASSIGN(const MeasuredCluster measured, measure_cluster(config, environment, rendezvous, tell));
  if (environment.rank.value != 0) return Status::ok();
  ALTIPLANO_RETURN_IF_ERROR(write_file_atomically(arguments.cluster_file, measured.cluster.to_yaml()));
  print_out("\n{}\nwritten   {}\n", measured_in_words(measured), arguments.cluster_file);
  const std::string path = cluster_database_path();
  ClusterDatabase database = ClusterDatabase::read(path);
  if (const Status stored = database.store(measured); !stored.is_ok())
    print_err("note: not kept for cluster: this-machine: {}\n", stored.to_string());
  else
    print_out("kept      {}; `cluster: this-machine` plans with it from now on\n", path);
  return Status::ok();
}

Status run_rank(const ProfileArguments& arguments, const RankEnvironment& environment, Rendezvous& rendezvous) {
  if (!arguments.cluster_file.empty()) return measure_machine(arguments, environment, rendezvous);
  ALTIPLANO_ASSIGN(const JobRequest request, job_request_of(environment, arguments.plan_file));
  ALTIPLANO_ASSIGN(const Job job,
                   environment.rendezvous.empty() ? prepare(arguments, request) : prepare_launched(arguments, request));
  ALTIPLANO_ASSIGN(const BatchSource source, BatchSource::open(job_data_options(job)));
  ALTIPLANO_ASSIGN(auto model, RankModel::open(job, environment, rendezvous, false));
  auto profile = measure_steps(job, source, *model, arguments.steps);
  if (!profile.is_ok()) {
    model->abort(profile.status());
    return profile.status();
  }
  if (environment.rank.value != 0) return Status::ok();
  arguments.json ? print_json(job, *model, *profile) : print_table(job, *model, *profile);
  return Status::ok();
}

/// Of ranks that measure their machine.
Result<LocalRanks> check_measuring(const ProfileArguments& arguments) {
  ALTIPLANO_RETURN_IF_ERROR(check_cluster_file(arguments));
  ALTIPLANO_ASSIGN(const JobConfig config, load_job(arguments.job));
  LocalRanks ranks{arguments.ranks, job_command("profile", arguments.job),
                   config.options.get_string("run.dir") + "/logs/profile"};
  ranks.command.insert(ranks.command.end(), {"--cluster", arguments.cluster_file});
  return ranks;
}

/// What a launcher does, once, before a rank starts.
Result<LocalRanks> check(const ProfileArguments& arguments) {
  if (!arguments.cluster_file.empty()) return check_measuring(arguments);
  LaunchRequest launch;
  launch.ranks = arguments.ranks;
  JobRequest request;
  request.num_ranks = arguments.ranks;
  request.threads = threads_of_rank(launch);
  request.plan_file = arguments.plan_file;
  ALTIPLANO_ASSIGN(const Job job, prepare(arguments, request));
  ALTIPLANO_RETURN_IF_ERROR(verify_programs(job.programs));
  LocalRanks ranks{arguments.ranks, job_command("profile", arguments.job),
                   job.config.options.get_string("run.dir") + "/logs/profile", job.plan.to_yaml()};
  if (!arguments.plan_file.empty()) ranks.command.insert(ranks.command.end(), {"--plan", arguments.plan_file});
  ranks.command.insert(ranks.command.end(), {"--steps", std::to_string(arguments.steps)});
  if (arguments.json) ranks.command.emplace_back("--json");
  return ranks;
}

}  // namespace

void add_profile_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ProfileArguments>();
  CLI::App* command = add_command(app, "profile", "Where the time of a training step goes", R"(
    altiplano profile -n 4 -c configs/jobs/quickstart.yaml
    altiplano profile -n 2 -c job.yaml --plan plan.yaml --steps 20
    altiplano profile -n 4 -c configs/jobs/quickstart.yaml --json
    altiplano profile -n 2 -c configs/jobs/quickstart.yaml --cluster my-machine.yaml)");
  add_job_arguments(*command, arguments->job);
  command->add_option("-n,--ranks", arguments->ranks, "Ranks of this host (default 1)")
      ->check(CLI::Range(1, 4096))
      ->type_name("RANKS");
  command->add_option("--plan", arguments->plan_file, "Take this plan instead of planning")->type_name("FILE");
  command->add_option("--steps", arguments->steps, "Steps to measure, after one that is not counted (default 5)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  command->add_flag("--json", arguments->json, "One line of JSON");
  command->add_flag("--kernels", arguments->kernels,
                    "Measure the forms of every kernel anew, keep them for later starts, and show them too");
  command
      ->add_option("--cluster", arguments->cluster_file,
                   "Measure the machine instead, by this job's model, among as many ranks, and write its cluster file")
      ->type_name("FILE");
  for (const char* other : {"--plan", "--steps", "--json", "--kernels"})
    command->get_option("--cluster")->excludes(command->get_option(other));
  command->footer(
      command->get_footer() +
      "\nTrains from initial weights and keeps nothing of it. Rows below 1 % are summed up; --json has all.");
  on_local_ranks(
      command, exit_code, arguments->ranks, [arguments] { return check(*arguments); },
      [arguments](const RankEnvironment& environment, Rendezvous& rendezvous) {
        return run_rank(*arguments, environment, rendezvous);
      });
}

}  // namespace altiplano
