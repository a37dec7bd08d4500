#include "tests/support/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <fstream>

#include "framework/checkpoint/layout.hpp"
#include "framework/checkpoint/restore.hpp"
#include "framework/checkpoint/save.hpp"

namespace altiplano::test {
namespace {

constexpr const char* kFolder = ALTIPLANO_BINARY_DIR "/fixtures/faults/";
constexpr int kRanks = 2;

std::string saver(const std::string& directory, int64_t step, int64_t attempt, int64_t keep) {
  return fmt::format("{}checkpoint_saver {} {} {} {} {}", kFolder, directory, step, kRanks, attempt, keep);
}

void save_well(const std::string& directory, int64_t step, int64_t attempt, int64_t keep) {
  auto saved = run_command(saver(directory, step, attempt, keep));
  BOOST_REQUIRE_MESSAGE(saved.exit_code == 0, saved.output);
}

/// What lies there before the save that goes wrong.
void prepare(const SaveScene& scene, const std::string& directory) {
  save_well(directory, 1, 1, 0);
  if (scene.again) save_well(directory, scene.step, 1, 0);
}

std::string command_of(const SaveScene& scene, const std::string& directory) {
  return saver(directory, scene.step, scene.again ? 2 : 1, scene.keep);
}

/// All values are the checkpoint's step: no shard of another.
void check_values(const Checkpoint& checkpoint, const std::string& name) {
  std::vector<double> matrix(12 * 5, -1), vector(12, -1);
  std::vector<TensorTarget> targets = {{"w", DType::kF64, {12, 5}, Box::whole({12, 5}), matrix.data()},
                                       {"w.m", DType::kF64, {12}, Box::whole({12}), vector.data()}};
  Status status = checkpoint.restore(targets);
  BOOST_TEST(status.is_ok(), name << ": " << status.to_string());
  const auto step = static_cast<double>(checkpoint.manifest().info.step);
  for (double value : matrix) BOOST_REQUIRE_MESSAGE(value == step, name << ": " << value << " in step " << step);
  for (double value : vector) BOOST_REQUIRE_MESSAGE(value == step, name << ": " << value << " in step " << step);
}

/// The newest complete checkpoint; what it leaves out has a reason, a save that began and is not there is named.
void check_loads(const std::string& directory, const SaveScene& scene, bool was_done, const std::string& name) {
  auto found = find_checkpoint(directory, "must", CheckLevel::kChecksums);
  BOOST_REQUIRE_MESSAGE(found.is_ok(), name << ": " << found.status().to_string());
  const int64_t step = found->checkpoint->manifest().info.step;
  BOOST_TEST((step == scene.step || (step == 1 && !was_done && !scene.again)), name << ": step " << step);
  check_values(*found->checkpoint, name);
  BOOST_TEST(found->skipped.empty(), name << ": a damaged checkpoint is in sight");
  const bool has_begun = std::filesystem::exists(temporary_folder(directory, scene.step));
  if (step != 1 || !has_begun) return;
  BOOST_REQUIRE_MESSAGE(found->unfinished.size() == 1, name);
  BOOST_TEST(found->unfinished[0].reason.find("the save of step 2 never finished") != std::string::npos, name);
}

/// After what a start does, the next save goes well, and nothing but checkpoints is left.
void check_goes_on(const std::string& directory, const std::string& name) {
  remove_unfinished(directory);
  save_well(directory, 3, 3, 0);
  auto found = find_checkpoint(directory, "must", CheckLevel::kChecksums);
  BOOST_REQUIRE_MESSAGE(found.is_ok(), name << ": " << found.status().to_string());
  BOOST_TEST(found->checkpoint->manifest().info.step == 3, name);
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string file = entry.path().filename();
    BOOST_TEST((file.starts_with("step-") || file == "latest"), name << ": " << file << " is left");
  }
}

/// An error that is returned is told with its path and the system's reason; a kill is a kill.
void check_end(const CommandResult& result, const std::string& mode, const std::string& directory,
               const std::string& name) {
  if (mode == "kill" || mode == "torn") {
    BOOST_TEST((result.exit_code == 137 || result.exit_code == 0), name << ": " << result.exit_code);
    return;
  }
  BOOST_TEST((result.exit_code == 0 || result.exit_code == 1), name << ": " << result.exit_code << result.output);
  if (result.exit_code == 0) return;
  const char* reason = mode == "EIO" ? "Input/output error" : "No space left on device";
  BOOST_TEST(result.output.find(directory) != std::string::npos, name << ": " << result.output);
  BOOST_TEST(result.output.find(reason) != std::string::npos, name << ": " << result.output);
}

void check_one(const SaveScene& scene, const Fault& wanted, const std::string& call) {
  TemporaryDirectory folder;
  const std::string directory = folder / "checkpoints";
  std::filesystem::copy(wanted.directory, directory, std::filesystem::copy_options::recursive);
  Fault fault = wanted;
  fault.directory = directory;
  const std::string name = fmt::format("{}, {} at call {} ({})", scene.name, fault.mode, fault.at, call);
  auto result = run_command(fault_environment(fault) + command_of(scene, directory));
  check_end(result, fault.mode, directory, name);
  check_loads(directory, scene, result.exit_code == 0, name);
  check_goes_on(directory, name);
}

}  // namespace

