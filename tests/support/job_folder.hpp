#pragma once
// A folder with a small job as a user has it: job.yaml (a GPT of three blocks with dropout), text packed as text.h5.
// Runs the program in it and reads what it leaves.
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/temporary_directory.hpp"

namespace altiplano::test {

/// Settings are "key=value" with blanks between.
class JobFolder {
 public:
  JobFolder();
  const std::string path() const { return folder_.path(); }
  std::string operator/(const std::string& name) const { return folder_ / name; }
  /// `altiplano ARGUMENTS` in the folder, stdin empty; ended after five minutes.
  CommandResult altiplano(const std::string& arguments) const;
  /// Arguments of a run into folder `run`.
  std::string launch_arguments(int ranks, const std::string& run, const std::string& settings,
                               const std::string& more = "") const;
  std::string plan_arguments(int ranks, const std::string& settings) const;
  /// Fails the test unless the run ends with 0. Its output.
  std::string launch(int ranks, const std::string& run, const std::string& settings,
                     const std::string& more = "") const;
  std::string checkpoint(const std::string& run, int64_t step) const;

 private:
  TemporaryDirectory folder_;
};

/// "parallel.data_parallel_size=2 …"
std::string degrees_text(int data, int tensor, int pipeline);

/// Lines of <run>/metrics.jsonl.
std::vector<nlohmann::json> read_metrics(const std::string& path);
/// Those with a training loss, by step; fails the test when a step stands twice.
std::map<int64_t, nlohmann::json> read_steps(const std::string& path);

/// Every tensor of a checkpoint, whole, by name: its bytes, and its values.
struct SavedTensor {
  std::string bytes;
  std::vector<double> values;
};
std::map<std::string, SavedTensor> read_checkpoint(const std::string& path);
/// Names the tensors whose bits differ; empty: none.
std::string differing_tensors(const std::string& a, const std::string& b);
/// Largest |a-b| / max(1, |b|) over all elements; infinite when a tensor is missing or not finite.
double largest_difference_of_checkpoints(const std::string& a, const std::string& b);

/// The program in the background.
class BackgroundRun {
 public:
  /// Output of both kinds goes to <folder>/NAME.out. `environment`: "NAME=value" with blanks between, quoted for a shell.
  BackgroundRun(const JobFolder& folder, const std::string& arguments, const std::string& name,
                const std::string& environment = "");
  ~BackgroundRun();  ///< kills what still runs
  pid_t launcher() const { return process_; }
  /// The process of a rank; 0 when there is none (yet).
  pid_t rank(int rank) const;
  bool has_ended();
  std::string output() const;
  /// Exit code, 128 + n for signal n; fails the test after `limit`.
  int wait(std::chrono::seconds limit = std::chrono::seconds(120));

 private:
  pid_t process_ = -1;
  int status_ = 0;
  std::string output_path_;
};

/// Waits up to two minutes; fails the test when `condition` never holds.
void wait_until(const std::function<bool()>& condition, const std::string& what);

}  // namespace altiplano::test
