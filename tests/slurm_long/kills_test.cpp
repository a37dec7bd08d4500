// What may happen to a job for weeks, on a real Slurm (ci/test --slurm-long): each run ends as if nothing had happened,
// and its story says what did.
#include <functional>
#include <thread>

#include "tests/slurm/supervised_run.hpp"

namespace altiplano::test {

namespace {

BOOST_TEST_GLOBAL_FIXTURE(ClusterFixture);

constexpr int64_t kSteps = 300, kEvery = 10;

/// The undisturbed run by one rank, once for all tests; a job folder for each.
struct Undisturbed {
  JobFolder job;
  std::string settings = fmt::format("{}train.max_steps={} checkpoint.every_steps={} ", kExactJob, kSteps, kEvery);
  Undisturbed() { job.launch(1, "one", settings); }
  static const Undisturbed& run() {
    static const Undisturbed one;
    return one;
  }
};

SupervisedRun started(const std::string& name, int nodes, const std::string& more = "") {
  const Undisturbed& one = Undisturbed::run();
  return SupervisedRun(one.job, name, nodes, one.settings + more);
}

constexpr double kAllowed = 1e-6;

/// A shell on the node that calls COMMAND with the process of its first rank.
void on_first_rank(const std::string& node, const std::string& command) {
  const auto result = cluster().on_node(
      node, "for p in /proc/[0-9]*; do tr \"\\0\" \" \" <$p/cmdline 2>/dev/null | grep -q \" train -c \" && " +
                command + " ${p#/proc/} && exit 0; done; exit 1");
  BOOST_REQUIRE_MESSAGE(result.exit_code == 0, command << ": " << result.output);
}

/// In the middle of the run something `happens`: it ends with the undisturbed run's weights, and few steps twice.
void survive(const SupervisedRun& run, const std::function<void()>& happens) {
  run.wait_for_step(20);
  const int64_t seen = run.last_step();
  happens();
  run.wait_until_done();
  run.check_repeats_little(seen, kEvery);
  run.check_equal("one", kSteps, kAllowed);
}

/// Stops the thread PROCESS and no other thread of its process, until that is killed.
constexpr const char* kStopThread = R"(import ctypes, os, sys
c, process = ctypes.CDLL(None, use_errno=True), int(sys.argv[1])
SEIZE, INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000
if os.fork() > 0: os._exit(0)
for request in SEIZE, INTERRUPT:
    if c.ptrace(request, process, None, None) != 0: sys.exit(os.strerror(ctypes.get_errno()))
while not os.WIFSIGNALED(os.waitpid(process, WALL)[1]): pass
)";

}  // namespace

BOOST_AUTO_TEST_SUITE(kills)

BOOST_AUTO_TEST_CASE(power_fails_on_a_node_at_any_instant) {
  for (int i = 0; i < 5; ++i) {
    const std::string name = fmt::format("power{}", i);
    {
      const SupervisedRun run = started(name, 3);
      run.wait_for_step(10 + 37 * i);
      std::this_thread::sleep_for(std::chrono::milliseconds(13 * i));
      const int64_t seen = run.last_step();
      sandbox("kill", "n2");
      run.wait_until_done();
      run.check_repeats_little(seen, kEvery);
      BOOST_TEST(run.tells("missing: n2; 2 nodes left"), run.story());
      run.check_equal("one", kSteps, kAllowed);
    }
    sandbox("boot", "n2");
  }
}

BOOST_AUTO_TEST_CASE(a_spare_node_takes_the_place_of_a_dead_one) {
  {
    const SupervisedRun run = started("spare", 3, "slurm.spare_nodes=1");
    survive(run, [] { sandbox("kill", "n3"); });
    BOOST_TEST(run.tells(".1: 3 ranks on 3 nodes (n1, n2, n4)"), run.story());
  }
  sandbox("boot", "n3");
}

BOOST_AUTO_TEST_CASE(the_node_of_the_script_dies_and_an_agent_requeues_the_job) {
  {
    const SupervisedRun run = started("first", 3);
    survive(run, [&] {
      const std::string first = run.host_of_batch();
      sandbox("kill", first);
      run.wait_for_story("its node is given up and job " + run.id() + " requeued");
      sandbox("boot", first);
    });
  }
}

