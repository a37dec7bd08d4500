#include "tests/support/faulty_job.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <thread>

#include "framework/base/text.hpp"

namespace altiplano::test {

namespace {

namespace fs = std::filesystem;

/// What is stated (docs/troubleshooting.md) is 3 s; the rest is for a machine that others use too.
constexpr std::chrono::seconds kDown{20};

void sleep_ms(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

/// Processes whose working folder is `path`.
std::vector<pid_t> processes_in(const std::string& path) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const auto pid = parse_int(entry.path().filename().string());
    if (pid && fs::read_symlink(entry.path() / "cwd", error) == path) found.push_back(static_cast<pid_t>(*pid));
  }
  return found;
}

pid_t wait_for_victim(BackgroundRun& run, int victim) {
  if (victim == kLauncher) return run.launcher();
  pid_t process = 0;
  wait_until([&] { return run.has_ended() || (process = run.rank(victim)) > 0; }, "the victim is there");
  return process;
}

}  // namespace

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

FaultyJob::FaultyJob() {
  fs::create_directories(folder_ / "shm");
  fs::create_directories(folder_ / "plugins");
  fs::create_symlink(ALTIPLANO_BINARY_DIR "/fixtures/plugins/device_faulty.so", folder_ / "plugins/device-faulty.so");
}

std::string FaultyJob::arguments(const std::string& run, const std::string& settings) const {
  return folder_.launch_arguments(4, run,
                                  "train.max_steps=1000000 parallel.data_parallel_size=2 "
                                  "parallel.tensor_parallel_size=2 parallel.pipeline_parallel_size=1 "
                                  "model.num_hidden_layers=1 comm.timeout_seconds=2 " +
                                      settings);
}

std::string FaultyJob::environment(const std::string& device_fault) const {
  return fmt::format("ALTIPLANO_SHM_DIR={} ALTIPLANO_TEST_FAULT='{}'", folder_ / "shm", device_fault);
}

int64_t FaultyJob::steps_done(const std::string& run) const {
  auto lines = read_metrics(folder_ / run + "/metrics.jsonl");
  return lines.empty() ? 0 : lines.back()["step"].get<int64_t>();
}

std::unique_ptr<BackgroundRun> FaultyJob::start(const RunFault& fault, const std::string& settings) const {
  const bool by_device = fault.signal == 0;
  return std::make_unique<BackgroundRun>(
      folder_, arguments(fault.name, (by_device ? "device.kind=faulty plugins.path=[plugins] " : "") + settings),
      fault.name, environment(fault.device));
}

bool FaultyJob::cause(const RunFault& fault, BackgroundRun& run) const {
  if (fault.signal == 0) return true;  // the device's part
  if (fault.instant.step > 0)
    wait_until([&] { return run.has_ended() || steps_done(fault.name) >= fault.instant.step; }, "the step is done");
  const pid_t victim = wait_for_victim(run, fault.victim);
  sleep_ms(fault.instant.milliseconds);
  bool happened = true;
  for (int i = 0; i < fault.signals; ++i) {
    if (i > 0) sleep_ms(20);
    const bool sent = victim > 0 && !run.has_ended() && kill(victim, fault.signal) == 0;
    happened = i == 0 ? sent : happened;
  }
  return happened;
}

void FaultyJob::check_end(const RunFault& fault, BackgroundRun& run) const {
  const int code = run.wait(kDown);
  if (code == fault.other_exit_code && code != fault.exit_code) return;
  BOOST_TEST(code == fault.exit_code, fault.name << ": exit code " << code << ": " << run.output());
  const std::string last = last_line(run.output());
  for (const std::string& part : split(fault.last_line, '|'))
    BOOST_TEST(contains(last, part), fault.name << ": " << part << " not in: " << run.output());
}

bool FaultyJob::check(const RunFault& fault, const std::string& settings) const {
  const auto run = start(fault, settings);
  if (!cause(fault, *run)) return false;
  check_end(fault, *run);
  check_nothing_left(fault.name);
  return true;
}

void FaultyJob::check_together(std::span<const RunFault> faults) const {
  std::vector<std::unique_ptr<BackgroundRun>> runs;
  for (const RunFault& fault : faults) {
    runs.push_back(start(fault, ""));
    BOOST_TEST(cause(fault, *runs.back()), fault.name << " never happened");
  }
  for (size_t i = 0; i < faults.size(); ++i) check_end(faults[i], *runs[i]);
  check_nothing_left(faults.back().name);
}

void FaultyJob::check_pairs(int rounds) const {
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::unique_ptr<BackgroundRun>> runs;
    std::vector<std::string> names;
    for (const char* which : {"a", "b"}) {
      names.push_back(fmt::format("{}{}", which, round));
      runs.push_back(std::make_unique<BackgroundRun>(
          folder_, folder_.launch_arguments(2, names.back(), "train.max_steps=3 model.num_hidden_layers=1"),
          names.back(), environment()));
    }
    const bool is_killed = round % 3 == 2;
    if (is_killed) {
      sleep_ms(150 * (round % 7));
      if (!runs[0]->has_ended()) kill(runs[0]->launcher(), SIGKILL);
    }
    for (size_t i = 0; i < runs.size(); ++i) {
      const int code = runs[i]->wait();
      BOOST_TEST((code == 0 || (is_killed && i == 0)), names[i] << ": " << runs[i]->output());
    }
    BOOST_TEST(steps_done(names[1]) == 3);
    check_nothing_left(names[1]);
    for (const std::string& name : names) fs::remove_all(folder_ / name);
  }
}

void FaultyJob::check_nothing_left(const std::string& name) const {
  // A killed launcher's ranks die a moment after it; everything else is gone before the launcher is.
  std::vector<pid_t> left = processes_in(folder_.path());
  for (int i = 0; i < 100 && !left.empty(); ++i) {
    sleep_ms(20);
    left = processes_in(folder_.path());
  }
  BOOST_TEST(left.empty(), name << ": " << left.size() << " processes are left");
  BOOST_TEST(fs::is_empty(folder_ / "shm"), name << " left shared memory");
}

// ---- SmallDisk ----

bool SmallDisk::is_possible() {
  const bool possible = run_command("unshare -m true").exit_code == 0;
  if (!possible) BOOST_TEST_MESSAGE("skipped: mounting a small file system needs root");
  return possible;
}

std::string SmallDisk::environment(const std::string& run, const std::string& size) {
  return fmt::format("unshare -m sh -c 'mkdir -p {0} && mount -t tmpfs -o size={1} none {0} && exec \"$@\"' sh", run,
                     size);
}

void SmallDisk::fill(int64_t free_bytes) const {
  std::FILE* file = std::fopen((path_ + "/filler").c_str(), "wb");
  BOOST_REQUIRE(file != nullptr);
  std::setvbuf(file, nullptr, _IONBF, 0);
  const auto left = [&] { return static_cast<int64_t>(fs::space(path_).available); };
  for (const std::string block(4096, 'x'); left() > free_bytes && std::fwrite(block.data(), 1, 4096, file) == 4096;) {
  }
  std::fclose(file);
}

void SmallDisk::release() const {
  fs::remove(path_ + "/filler");
}

}  // namespace altiplano::test
