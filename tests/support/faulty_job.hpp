#pragma once
// One thing that goes wrong with a running job, as a row of a table (fault, instant, victim), and what must then hold
// for every job: an end within the stated time, the right exit code, the first failing rank on the last line, no
// process and no shared memory left.
#include <fmt/format.h>

#include <memory>
#include <span>
#include <string>

#include "tests/support/contains.hpp"
#include "tests/support/job_folder.hpp"

namespace altiplano::test {

constexpr int kLauncher = -1;

struct Instant {
  int64_t step = 0;      ///< after this step is in the metrics; 0: counted from the start
  int milliseconds = 0;  ///< and then this much later; from the start, it counts from the victim's first moment
};

struct RunFault {
  const char* name;
  int signal = 0;  ///< sent to the victim; 0: the device does it (`device`)
  Instant instant;
  int victim = kLauncher;
  const char* device = "";  ///< ALTIPLANO_TEST_FAULT of device/faulty
  int exit_code = 0;
  const char* last_line = "";  ///< parts of the last line printed, divided by '|'
  int signals = 1;             ///< how often it is sent, 20 ms apart
  int other_exit_code = -1;    ///< as good as exit_code, whatever the last line is
};

/// A small job of four ranks that would go on for ever; the shared memory of its ranks lies in <folder>/shm.
class FaultyJob {
 public:
  FaultyJob();
  const JobFolder& folder() const { return folder_; }
  std::string arguments(const std::string& run, const std::string& settings = "") const;
  std::string environment(const std::string& device_fault = "") const;
  /// Runs the job into folder NAME and lets the fault happen; checks all that the row says. False: the victim was gone
  /// before the fault could happen.
  bool check(const RunFault& fault, const std::string& settings = "") const;
  /// Several rows; while one run comes to its end the next begins.
  void check_together(std::span<const RunFault> faults) const;
  /// Starts two jobs of two ranks at the same moment, `rounds` times. Both do their steps; in every third round the
  /// first one is killed on the way, which the second must not notice.
  void check_pairs(int rounds) const;
  /// No process whose working folder is this job's is there, nor a file in <folder>/shm.
  void check_nothing_left(const std::string& name) const;
  int64_t steps_done(const std::string& run) const;

 private:
  std::unique_ptr<BackgroundRun> start(const RunFault& fault, const std::string& settings) const;
  bool cause(const RunFault& fault, BackgroundRun& run) const;
  void check_end(const RunFault& fault, BackgroundRun& run) const;
  JobFolder folder_;
};

/// A run whose folder is a small file system of its own, which can be filled while it runs. Needs root.
class SmallDisk {
 public:
  /// Can this process make one? Says why not as a test message.
  static bool is_possible();
  /// To be put into the environment of a BackgroundRun: mounts `size` ("2m") at <folder>/<run> for it alone.
  static std::string environment(const std::string& run, const std::string& size);
  SmallDisk(const JobFolder& folder, const std::string& run, const BackgroundRun& process)
      : path_(fmt::format("/proc/{}/root{}/{}", process.launcher(), folder.path(), run)) {}
  /// The run's folder as the run sees it.
  const std::string& path() const { return path_; }
  /// Leaves `free_bytes` at most; 0: not one.
  void fill(int64_t free_bytes = 0) const;
  void release() const;

 private:
  std::string path_;
};

/// The last line that is not empty.
std::string last_line(std::string text);

}  // namespace altiplano::test