BOOST_AUTO_TEST_CASE(too_few_nodes_left_means_the_queue) {
  {
    const SupervisedRun run = started("few", 3, "slurm.min_nodes=3");
    survive(run, [&] {
      sandbox("kill", "n3");
      run.wait_for_story("2 nodes left, slurm.min_nodes is 3: the job is requeued");  // it ends on n4
    });
  }
  sandbox("boot", "n3");
}

BOOST_AUTO_TEST_CASE(a_cable_that_is_unplugged_for_a_moment_is_no_loss) {
  const SupervisedRun run = started("moment", 2);
  run.wait_for_step(20);
  sandbox("cut", "n2");
  std::this_thread::sleep_for(std::chrono::seconds(2));
  sandbox("heal", "n2");
  run.wait_until_done();
  BOOST_TEST(!run.tells("given up"), run.story());
  run.check_equal("one", kSteps, kAllowed);
}

BOOST_AUTO_TEST_CASE(a_node_that_was_cut_off_and_comes_back_damages_nothing) {
  const SupervisedRun run = started("cut", 3);
  survive(run, [&] {
    sandbox("cut", "n3");
    run.wait_for_story("missing: n3; 2 nodes left");
    sandbox("heal", "n3");
  });
  const auto verified = Undisturbed::run().job.altiplano("ckpt verify cut/checkpoints");
  BOOST_TEST(verified.exit_code == 0, verified.output);
}

BOOST_AUTO_TEST_CASE(slurms_daemon_of_a_node_dies_and_the_tasks_go_on) {
  {
    const SupervisedRun run = started("daemon", 3);
    run.wait_for_step(20);
    (void)cluster().on_node("n3", fmt::format("kill -9 $(cat {}/run/n3.own)", cluster().path()));
    run.wait_until_done();
    BOOST_TEST(run.tells(".0: 3 ranks"), run.story());
    BOOST_TEST(!run.tells("given up"), run.story());
    run.check_equal("one", kSteps, kAllowed);
  }
  sandbox("kill", "n3");
  sandbox("boot", "n3");
}

BOOST_AUTO_TEST_CASE(a_rank_is_killed_and_all_nodes_start_again) {
  const SupervisedRun run = started("rank", 3);
  survive(run, [] { on_first_rank("n3", "kill -9"); });
  BOOST_TEST(run.tells("no rank's node is missing, srun's exit code is "), run.story());
  BOOST_TEST(run.tells(".1: 3 ranks on 3 nodes"), run.story());
}

BOOST_AUTO_TEST_CASE(a_rank_whose_process_is_stopped_is_named_and_the_run_goes_on_without_waiting_for_it) {
  const SupervisedRun run = started("stopped", 3, "slurm.stall_seconds=8");
  survive(run, [] { on_first_rank("n3", "kill -STOP"); });
  BOOST_TEST(run.tells("rank 2 on n3 says nothing for 8 s "), run.story());
  BOOST_TEST(!run.tells("given up"), run.story());
  BOOST_TEST(run.tells(".1: 3 ranks on 3 nodes"), run.story());
}

// In a step it is the one that does nothing; where it was stopped while it waited, all wait.
BOOST_AUTO_TEST_CASE(a_rank_that_lives_and_does_nothing_is_noticed_long_before_the_others_give_up) {
  const SupervisedRun run =
      started("hung", 3, "slurm.stall_seconds=8 comm.timeout_seconds=600 checkpoint.every_steps=0");
  const std::string script = Undisturbed::run().job / "stop_thread.py";
  write_bytes(script, kStopThread);
  run.wait_for_step(20);
  on_first_rank("n3", fmt::format("setsid python3 {} </dev/null >{}.log 2>&1", script, script));
  run.wait_until_done();
  BOOST_TEST((run.tells("rank 2 on n3 does nothing for 8 s in step ") ||
              run.tells("all 3 ranks wait for each other for 8 s in step ")),
             run.story());
  run.check_equal("one", kSteps, kAllowed);
}

