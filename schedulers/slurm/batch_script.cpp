#include "batch_script.hpp"

#include <algorithm>

#include "framework/base/text.hpp"

namespace altiplano::slurm {
namespace {

constexpr const char* kSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-=:,@+";

bool is_safe(const std::string& text, const char* more = "") {
  return !text.empty() && text.find_first_not_of(std::string(kSafe) + more) == std::string::npos;
}

Status check_line(const std::string& what, const std::string& text) {
  const bool has_control = std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 && c != '\t'; });
  if (!has_control) return Status::ok();
  return invalid_argument("{}: a line break or a control character is in it, which a batch script cannot hold", what);
}

/// Slurm takes a backslash in a file's name for its own, and leaves out what it would replace.
Status check_path(const std::string& what, const std::string& path) {
  ALTIPLANO_RETURN_IF_ERROR(check_line(what, path));
  if (path.find('\\') == std::string::npos) return Status::ok();
  return invalid_argument("{} {}: Slurm does not take a backslash in the name of a job's output; take another folder",
                          what, path);
}

class Script {
 public:
  explicit Script(const BatchRequest& request) : request_(request), section_(request.section) {}

  Result<std::string> text() {
    ALTIPLANO_RETURN_IF_ERROR(check_line("the folder " + request_.folder, request_.folder));
    ALTIPLANO_RETURN_IF_ERROR(check_path("the folder", request_.log_folder));
    for (const std::string& word : request_.command) ALTIPLANO_RETURN_IF_ERROR(check_line("'" + word + "'", word));
    ALTIPLANO_RETURN_IF_ERROR(add_options());
    ALTIPLANO_RETURN_IF_ERROR(add_body());
    return std::move(text_);
  }

 private:
  bool is_supervised() const { return section_.get_bool("supervise"); }

  /// "#SBATCH --name=value"
  void option(const std::string& name, const std::string& value) {
    text_ += fmt::format("#SBATCH --{}={}\n", name, is_safe(value) ? value : quoted_for_sbatch(value));
  }
  void option(const std::string& name, int64_t value) { option(name, fmt::to_string(value)); }
  void line(const std::string& text) { text_ += text + "\n"; }

  Status add_options() {
    line("#!/bin/bash");
    option("job-name", section_.has("job_name") ? section_.get_string("job_name") : request_.run_name);
    for (const char* key : {"partition", "account", "qos", "constraint", "reservation", "time", "gres", "mem"}) {
      if (!section_.has(key)) continue;
      ALTIPLANO_RETURN_IF_ERROR(check_line(section_.where(key), section_.get_string(key)));
      option(key, section_.get_string(key));
    }
    option("nodes", section_.get_int("nodes") + section_.get_int("spare_nodes"));
    option("ntasks-per-node", section_.get_int("ntasks_per_node"));
    option("cpus-per-task", section_.get_int("cpus_per_task"));
    if (const int64_t early = section_.get_int("signal_seconds"); early > 0)
      option("signal", fmt::format("USR1@{}", early));
    line(section_.get_bool("requeue") ? "#SBATCH --requeue" : "#SBATCH --no-requeue");
    if (is_supervised()) line("#SBATCH --no-kill");
    option("output", path_pattern(request_.log_folder) + "/job-%j.out");
    option("open-mode", "append");
    return add_further_options();
  }

  Status add_further_options() {
    const auto& options = section_.get_strings("options");
    for (size_t i = 0; i < options.size(); ++i) {
      ALTIPLANO_RETURN_IF_ERROR(check_line(section_.where("options", i), options[i]));
      if (!options[i].starts_with("-"))
        return invalid_argument("{}: {} is no option of sbatch; one begins with -, as in --switches=1@30",
                                section_.where("options", i), options[i]);
      const size_t equals = options[i].find('=');
      const std::string name = options[i].substr(0, equals);
      const std::string value = equals == std::string::npos ? "" : options[i].substr(equals + 1);
      line(fmt::format("#SBATCH {}{}{}", name, value.empty() ? "" : "=",
                       value.empty() || is_safe(value, "%") ? value : quoted_for_sbatch(value)));
    }
    return Status::ok();
  }

