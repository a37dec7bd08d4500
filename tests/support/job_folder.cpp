#include "tests/support/job_folder.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

#include "framework/checkpoint/layout.hpp"
#include "framework/checkpoint/restore.hpp"
#include "framework/kernels/element.hpp"

namespace altiplano::test {

namespace {

constexpr const char* kProgram = ALTIPLANO_BINARY_DIR "/bin/altiplano";

constexpr const char* kJob = R"(model:
  kind: gpt
  num_hidden_layers: 3
  hidden_size: 48
  num_attention_heads: 12
  max_position_embeddings: 16
  vocab_size: 257
  resid_pdrop: 0.1
  embd_pdrop: 0.1
  attn_pdrop: 0.1
data: {train: text.h5}
train: {max_steps: 6, global_batch_size: 12, micro_batch_size: 2, seq_length: 16, log_every: 1}
optimizer: {name: adamw, lr: 2e-3}
lr_scheduler: {name: cosine, warmup_steps: 2, decay_steps: 12, min_lr: 1e-4}
parallel: {planner: manual}
device: {threads: 1}
comm: {timeout_seconds: 120}
)";

/// About 20 KB of words in no order that a model of three blocks would know beforehand.
std::string some_text() {
  const char* words[] = {"the", "river", "and", "a", "mountain", "of", "light", "went", "down", "to", "plain", "wide"};
  std::string text;
  uint32_t state = 1;
  while (text.size() < 20000) {
    state = state * 1664525u + 1013904223u;
    text += words[(state >> 16) % 12];
    text += (state >> 28) == 0 ? ".\n" : " ";
  }
  return text;
}

std::string set_options(const std::string& settings) {
  std::string options;
  std::istringstream words(settings);
  for (std::string word; words >> word;) options += " --set " + word;
  return options;
}

std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

JobFolder::JobFolder() {
  write_bytes(*this / "job.yaml", kJob);
  write_bytes(*this / "text.txt", some_text());
  auto packed = altiplano("data pack -o text.h5 text.txt");
  BOOST_REQUIRE_MESSAGE(packed.exit_code == 0, packed.output);
}

CommandResult JobFolder::altiplano(const std::string& arguments) const {
  return run_command("cd " + path() + " && timeout -k 5 300 " + kProgram + " " + arguments + " </dev/null");
}

std::string JobFolder::launch_arguments(int ranks, const std::string& run, const std::string& settings,
                                        const std::string& more) const {
  return fmt::format("launch -n {} -c job.yaml --set run.dir={}{} {}", ranks, run, set_options(settings), more);
}

std::string JobFolder::plan_arguments(int ranks, const std::string& settings) const {
  return fmt::format("plan -n {} -c job.yaml{}", ranks, set_options(settings));
}

std::string JobFolder::launch(int ranks, const std::string& run, const std::string& settings,
                              const std::string& more) const {
  auto result = altiplano(launch_arguments(ranks, run, settings, more));
  BOOST_REQUIRE_MESSAGE(result.exit_code == 0, settings << " " << more << ": " << result.output);
  return result.output;
}

std::string JobFolder::checkpoint(const std::string& run, int64_t step) const {
  return step_folder(*this / run + "/checkpoints", step);
}

std::string degrees_text(int data, int tensor, int pipeline) {
  return fmt::format(
      " parallel.data_parallel_size={} parallel.tensor_parallel_size={} parallel.pipeline_parallel_size={} ", data,
      tensor, pipeline);
}

std::vector<nlohmann::json> read_metrics(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object()) lines.push_back(std::move(json));
  }
  return lines;
}

std::map<int64_t, nlohmann::json> read_steps(const std::string& path) {
  std::map<int64_t, nlohmann::json> steps;
  for (auto& line : read_metrics(path)) {
    if (!line.contains("loss")) continue;
    auto step = line.at("step").get<int64_t>();
    BOOST_TEST(!steps.contains(step), path << " has step " << step << " twice");
    steps[step] = std::move(line);
  }
  return steps;
}

