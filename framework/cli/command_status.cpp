// altiplano status, altiplano logs: what a run's folder tells of it.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "framework/base/console.hpp"
#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/checkpoint/layout.hpp"
#include "framework/cli/commands.hpp"
#include "framework/cli/job_arguments.hpp"
#include "framework/launch/story.hpp"
#include "framework/plugin/registry.hpp"
#include "framework/runtime/end_record.hpp"
#include "framework/runtime/time_budget.hpp"

namespace altiplano {
namespace {

namespace fs = std::filesystem;

constexpr auto kQueueLimit = std::chrono::seconds(10);

struct StatusArguments {
  std::string run, checkpoints;
  size_t lines = 8;
  JobArguments job;  ///< its plugin path
};
struct LogsArguments {
  std::string run;
  int rank = 0;
  int64_t lines = 0;
  bool only_path = false;
};

Status check_run(const std::string& run) {
  std::error_code error;
  if (fs::is_directory(run, error)) return Status::ok();
  return invalid_argument("{}: is no folder; give run.dir of the job, runs/<run.name> unless it says another", run);
}

/// "14.0.2 87" -> start 14.0.2 of Slurm's job 14.
void print_job(const std::string& run) {
  const std::string sign = trim(sign_of_life(run));
  if (sign.empty()) return;
  const std::string start = sign.substr(0, sign.find(' ')), id = start.substr(0, start.find('.'));
  const auto scheduler = PluginRegistry::instance().scheduler("scheduler/slurm");
  const auto job = scheduler.is_ok() ? (*scheduler)->job_state(id, kQueueLimit) : Result<JobState>(scheduler.status());
  if (!job.is_ok()) return print_out("job       {} ({})\n", id, job.status().to_string());
  const double left = static_cast<double>(job->end_time) - unix_time();
  print_out("job       {}, {}{}{}, {}{}\n", id, job->state, job->hosts.empty() ? "" : " on ", join(job->hosts, ", "),
            job->restart_count == 0 ? "first start" : fmt::format("requeued {}", counted(job->restart_count, "time")),
            job->is_running && left > 0 ? ", ends in " + hours_minutes_seconds(Seconds(left)) : "");
}

/// The last line of metrics.jsonl that has a loss.
void print_step(const std::string& run) {
  std::ifstream file(run + "/metrics.jsonl");
  std::optional<nlohmann::json> last;
  for (std::string line; std::getline(file, line);) {
    auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("step") && json.contains("loss")) last = std::move(json);
  }
  if (!last) return print_out("step      none yet\n");
  print_out("step      {}, loss {:.4f}\n", (*last)["step"].get<int64_t>(), (*last)["loss"].get<double>());
}

void print_checkpoints(const std::string& directory) {
  std::vector<std::string> steps;
  for (const StepFolder& folder : list_step_folders(directory)) steps.push_back(fmt::to_string(folder.step));
  std::ranges::reverse(steps);
  print_out("saved     {}\n", steps.empty() ? "nothing yet" : "step " + join(steps, ", "));
}

Status status(const StatusArguments& arguments) {
  use_plugin_path(arguments.job.plugin_path);
  ALTIPLANO_RETURN_IF_ERROR(check_run(arguments.run));
  print_out("run       {}\n", arguments.run);
  print_job(arguments.run);
  print_step(arguments.run);
  print_checkpoints(arguments.checkpoints.empty() ? arguments.run + "/checkpoints" : arguments.checkpoints);
  if (const auto end = read_end_record(arguments.run))
    print_out("end       start {}: {} after step {} on {}\n", end->start, end->is_done ? "done" : "saved and stopped",
              end->step, counted(end->ranks, "rank"));
  for (const std::string& line : end_of_story(arguments.run, arguments.lines)) print_out("story     {}\n", line);
  return Status::ok();
}

/// Logs of this rank: of `altiplano launch` in logs, of supervised starts in logs/job-*; the one written last.
Result<std::string> newest_log(const std::string& run, int rank) {
  const std::string name = fmt::format("rank-{}.log", rank);
  std::error_code error;
  std::optional<fs::path> newest;
  const auto consider = [&](const fs::path& path) {
    if (!fs::is_regular_file(path, error)) return;
    if (!newest || fs::last_write_time(path, error) > fs::last_write_time(*newest, error)) newest = path;
  };
  consider(fs::path(run) / "logs" / name);
  for (const auto& entry : fs::directory_iterator(fs::path(run) / "logs", error)) consider(entry.path() / name);
  if (newest) return newest->string();
  return invalid_argument("{}/logs: has no log of rank {}; ranks of one start count from 0", run, rank);
}

Status logs(const LogsArguments& arguments) {
  ALTIPLANO_RETURN_IF_ERROR(check_run(arguments.run));
  ALTIPLANO_ASSIGN(const std::string path, newest_log(arguments.run, arguments.rank));
  if (arguments.only_path) {
    print_out("{}\n", path);
    return Status::ok();
  }
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (arguments.lines > 0) {
    size_t begin = text.size() - (text.ends_with('\n') ? 1 : 0);
    for (int64_t line = 0; line < arguments.lines && begin != std::string::npos && begin > 0; ++line)
      begin = text.rfind('\n', begin - 1);
    text = begin == std::string::npos || begin == 0 ? text : text.substr(begin + 1);
  }
  print_out_text(text);
  return Status::ok();
}

}  // namespace

void add_status_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<StatusArguments>();
  CLI::App* command =
      add_command(app, "status", "How a run fares: its job, its last step, its checkpoints, its story", R"(
    altiplano status runs/gpt
    altiplano status runs/gpt --lines 40)");
  command->add_option("run", arguments->run, "The run's folder")->required()->type_name("RUN");
  command->add_option("--checkpoints", arguments->checkpoints, "checkpoint.dir where it is not in the run's folder")
      ->type_name("DIR");
  command->add_option("--lines", arguments->lines, "Lines of the story (default 8)")->check(CLI::Range(0, 1000000));
  add_plugin_path_argument(*command, arguments->job);
  on_run(command, exit_code, [arguments] { return status(*arguments); });
}

void add_logs_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<LogsArguments>();
  CLI::App* command = add_command(app, "logs", "What a rank of a run has printed, in its last start", R"(
    altiplano logs runs/gpt
    altiplano logs runs/gpt --rank 3 --lines 20
    altiplano logs runs/gpt --rank 3 --path)");
  command->add_option("run", arguments->run, "The run's folder")->required()->type_name("RUN");
  command->add_option("--rank", arguments->rank, "Rank (default 0)")->check(CLI::Range(0, 1 << 20));
  command->add_option("--lines", arguments->lines, "The last ones only")->check(CLI::Range(1, 1 << 30));
  command->add_flag("--path", arguments->only_path, "Print where the log lies, not the log");
  on_run(command, exit_code, [arguments] { return logs(*arguments); });
}

}  // namespace altiplano
