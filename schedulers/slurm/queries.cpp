#include "queries.hpp"

#include <algorithm>
#include <array>

#include "framework/base/child_process.hpp"
#include "framework/base/text.hpp"
#include "nodelist.hpp"

namespace altiplano::slurm {
namespace {

/// A column of squeue --Format. A node list is as long as the cluster is large; squeue cuts what is longer.
struct Column {
  const char* name;
  size_t width;
};
constexpr std::array<Column, 5> kColumns = {
    {{"State", 40}, {"EndTime", 40}, {"RestartCnt", 20}, {"BatchHost", 260}, {"NodeList", 1 << 17}}};

std::string format_of_columns() {
  std::vector<std::string> parts;
  for (const Column& column : kColumns) parts.push_back(fmt::format("{}:{}", column.name, column.width));
  return join(parts, ",");
}

std::string field(std::string_view line, size_t index) {
  size_t begin = 0;
  for (size_t i = 0; i < index; ++i) begin += kColumns[i].width;
  return begin < line.size() ? trim(line.substr(begin, kColumns[index].width)) : std::string();
}

/// What a program said, or why it says nothing. Slurm writes times in local time unless it is told otherwise.
Result<std::string> ask(const std::vector<std::string>& command, std::chrono::milliseconds limit) {
  ALTIPLANO_ASSIGN(const ProgramOutcome outcome, run_program(command, limit, {"SLURM_TIME_FORMAT=%s", "LC_ALL=C"}));
  if (outcome.exit_code == 0) return outcome.output;
  const std::string why = trim(outcome.errors);
  return runtime_failure("{} failed with exit code {}{}", command[0], outcome.exit_code, why.empty() ? "" : ": " + why);
}

}  // namespace

Result<JobState> parse_job_state(std::string_view line) {
  JobState job;
  job.state = field(line, 0);
  if (job.state.empty()) return runtime_failure("squeue: no state in '{}'", trim(line));
  job.is_running = job.state == "RUNNING";
  job.end_time = parse_int(field(line, 1)).value_or(0);  // "N/A", "NONE": no limit
  job.restart_count = static_cast<int>(parse_int(field(line, 2)).value_or(0));
  job.first_host = field(line, 3);
  if (job.first_host == "n/a" || job.first_host == "N/A") job.first_host.clear();
  const std::string hosts = field(line, 4);
  if (!hosts.empty() && hosts != "(null)") {
    ALTIPLANO_ASSIGN(job.hosts, expand_nodelist(hosts, "NodeList of squeue"));
  }
  return job;
}

std::vector<NodeState> parse_node_states(std::string_view text) {
  std::vector<NodeState> nodes;
  for (const std::string& line : split(text, '\n')) {
    const size_t bar = line.find('|');
    if (bar == std::string::npos) continue;
    NodeState node{trim(line.substr(0, bar)), trim(line.substr(bar + 1)), false};
    if (std::ranges::find(nodes, node.host, &NodeState::host) != nodes.end()) continue;
    // "*": it does not answer; "~", "#", "%", "$", "@", "^", "!", "-": powered off, starting, reserved, planned.
    const std::string word = node.state.substr(0, node.state.find_first_of("*~#%$@^!-+"));
    const bool answers = node.state.find_first_of("*~#%") == std::string::npos;
    node.is_usable = answers && (word == "idle" || word == "mixed" || word == "allocated" || word == "completing" ||
                                 word == "draining" || word == "reserved" || word == "planned");
    nodes.push_back(std::move(node));
  }
  return nodes;
}

Result<JobState> ask_job(const std::string& job_id, std::chrono::milliseconds limit) {
  ALTIPLANO_ASSIGN(
      const std::string text,
      ask({"squeue", "--noheader", "--jobs=" + job_id, "--states=all", "--Format=" + format_of_columns()}, limit));
  const std::vector<std::string> lines = split(text, '\n');
  if (lines.empty() || trim(lines[0]).empty()) return runtime_failure("squeue does not know job {}", job_id);
  return parse_job_state(lines[0]);
}

Result<std::vector<NodeState>> ask_nodes(const std::vector<std::string>& hosts, std::chrono::milliseconds limit) {
  ALTIPLANO_ASSIGN(const std::string text,
                   ask({"sinfo", "--noheader", "--Node", "--nodes=" + join(hosts, ","), "--format=%N|%T"}, limit));
  return parse_node_states(text);
}

Status ask_requeue(const std::string& job_id, std::chrono::milliseconds limit) {
  return ask({"scontrol", "requeue", job_id}, limit).status();
}

Result<std::string> ask_submit(const Submission& submission) {
  std::vector<std::string> command = {"sbatch", "--parsable"};
  if (!submission.after_job.empty()) command.push_back("--dependency=afterany:" + submission.after_job);
  command.insert(command.end(), submission.options.begin(), submission.options.end());
  command.push_back(submission.script);
  ALTIPLANO_ASSIGN(const std::string text, ask(command, submission.limit));
  const std::string id = trim(text.substr(0, text.find_first_of(";\n")));  // behind ";" the cluster's name
  if (parse_int(id)) return id;
  return runtime_failure("sbatch answered '{}', expected the number of a job", trim(text));
}

}  // namespace altiplano::slurm