// A site may have Slurm send the signal that the job asked for, or TERM to the tasks and nothing to the script.
BOOST_AUTO_TEST_CASE(a_job_of_a_higher_partition_takes_the_nodes_and_the_run_goes_on_when_they_are_free) {
  const JobFolder& job = Undisturbed::run().job;
  for (const char* parameters : {"preempt_send_user_signal", "idle_on_node_suspend"}) {
    const auto configured = cluster().run(
        job,
        fmt::format("sed -i 's/^SlurmctldParameters=.*/SlurmctldParameters={}/' $SLURM_CONF && scontrol reconfigure",
                    parameters));
    BOOST_REQUIRE_MESSAGE(configured.exit_code == 0, configured.output);
    const SupervisedRun run = started(std::string("preempted_by_") + parameters, 2);
    run.wait_for_step(20);
    const auto taken = cluster().run(
        job, "sbatch -p high -N4 --ntasks-per-node=4 --time=1 --output=/dev/null --wrap='sleep 5' --parsable");
    BOOST_REQUIRE_MESSAGE(taken.exit_code == 0, taken.output);
    run.wait_for_story("all 2 ranks agreed after step ");
    const int64_t seen = run.last_step();
    run.wait_until_done();
    BOOST_TEST(run.tells(fmt::format("all 2 ranks agreed after step {}: saved and stopped", seen)), run.story());
    BOOST_TEST(
        run.tells(".1.0: 2 ranks on 2 nodes (n1, n2), the newest checkpoint is that of step " + fmt::to_string(seen)),
        run.story());
    run.check_equal("one", kSteps, kAllowed);
  }
}

BOOST_AUTO_TEST_CASE(a_job_that_is_cancelled_saves_and_does_not_come_back) {
  const SupervisedRun run = started("cancelled", 2);
  run.wait_for_step(20);
  (void)cluster().run(Undisturbed::run().job, "scancel " + run.id());
  run.wait_until_gone();
  BOOST_TEST(run.tells("saved and stopped"), run.story());
  BOOST_TEST(!run.tells("requeued"), run.story());
  BOOST_TEST(trim(cluster().run(Undisturbed::run().job, "squeue -h -t all -o %T -j " + run.id()).output) ==
             "CANCELLED");
}

BOOST_AUTO_TEST_CASE(the_operator_requeues_and_it_goes_on) {
  const SupervisedRun run = started("operator", 2);
  run.wait_for_step(20);
  (void)cluster().run(Undisturbed::run().job, "scontrol requeue " + run.id());
  run.wait_until_done();
  BOOST_TEST(run.tells(fmt::format("job {}.1", run.id())), run.story());
  run.check_equal("one", kSteps, kAllowed);
}

// Slurm 22.05 tells its end to who asks; no signal is sent. Two ranks on two nodes do as two on one: the same plan.
BOOST_AUTO_TEST_CASE(a_minute_is_over_and_the_next_one_goes_on_as_if_nothing_had_been) {
  const JobFolder job;
  const std::string long_run = std::string(kExactJob) +
                               "train.max_steps=1000000 lr_scheduler.decay_steps=2000 checkpoint.every_steps=0 "
                               "comm.two_level=false ";
  const SupervisedRun run(job, "minute", 2, long_run + "slurm.time=1 slurm.signal_seconds=0");
  run.wait_for_story("saved and stopped");
  const int64_t stopped = run.last_step();
  run.wait_for_story(fmt::format("start {}.1.0", run.id()));
  run.wait_for_step(stopped + 20);
  (void)cluster().run(job, "scancel " + run.id());
  run.wait_until_gone();
  const int64_t end = run.last_step();
  BOOST_TEST(run.tells(fmt::format("all 2 ranks agreed after step {}: saved and stopped", stopped)), run.story());
  BOOST_TEST(run.tells("agreed that they have saved and stop: the job is requeued"), run.story());
  const std::string first = read_bytes(job / fmt::format("minute/logs/job-{}.0.log", run.id())),
                    second = read_bytes(job / fmt::format("minute/logs/job-{}.1.log", run.id()));
  BOOST_TEST(first.find(" until the end of the time given") != std::string::npos, first);
  BOOST_TEST(first.find("as asked and saved (exit code 75)") != std::string::npos, first);
  BOOST_TEST(first.find("checkpoint step ") == first.rfind("checkpoint step "), first);  // once
  BOOST_TEST(first.find(" heard; ") == std::string::npos, first);
  BOOST_TEST(second.find(fmt::format("resumed   from step {} in ", stopped)) != std::string::npos, second);
  job.launch(2, "undisturbed", long_run + fmt::format("train.max_steps={}", end));
  run.check_equal("undisturbed", end, 0);
  const auto mine = read_steps(job / "minute/metrics.jsonl"), expected = read_steps(job / "undisturbed/metrics.jsonl");
  for (const auto& [step, line] : expected)
    for (const char* what : {"lr", "tokens", "loss"}) BOOST_TEST(mine.at(step).at(what) == line.at(what), step);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
