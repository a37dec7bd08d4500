#pragma once
// A run under `altiplano submit` in the sandbox: starts it, waits for what it says, compares where it ends.
#include <cmath>

#include "tests/slurm/cluster.hpp"

namespace altiplano::test {

/// fp64 on device/reference: only the order of sums differs between plans.
inline constexpr const char* kExactJob = "train.precision=fp64 device.kind=reference parallel.planner=heuristic ";

class SupervisedRun {
 public:
  /// `settings` as for JobFolder::launch, for `nodes` nodes with one rank each.
  SupervisedRun(const JobFolder& job, std::string run, int nodes, const std::string& settings)
      : job_(job), run_(std::move(run)) {
    wait_until_all_nodes_are_idle(job);
    std::string words = settings.find("slurm.time=") == std::string::npos ? " --set slurm.time=10" : "";
    for (const std::string& word : split(trim(settings), ' '))
      if (!word.empty()) words += " --set " + word;
    const auto result =
        cluster().run(job, fmt::format("$ALTIPLANO submit job.yaml --set run.dir={} --set slurm.nodes={} --set "
                                       "slurm.heartbeat_seconds=4{}",
                                       run_, nodes, words));
    BOOST_REQUIRE_MESSAGE(result.exit_code == 0, result.output);
    const size_t at = result.output.find("submitted ");
    BOOST_REQUIRE_MESSAGE(at != std::string::npos, result.output);
    id_ = trim(result.output.substr(at + 10, result.output.find('\n', at) - at - 10));
  }
  ~SupervisedRun() { (void)cluster().run(job_, "scancel " + id_); }

  const std::string& id() const { return id_; }
  std::string story() const {
    const std::string path = job_ / run_ + "/story.log";
    return std::filesystem::exists(path) ? read_bytes(path) : std::string();
  }
  void wait_for_story(const std::string& words) const {
    wait_until([&] { return story().find(words) != std::string::npos; }, words + " in the story:\n" + story());
  }
  /// The last one that the first rank has written down, in any start.
  int64_t last_step() const {
    int64_t last = 0;
    for (const auto& line : read_metrics(job_ / run_ + "/metrics.jsonl"))
      if (line.contains("loss")) last = line.at("step").get<int64_t>();
    return last;
  }
  void wait_for_step(int64_t step) const {
    wait_until([&] { return last_step() >= step; }, fmt::format("step {}", step));
  }
  /// The supervisor's last words; Slurm itself may wait for a dead node's answer for half a minute more.
  void wait_until_done() const { wait_for_story("all ranks agreed that the run is done: exit code 0"); }
  void wait_until_gone() const {
    wait_until([&] { return trim(cluster().run(job_, "squeue -h -j " + id_).output).empty(); }, "the end of the job");
  }
  std::string host_of_batch() const { return trim(cluster().run(job_, "squeue -h -o %B -j " + id_).output); }

  /// Every step stands once, with the losses and weights of the undisturbed run.
  void check_equal(const std::string& undisturbed, int64_t steps, double allowed) const {
    auto mine = read_steps(job_ / run_ + "/metrics.jsonl"),
         expected = read_steps(job_ / undisturbed + "/metrics.jsonl");
    BOOST_TEST(mine.size() == static_cast<size_t>(steps), run_ << "\n" << story());
    const double loss = mine[steps]["loss"], right = expected[steps]["loss"];
    BOOST_TEST(std::abs(loss - right) <= allowed * std::abs(right), run_ << ": " << loss << " " << right);
    const double difference =
        largest_difference_of_checkpoints(job_.checkpoint(run_, steps), job_.checkpoint(undisturbed, steps));
    BOOST_TEST(difference <= allowed, run_ << ": weights differ by " << difference << "\n" << story());
  }
  /// The last start went on from the newest checkpoint that there was when step `seen` was over.
  void check_repeats_little(int64_t seen, int64_t every) const {
    const std::string words = "the newest checkpoint is that of step ", all = story();
    const std::string last_start = all.substr(std::min(all.size(), all.rfind(": start ")));
    const size_t at = last_start.find(words);  // none where there was none
    const int64_t begin = at == std::string::npos ? 0 : std::atoll(last_start.c_str() + at + words.size());
    BOOST_TEST(begin >= (seen - 1) / every * every, "step " << seen << " was over\n"
                                                            << all);  // saved before the next one
  }
  bool tells(const std::string& words) const { return story().find(words) != std::string::npos; }

 private:
  const JobFolder& job_;
  std::string run_, id_;
};

}  // namespace altiplano::test