  Status add_body() {
    line("# Written by `altiplano submit`; what is above stands in the job file's section slurm.");
    line("set -u");
    line(fmt::format("cd {} || exit 2", quoted_for_shell(request_.folder)));
    line("export SLURM_PMIX_FENCE=ring  # Slurm's own fence is no barrier between nodes");
    const auto& setup = section_.get_strings("setup");
    for (size_t i = 0; i < setup.size(); ++i) {
      ALTIPLANO_RETURN_IF_ERROR(check_line(section_.where("setup", i), setup[i]));
      line(setup[i]);
    }
    line("start=${SLURM_RESTART_COUNT:-0}");
    line(fmt::format("log={}/job-$SLURM_JOB_ID.$start.log", quoted_for_shell(request_.log_folder)));
    line("echo \"start $start on $SLURM_JOB_NODELIST: $log\"");
    line("exec >>\"$log\" 2>&1");
    std::vector<std::string> words;
    for (const std::string& word : request_.command) words.push_back(quoted_for_shell(word));
    const std::string command = join(words, " ");
    is_supervised() ? line("exec " + command) : add_step(command);
    return Status::ok();
  }

  /// Without a supervisor the script starts the ranks itself, and the job again when they have saved and stopped.
  void add_step(const std::string& command) {
    const int64_t nodes = section_.get_int("nodes"), tasks = section_.get_int("ntasks_per_node");
    line(
        fmt::format("srun --mpi=pmix --nodes={} --ntasks={} --ntasks-per-node={} --cpus-per-task={} "
                    "--kill-on-bad-exit=1 {}",
                    nodes, nodes * tasks, tasks, section_.get_int("cpus_per_task"), command));
    line("code=$?");
    if (section_.get_bool("requeue") && section_.get_int("chain") == 1)
      line("if [ \"$code\" -eq 75 ]; then scontrol requeue \"$SLURM_JOB_ID\"; fi");
    line("exit \"$code\"");
  }

  const BatchRequest& request_;
  const Options& section_;
  std::string text_;
};

}  // namespace

Result<std::string> make_batch_script(const BatchRequest& request) {
  return Script(request).text();
}

Result<std::vector<std::string>> make_step_command(const StepRequest& request) {
  const size_t hosts = request.hosts.size();
  if (hosts == 0 || request.tasks_per_host < 1 || request.cpus_per_task < 1 || request.command.empty())
    return invalid_argument("a step needs a host, a task, a processor and a command");
  std::vector<std::string> command = {
      "srun",
      "--overlap",  // beside steps whose processes a dead node keeps, and the agents
      "--no-kill",
      "--export=ALL",
      fmt::format("--nodes={}", hosts),
      fmt::format("--ntasks={}", hosts * static_cast<size_t>(request.tasks_per_host)),
      fmt::format("--ntasks-per-node={}", request.tasks_per_host),
      fmt::format("--cpus-per-task={}", request.cpus_per_task),
      "--distribution=block",
      "--nodelist=" + join(request.hosts, ","),
  };
  if (request.are_ranks)
    command.insert(command.end(), {"--mpi=pmix", "--kill-on-bad-exit=1"});
  else
    command.insert(command.end(), {"--mpi=none", "--kill-on-bad-exit=0", "--gres=none"});
  if (!request.output.empty()) {
    ALTIPLANO_RETURN_IF_ERROR(check_path("the output", request.output));
    std::string pattern = path_pattern(request.output);
    if (const size_t at = pattern.find("{task}"); at != std::string::npos) pattern.replace(at, 6, "%t");
    command.insert(command.end(), {"--output=" + pattern, "--open-mode=append"});
  }
  command.insert(command.end(), request.command.begin(), request.command.end());
  return command;
}

std::string quoted_for_sbatch(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\'' || c == '\\' || c == '#') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string quoted_for_shell(const std::string& text) {
  if (is_safe(text, "%")) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string path_pattern(const std::string& path) {
  std::string pattern;
  for (const char c : path) pattern += c == '%' ? std::string("%%") : std::string(1, c);
  return pattern;
}

}  // namespace altiplano::slurm