std::map<std::string, SavedTensor> read_checkpoint(const std::string& path) {
  auto checkpoint = Checkpoint::open(path, CheckLevel::kChecksums);
  BOOST_REQUIRE_MESSAGE(checkpoint.is_ok(), checkpoint.status().to_string());
  std::map<std::string, SavedTensor> tensors;
  std::vector<TensorTarget> targets;
  for (const ShardRecord& shard : checkpoint->manifest().shards) {
    for (const PartRecord& part : shard.parts) {
      auto [at, is_new] = tensors.try_emplace(part.name);
      if (!is_new) continue;
      at->second.bytes.resize(static_cast<size_t>(num_elements(part.global) * size_of(part.dtype)));
      targets.push_back({part.name, part.dtype, part.global, Box::whole(part.global), at->second.bytes.data()});
    }
  }
  Status status = checkpoint->restore(targets);
  BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
  for (const TensorTarget& target : targets) {
    SavedTensor& tensor = tensors[target.name];
    auto size = static_cast<size_t>(size_of(target.dtype));
    for (size_t i = 0; i < tensor.bytes.size(); i += size)
      tensor.values.push_back(load_element(target.dtype, tensor.bytes.data() + i));
  }
  return tensors;
}

std::string differing_tensors(const std::string& a, const std::string& b) {
  auto of_a = read_checkpoint(a), of_b = read_checkpoint(b);
  BOOST_TEST(!of_a.empty());
  std::string names;
  for (const auto& [name, tensor] : of_a)
    if (!of_b.contains(name) || of_b[name].bytes != tensor.bytes) names += name + " ";
  for (const auto& [name, tensor] : of_b)
    if (!of_a.contains(name)) names += name + " ";
  return names;
}

double largest_difference_of_checkpoints(const std::string& a, const std::string& b) {
  auto of_a = read_checkpoint(a), of_b = read_checkpoint(b);
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (of_a.size() != of_b.size()) return kInfinite;
  double largest = 0;
  for (const auto& [name, tensor] : of_b) {
    if (!of_a.contains(name) || of_a[name].values.size() != tensor.values.size()) return kInfinite;
    for (size_t i = 0; i < tensor.values.size(); ++i) {
      double difference = std::abs(of_a[name].values[i] - tensor.values[i]) / std::max(1.0, std::abs(tensor.values[i]));
      if (!std::isfinite(difference)) return kInfinite;
      largest = std::max(largest, difference);
    }
  }
  return largest;
}

BackgroundRun::BackgroundRun(const JobFolder& folder, const std::string& arguments, const std::string& name,
                             const std::string& environment)
    : output_path_(folder / (name + ".out")) {
  std::string command = fmt::format("cd {} && exec env {} {} {} </dev/null >{} 2>&1", folder.path(), environment,
                                    kProgram, arguments, output_path_);
  process_ = fork();
  if (process_ == 0) {
    for (int ignored : {SIGHUP, SIGINT}) signal(ignored, SIG_DFL);  // as under nohup, or in a shell's background
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  BOOST_REQUIRE(process_ > 0);
}

BackgroundRun::~BackgroundRun() {
  if (process_ <= 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

pid_t BackgroundRun::rank(int rank) const {
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", process_));
  std::string wanted = fmt::format("ALTIPLANO_RANK={}", rank);
  for (pid_t child = 0; children >> child;) {
    std::string environment = text_of_file(fmt::format("/proc/{}/environ", child));
    std::istringstream variables(environment);
    for (std::string variable; std::getline(variables, variable, '\0');)
      if (variable == wanted) return child;
  }
  return 0;
}

std::string BackgroundRun::output() const {
  return text_of_file(output_path_);
}

bool BackgroundRun::has_ended() {
  if (process_ > 0 && waitpid(process_, &status_, WNOHANG) == process_) process_ = -1;
  return process_ <= 0;
}

int BackgroundRun::wait(std::chrono::seconds limit) {
  auto end = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < end) {
    if (has_ended()) return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  BOOST_FAIL("still running after " << limit.count() << " s: " << output());
  return -1;
}

void wait_until(const std::function<bool()>& condition, const std::string& what) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  BOOST_FAIL("never: " << what);
}

}  // namespace altiplano::test
