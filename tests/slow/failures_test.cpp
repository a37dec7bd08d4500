// The long form of tests/integration/failures_test.cpp: faults at random instants, and many pairs of jobs.
// ALTIPLANO_TEST_SEED=N repeats a run of it, ALTIPLANO_TEST_ROUNDS=N makes it longer or shorter.
#include <signal.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "tests/support/faulty_job.hpp"

namespace altiplano::test {

namespace {

constexpr int kRanks = 4, kSaved = 75, kStuck = 124;

int number_in_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

/// What must be said of a fault; the texts live as long as this.
struct RandomFault {
  std::string name, last_line;
  RunFault fault;
};

bool is_stop_signal(int signal) {
  return signal != SIGKILL && signal != SIGSEGV && signal != SIGSTOP;
}

RandomFault random_fault(std::mt19937& random, int round) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const int signals[] = {SIGKILL, SIGKILL, SIGSEGV, SIGSTOP, SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP};
  RandomFault it;
  RunFault& fault = it.fault;
  fault.signal = signals[below(9)];
  const bool has_launcher_case = fault.signal == SIGKILL || is_stop_signal(fault.signal);
  fault.victim = has_launcher_case && below(3) == 0 ? kLauncher : below(kRanks);
  fault.instant = below(2) == 0 ? Instant{0, below(1500)} : Instant{1 + below(5), below(60)};
  it.name = fmt::format("r{}-signal{}-victim{}-step{}-{}ms", round, fault.signal, fault.victim, fault.instant.step,
                        fault.instant.milliseconds);
  if (is_stop_signal(fault.signal)) {
    fault.exit_code = kSaved;
    it.last_line = " again to go on";  // after a step, or before the first
    if (fault.victim != kLauncher && fault.signal != SIGINT) fault.signals = 1 + below(3);
    if (fault.victim == kLauncher) fault.other_exit_code = 128 + fault.signal;  // before its first instruction
  } else if (fault.signal == SIGSTOP) {
    fault.exit_code = kStuck;
    it.last_line = fmt::format("error: rank {} (", fault.victim);
  } else {
    fault.exit_code = 128 + fault.signal;
    if (fault.victim != kLauncher)
      it.last_line = fmt::format("error: rank {} (|, local {}) was killed by signal {} (", fault.victim, fault.victim,
                                 fault.signal);
  }
  return it;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(failures)

BOOST_AUTO_TEST_CASE(faults_at_random_instants_end_the_run_in_time_with_their_cause_and_it_can_go_on) {
  const int seed = number_in_environment("ALTIPLANO_TEST_SEED", static_cast<int>(std::random_device{}() >> 2));
  BOOST_TEST_MESSAGE("ALTIPLANO_TEST_SEED=" << seed);
  std::mt19937 random(static_cast<unsigned>(seed));
  FaultyJob job;
  int happened = 0;
  const int rounds = number_in_environment("ALTIPLANO_TEST_ROUNDS", 150);
  for (int round = 0; round < rounds; ++round) {
    RandomFault it = random_fault(random, round);
    it.fault.name = it.name.c_str();
    it.fault.last_line = it.last_line.c_str();
    BOOST_TEST_CONTEXT("seed " << seed << ", " << it.name) {
      happened += job.check(it.fault, "checkpoint.every_steps=2");
      const int64_t end = job.steps_done(it.name) + 2;
      job.folder().launch(kRanks, it.name,
                          fmt::format("train.max_steps={} model.num_hidden_layers=1 parallel.data_parallel_size=2 "
                                      "parallel.tensor_parallel_size=2 parallel.pipeline_parallel_size=1",
                                      end));
      auto steps = read_steps(job.folder() / it.name + "/metrics.jsonl");
      BOOST_TEST(steps.size() == static_cast<size_t>(end));
    }
    std::filesystem::remove_all(job.folder() / it.name);
  }
  BOOST_TEST(happened > rounds * 3 / 4);
}

BOOST_AUTO_TEST_CASE(fifty_pairs_of_jobs_started_together_do_not_disturb_each_other) {
  FaultyJob().check_pairs(50);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
