#include "framework/config/provenance.hpp"

#include <fmt/chrono.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>

#include "framework/base/text.hpp"
#include "framework/storage/atomic_file.hpp"

namespace altiplano {
namespace {

namespace fs = std::filesystem;

/// A text in double quotes as YAML reads it back.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + "\"";
}

std::string list_text(const std::vector<std::string>& words) {
  std::vector<std::string> parts;
  for (const auto& word : words) parts.push_back(quoted(word));
  return "[" + join(parts, ", ") + "]";
}

std::vector<std::string> command_line(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/cmdline", process), std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> variables;
  for (char** variable = ::environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);
  std::ranges::sort(variables);
  return variables;
}

/// Variables that the job file names were expanded, so they matter too.
bool is_named_by(const JobConfig& job, const std::string& name) {
  return std::ranges::any_of(job.options.records(), [&](const OptionRecord& record) {
    const auto parts = split(job.options.origin(record.key).detail, ',');
    return std::ranges::any_of(parts, [&](const std::string& part) { return trim(part) == "$" + name; });
  });
}

bool is_secret(const std::string& name) {
  return std::ranges::any_of(std::array{"TOKEN", "SECRET", "PASSWORD", "KEY", "CREDENTIAL", "RENDEZVOUS"},
                             [&](const char* word) { return name.find(word) != std::string::npos; });
}

std::string environment_text(const JobConfig& job) {
  std::string text;
  for (const auto& variable : own_environment()) {
    const size_t equals = variable.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = variable.substr(0, equals);
    if (!is_kept_variable(name) && !is_named_by(job, name)) continue;
    text += fmt::format("  {}: {}\n", name, is_secret(name) ? "(set, not kept)" : quoted(variable.substr(equals + 1)));
  }
  return text.empty() ? "environment: {}\n" : "environment:\n" + text;
}

std::string start_text(const JobConfig& job, const StartFacts& facts) {
  std::error_code error;
  std::string text = fmt::format("altiplano: {{version: {}, commit: {}, compiler: \"g++ {}\"}}\n", ALTIPLANO_VERSION,
                                 git_commit(), __VERSION__);
  text += fmt::format("started: {:%Y-%m-%dT%H:%M:%SZ}\n", fmt::gmtime(std::time(nullptr)));
  text += fmt::format("host: {}\nranks: {}\njob_id: {}\n", quoted(facts.host), facts.ranks, quoted(facts.job_id));
  text += fmt::format("command: {}\n", list_text(command_line(::getpid())));
  if (facts.has_launcher) text += fmt::format("launched_by: {}\n", list_text(command_line(::getppid())));
  text += fmt::format("directory: {}\n", quoted(fs::current_path(error).string()));
  text += fmt::format("job_file: {}\n", quoted(job.file));
  text += fmt::format("plan_file: {}\n", facts.plan_file.empty() ? "none" : quoted(facts.plan_file));
  return text + environment_text(job);
}

/// Numbers of the starts, newest first.
std::vector<int64_t> start_numbers(const fs::path& folder) {
  std::vector<int64_t> numbers;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (auto number = parse_int(at->path().filename().string())) numbers.push_back(*number);
  std::ranges::sort(numbers, std::greater());
  return numbers;
}

}  // namespace

bool is_kept_variable(const std::string& name) {
  return std::ranges::any_of(
      std::array{"ALTIPLANO_", "SLURM_", "SLURMD_", "OMP_", "KMP_", "MKL_", "DNNL_", "ONEDNN_", "HDF5_", "CUDA_",
                 "NCCL_", "UCX_", "LD_", "PMIX_RANK", "MALLOC_", "GLIBC_TUNABLES"},
      [&](const char* start) { return name.starts_with(start); });
}

Result<std::string> write_provenance(const JobConfig& job, const StartFacts& facts) {
  const fs::path all = fs::path(job.options.get_string("run.dir")) / "provenance";
  const auto numbers = start_numbers(all);
  const fs::path folder = all / fmt::format("{:04}", numbers.empty() ? 1 : std::max<int64_t>(0, numbers[0]) + 1);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return runtime_failure("{}: cannot be made: {}", folder.string(), error.message());
  auto write = [&](const char* name, const std::string& text) {
    return write_file_atomically((folder / name).string(), text);
  };
  ALTIPLANO_RETURN_IF_ERROR(write("job.yaml", job.text));
  ALTIPLANO_RETURN_IF_ERROR(write("effective.yaml", job_text(job.options, true)));
  ALTIPLANO_RETURN_IF_ERROR(write("plan.yaml", facts.plan));
  ALTIPLANO_RETURN_IF_ERROR(write("start.yaml", start_text(job, facts)));
  return folder.string();
}

std::string newest_effective_config(const std::string& run_directory) {
  const fs::path all = fs::path(run_directory) / "provenance";
  for (int64_t number : start_numbers(all)) {
    const fs::path file = all / fmt::format("{:04}", number) / "effective.yaml";
    std::error_code error;
    if (const auto bytes = fs::file_size(file, error); !error && bytes > 0) return file.string();
  }
  return "";
}

}  // namespace altiplano