std::string fault_environment(const Fault& fault, const std::string& log) {
  std::string text = fmt::format("ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD={}fault_preload.so FAULT_DIR={} ",
                                 kFolder, fault.directory);
  if (!fault.mode.empty()) text += fmt::format("FAULT_MODE={} FAULT_AT={} ", fault.mode, fault.at);
  if (fault.stays) text += "FAULT_STAYS=1 ";
  if (fault.no_exchange) text += "FAULT_NO_EXCHANGE=1 ";
  if (!fault.free_bytes.empty()) text += "FAULT_FREE_BYTES=" + fault.free_bytes + " ";
  if (fault.most_bytes > 0) text += fmt::format("FAULT_MOST_BYTES={} ", fault.most_bytes);
  if (fault.delay > 0) text += fmt::format("FAULT_DELAY_MS={} ", fault.delay);
  if (fault.no_locks != 0) text += fmt::format("FAULT_NO_LOCKS={} ", fault.no_locks);
  if (!log.empty()) text += "FAULT_LOG=" + log + " ";
  return text;
}

std::vector<std::string> counted_calls(const std::string& command, Fault fault) {
  TemporaryDirectory folder;
  fault.mode.clear();
  auto result = run_command(fault_environment(fault, folder / "log") + command);
  BOOST_REQUIRE_MESSAGE(result.exit_code == 0, result.output);
  std::vector<std::string> calls;
  std::ifstream log(folder / "log");
  std::string number, name, path;
  while (log >> number >> name && std::getline(log, path)) calls.push_back(name);
  return calls;
}

const std::vector<SaveScene>& save_scenes() {
  static const std::vector<SaveScene> scenes = {
      {.name = "a new step, the old one pruned"},
      {.name = "a step again, exchanged", .again = true, .keep = 0},
      {.name = "a step again, without exchange", .again = true, .no_exchange = true, .keep = 0},
  };
  return scenes;
}

int check_interrupted_saves(const SaveScene& scene, const std::string& mode, int stride, bool stays) {
  TemporaryDirectory folder;
  const std::string directory = folder / "checkpoints";
  prepare(scene, directory);
  Fault fault{.directory = directory, .mode = mode, .stays = stays, .no_exchange = scene.no_exchange};
  TemporaryDirectory trial;
  Fault well = fault;
  well.directory = trial / "checkpoints";
  std::filesystem::copy(directory, well.directory, std::filesystem::copy_options::recursive);
  const std::vector<std::string> calls = counted_calls(command_of(scene, well.directory), well);
  BOOST_REQUIRE(calls.size() > 40);
  int tried = 0;
  for (size_t i = 0; i < calls.size(); i += static_cast<size_t>(stride)) {
    if (mode == "torn" && calls[i].find("write") == std::string::npos) continue;
    fault.at = static_cast<int>(i) + 1;
    check_one(scene, fault, calls[i]);
    ++tried;
  }
  return tried;
}

int64_t save_with_short_writes(int most_bytes) {
  TemporaryDirectory folder;
  const std::string directory = folder / "checkpoints";
  const auto calls = counted_calls(saver(directory, 1, 1, 0), {.directory = directory, .most_bytes = most_bytes});
  auto found = find_checkpoint(directory, "must", CheckLevel::kChecksums);
  BOOST_REQUIRE_MESSAGE(found.is_ok(), found.status().to_string());
  check_values(*found->checkpoint, fmt::format("writes of {} bytes", most_bytes));
  return std::ranges::count_if(calls, [](const std::string& call) { return call.find("write") != std::string::npos; });
}

}  // namespace altiplano::test
