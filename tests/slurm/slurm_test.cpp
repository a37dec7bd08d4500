// On a real Slurm of four nodes (ci/slurm-sandbox): one rank per task of srun, which meet through PMIx and talk by
// comm/ucx or comm/mpi. Skipped, with what is missing, where the sandbox cannot be; a failure then where
// ALTIPLANO_NEEDS_SLURM is set.
#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "framework/base/text.hpp"
#include "tests/slurm/cluster.hpp"

namespace altiplano::test {

namespace {

BOOST_TEST_GLOBAL_FIXTURE(ClusterFixture);

/// A batch script with one step of two tasks on each node; the batch job's output.
CommandResult train_in_batch(const JobFolder& job, const std::string& run, const std::string& settings, int nodes = 2) {
  std::string options;
  for (const std::string& word : split(trim(settings), ' '))
    if (!word.empty()) options += " --set " + word;
  write_bytes(job / (run + ".sbatch"),
              fmt::format("#!/bin/bash\n#SBATCH --nodes={2} --ntasks-per-node=2 --time=5 --output={0}.out\n"
                          "srun --mpi=pmix --nodes={2} --ntasks={3} $ALTIPLANO train -c job.yaml --set run.dir={0}{1}\n"
                          "echo exit code $?\n",
                          run, options, nodes, 2 * nodes));
  CommandResult result = cluster().run(job, fmt::format("sbatch {}.sbatch", run));
  if (result.exit_code != 0) return result;
  wait_for_log(job / (run + ".out"), "\nexit code ");
  result.output = read_bytes(job / (run + ".out"));
  result.exit_code = std::atoi(result.output.c_str() + result.output.rfind("exit code ") + 10);
  return result;
}

void check_equal_to_one_rank(const JobFolder& job, const std::string& run, double allowed, double allowed_in_weights) {
  auto steps = read_steps(job / run + "/metrics.jsonl"), expected = read_steps(job / "one/metrics.jsonl");
  BOOST_TEST(steps.size() == 6u, run);
  const auto is_near = [&](double a, double b) { return std::abs(a - b) <= allowed * std::abs(b); };
  for (const auto& [step, line] : steps)
    for (const char* what : {"loss", "grad_norm"})
      BOOST_TEST(is_near(line[what], expected[step][what]),
                 run << " " << what << ": " << line.dump() << " " << expected[step].dump());
  const double difference = largest_difference_of_checkpoints(job.checkpoint(run, 6), job.checkpoint("one", 6));
  BOOST_TEST(difference <= allowed_in_weights, run << ": weights differ by " << difference);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(slurm)

// In fp64 on device/reference only the order of sums differs.
BOOST_AUTO_TEST_CASE(every_plan_trains_under_sbatch_and_srun_as_one_rank_does) {
  const JobFolder job;
  const std::string exact = "train.precision=fp64 device.kind=reference ";
  job.launch(1, "one", exact + degrees_text(1, 1, 1));
  int number = 0;
  for (const std::string& settings : {degrees_text(2, 2, 1), degrees_text(1, 2, 2) + "comm.check_calls=true",
                                      degrees_text(2, 1, 2) + "parallel.schedule=gpipe",
                                      degrees_text(1, 4, 1) + "parallel.sequence_parallel=false"}) {
    const std::string run = fmt::format("run{}", ++number);
    const auto result = train_in_batch(job, run, exact + settings);
    BOOST_REQUIRE_MESSAGE(result.exit_code == 0, settings << ": " << result.output);
    BOOST_TEST(mentions(result,
                        "4 ranks on 2 hosts (n1: ranks 0-1; n2: ranks 2-3), comm ucx (it connects hosts and notices "
                        "when a rank dies: shared memory within 2 hosts, UCX (eth0) between them)"),
               result.output);
    check_equal_to_one_rank(job, run, 1e-9, 1e-9);
  }
}

BOOST_AUTO_TEST_CASE(four_nodes_train_as_one_rank_does_by_ucx_and_by_mpi_in_two_levels_and_in_one) {
  const JobFolder job;
  const std::string exact = "train.precision=fp64 device.kind=reference ";
  job.launch(1, "one", exact + degrees_text(1, 1, 1));
  for (const char* comm : {"ucx", "mpi"})
    for (const char* two_level : {"true", "false"}) {
      const std::string run = fmt::format("{}_{}", comm, two_level);
      const auto result = train_in_batch(job, run,
                                         exact + degrees_text(4, 1, 2) + "train.micro_batch_size=1 " +
                                             fmt::format("comm.backend={} comm.two_level={}", comm, two_level),
                                         4);
      BOOST_REQUIRE_MESSAGE(result.exit_code == 0, run << ": " << result.output);
      BOOST_TEST(mentions(result, std::string_view(two_level) == "true" ? "(as asked: shared memory within 4 hosts, "
                                                                        : " between all ranks)"),
                 result.output);
      check_equal_to_one_rank(job, run, 1e-9, 1e-9);
    }
}

BOOST_AUTO_TEST_CASE(single_precision_on_the_cpu_is_that_of_one_rank) {
  const JobFolder job;
  job.launch(1, "one", degrees_text(1, 1, 1));
  const auto result = train_in_batch(job, "run", degrees_text(2, 2, 1));
  BOOST_REQUIRE_MESSAGE(result.exit_code == 0, result.output);
  constexpr double kRate = 2e-3, kSteps = 6;  // a weight whose gradient is only rounding may move at the full rate
  check_equal_to_one_rank(job, "run", 1e-4, kSteps * kRate);
}

BOOST_AUTO_TEST_CASE(the_plan_gives_the_same_bits_between_hosts_in_one_level_and_by_shared_memory_on_one) {
  const JobFolder job;
  job.launch(4, "local", degrees_text(2, 2, 1));
  for (const std::string comm : {"mpi", "ucx"}) {
    const auto result = train_in_batch(job, comm, degrees_text(2, 2, 1) + "comm.two_level=false comm.backend=" + comm);
    BOOST_REQUIRE_MESSAGE(result.exit_code == 0, result.output);
    BOOST_TEST(differing_tensors(job.checkpoint(comm, 6), job.checkpoint("local", 6)) == "", comm);
  }
}

BOOST_AUTO_TEST_CASE(tasks_of_one_host_use_shared_memory) {
  const JobFolder job;
  const auto result = cluster().run(job,
                                    "srun --mpi=pmix -N1 -n2 $ALTIPLANO train -c job.yaml --set run.dir=run "
                                    "--set parallel.data_parallel_size=2 --set train.max_steps=1");
  BOOST_TEST(result.exit_code == 0, result.output);
  BOOST_TEST(mentions(result, "2 ranks on 1 host (n1: ranks 0-1), comm shm (all ranks are on one host)"),
             result.output);
}

BOOST_AUTO_TEST_CASE(ranks_are_on_the_hosts_of_their_tasks_at_every_start) {
  const JobFolder job;
  const auto result = cluster().run(job, R"(for i in $(seq 3); do
  srun --mpi=pmix -N2 -n3 -m arbitrary -w n2,n1,n2 $ALTIPLANO train -c job.yaml --set run.dir=run$i --set train.max_steps=1 \
    --set parallel.pipeline_parallel_size=3 | grep "^altiplano"
done)");
  BOOST_TEST(result.exit_code == 0, result.output);
  int starts = 0;
  for (size_t at = 0;
       (at = result.output.find("3 ranks on 2 hosts (n2: rank 0; n1: rank 1; n2: rank 2)", at)) != std::string::npos;
       ++at)
    ++starts;
  BOOST_TEST(starts == 3, result.output);
}

// Tasks dealt out in turn put tensor groups across hosts, and lists out of order put neighbours under other switches.
BOOST_AUTO_TEST_CASE(slots_go_to_ranks_as_hosts_and_switches_have_them_and_train_as_one_rank_does) {
  const JobFolder job;
  const std::string exact = "train.precision=fp64 device.kind=reference ";
  job.launch(1, "one", exact + degrees_text(1, 1, 1));
  const auto train = [&](const std::string& run, const std::string& ranks, const std::string& settings) {
    std::string command = "srun --mpi=pmix " + ranks + " $ALTIPLANO train -c job.yaml --set run.dir=" + run;
    for (const std::string& setting : split(exact + settings, ' '))
      if (!setting.empty()) command += " --set " + setting;
    const auto result = cluster().run(job, command);
    BOOST_REQUIRE_MESSAGE(result.exit_code == 0, result.output);
    check_equal_to_one_rank(job, run, 1e-9, 1e-9);
    return result;
  };
  const auto dealt = train("dealt", "-N2 -n4 -m arbitrary -w n1,n2,n1,n2", degrees_text(2, 2, 1));
  BOOST_TEST(mentions(dealt, "placement 4 ranks on 2 hosts under 1 switch"), dealt.output);
  BOOST_TEST(mentions(dealt, " between hosts (with ranks in their order "), dealt.output);
  const auto listed = train("listed", "-N4 -n4 -m arbitrary -w n1,n3,n2,n4", degrees_text(1, 1, 4));
  BOOST_TEST(mentions(listed, "placement 4 ranks on 4 hosts under 2 switches"), listed.output);
  BOOST_TEST(mentions(listed, " of it between switches (with ranks in their order "), listed.output);
}

namespace {

/// What the cards of two nodes have sent so far.
double sent_bytes() {
  double sum = 0;
  for (const char* node : {"n1", "n2"}) {
    const std::string text = cluster().on_node(node, "cat /proc/net/dev").output;
    std::istringstream fields(text.substr(text.find("eth0:") + 5));
    double number = 0;
    for (int column = 0; column < 9; ++column) fields >> number;  // eight of what was received come first
    sum += number;
  }
  return sum;
}

}  // namespace

// Messages large enough that what carries them does not count. The difference of two runs leaves out what starting,
// saving and Slurm itself send.
BOOST_AUTO_TEST_CASE(network_cards_send_what_the_placement_says_of_a_step) {
  const JobFolder job;
  double sent[2] = {0, 0}, said = 0;
  const int steps[2] = {3, 23};
  for (int run : {0, 1}) {
    const double before = sent_bytes();
    const auto result =
        cluster().run(job, fmt::format("srun --mpi=pmix -N2 -n4 $ALTIPLANO train -c job.yaml --set run.dir=run{} --set "
                                       "train.max_steps={} --set model.hidden_size=264 --set "
                                       "parallel.tensor_parallel_size=2 --set parallel.data_parallel_size=2",
                                       run, steps[run]));
    BOOST_REQUIRE_MESSAGE(result.exit_code == 0, result.output);
    sent[run] = sent_bytes() - before;
    const size_t at = result.output.find("a step sends ");
    BOOST_REQUIRE_MESSAGE(at != std::string::npos, result.output);
    said = std::atof(result.output.c_str() + at + 13) *
           (result.output.find(" MiB between hosts", at) < at + 22 ? 1 << 20 : 1 << 10);
  }
  BOOST_TEST((sent[1] - sent[0]) / (steps[1] - steps[0]) == said, boost::test_tools::tolerance(0.05));
}

BOOST_AUTO_TEST_CASE(tasks_that_cannot_meet_stop_at_once_and_train_nothing) {
  const JobFolder job;
  const auto result = cluster().run(job, "srun --mpi=none -N2 -n4 $ALTIPLANO train -c job.yaml --set run.dir=run", 20);
  BOOST_TEST(result.exit_code == 2, result.output);
  BOOST_TEST(mentions(result,
                      "error: 4 tasks were started, and none of them can reach another: each would be a job of "
                      "its own. Start them with srun --mpi=pmix"),
             result.output);
  BOOST_TEST(!std::filesystem::exists(job / "run"));
}

BOOST_AUTO_TEST_CASE(what_is_wrong_with_a_job_is_said_once_for_all_tasks) {
  const JobFolder job;
  const auto result = cluster().run(job,
                                    "srun --mpi=pmix -N2 -n4 $ALTIPLANO train -c job.yaml --set run.dir=run "
                                    "--set parallel.data_parallel_size=3");
  BOOST_TEST(result.exit_code == 2, result.output);
  int said = 0;  // srun's own lines come where they like
  for (const std::string& line : split(result.output, '\n')) said += line.starts_with("error: ") ? 1 : 0;
  BOOST_TEST(said == 1, result.output);
}

BOOST_AUTO_TEST_CASE(without_srun_a_process_of_an_allocation_is_alone_and_says_how_to_start_all) {
  const JobFolder job;
  const auto result = cluster().run(job,
                                    "salloc -Q -N2 -n4 $ALTIPLANO train -c job.yaml --set run.dir=run "
                                    "--set train.max_steps=1" +
                                        std::string());
  BOOST_TEST(result.exit_code == 0, result.output);
  BOOST_TEST(mentions(result,
                      "note: the job has 4 tasks, and this process is one rank, alone; `srun --mpi=pmix "
                      "altiplano train ...` starts one rank per task"),
             result.output);
}

BOOST_AUTO_TEST_CASE(a_killed_rank_ends_the_step_in_seconds) {
  const JobFolder job;
  const auto result = cluster().run(
      job, fmt::format(
               R"(srun --mpi=pmix -N2 -n4 -w n1,n2 --kill-on-bad-exit=1 $ALTIPLANO train -c job.yaml --set run.dir=run \
  --set train.max_steps=1000000 --set lr_scheduler.decay_steps=100 --set parallel.data_parallel_size=2 --set parallel.tensor_parallel_size=2 >out 2>&1 &
for i in $(seq 600); do grep -q '^step: *20/' out && break; sleep 0.05; done
begin=$(date +%s)
{} exec {} n2 bash -c 'for p in /proc/[0-9]*; do grep -qaz "^train$" $p/cmdline 2>/dev/null && kill -9 ${{p#/proc/}} && exit 0; done; exit 1' || echo no victim
wait $!; code=$?
echo "took $(($(date +%s) - begin)) s"
cat out; exit $code)",
               kSandbox, cluster().path()));
  BOOST_TEST(result.exit_code != 0, result.output);
  BOOST_TEST(!mentions(result, "no victim"), result.output);
  const size_t at = result.output.find("took ");
  BOOST_REQUIRE_MESSAGE(at != std::string::npos, result.output);
  BOOST_TEST(std::atoi(result.output.c_str() + at + 5) < 10, result.output);
}

BOOST_AUTO_TEST_CASE(comm_ucx_names_a_rank_that_died_though_srun_lets_the_others_run) {
  const JobFolder job;
  const auto result = cluster().run(
      job, fmt::format(
               R"(srun --mpi=pmix -N2 -n4 -w n1,n2 --kill-on-bad-exit=0 $ALTIPLANO train -c job.yaml --set run.dir=run \
  --set train.max_steps=1000000 --set lr_scheduler.decay_steps=100 --set parallel.data_parallel_size=2 --set parallel.tensor_parallel_size=2 >out 2>&1 &
for i in $(seq 600); do grep -q '^step: *20/' out && break; sleep 0.05; done
{} exec {} n2 bash -c 'for p in /proc/[0-9]*; do grep -qaz "^train$" $p/cmdline 2>/dev/null && kill -9 ${{p#/proc/}} && exit 0; done; exit 1' || echo no victim
wait $!; code=$?
cat out; exit $code)",
               kSandbox, cluster().path()));
  BOOST_TEST(result.exit_code != 0, result.output);
  BOOST_TEST(!mentions(result, "no victim"), result.output);
  BOOST_TEST(mentions(result, " died: "), result.output);
  BOOST_TEST(!mentions(result, "stopped answering"), result.output);
}

BOOST_AUTO_TEST_CASE(a_network_device_that_is_not_there_is_refused_with_those_that_are) {
  const JobFolder job;
  const auto result = cluster().run(job,
                                    "export UCX_NET_DEVICES=ib7\nsrun --mpi=pmix -N2 -n2 $ALTIPLANO train -c job.yaml "
                                    "--set run.dir=run --set parallel.data_parallel_size=2");
  BOOST_TEST(result.exit_code != 0, result.output);
  BOOST_TEST(mentions(result, "UCX_NET_DEVICES is ib7, this host has eth0, lo"), result.output);
}

BOOST_AUTO_TEST_CASE(doctor_measures_what_messages_cost_within_and_between_hosts) {
  const JobFolder job;
  const auto result = cluster().run(job, R"(export XDG_CACHE_HOME=$PWD/cache
srun --mpi=pmix -N4 --ntasks-per-node=2 $ALTIPLANO doctor --comm --out comm.yaml && cat comm.yaml cache/altiplano/network.yaml)");
  BOOST_TEST(result.exit_code == 0, result.output);
  for (const char* words :
       {"comm      comm/ucx: shared memory within 4 hosts, UCX (eth0) between them\n", "within a host ", "4 pairs, ",
        "between hosts ", "6 pairs, ", "- name: within a host\n", "- {ranks: [0, 2], hosts: [n1, n2], latency: ",
        "cache/altiplano/network.yaml; `cluster: this-machine` plans with it from now on\n", " over comm/ucx\"\n"})
    BOOST_TEST(mentions(result, words), "'" << words << "' not in: " << result.output);
  const std::string train =
      "srun --mpi=pmix -N2 -n2 $ALTIPLANO train -c job.yaml --set run.dir=run --set parallel.data_parallel_size=2 "
      "--set train.max_steps=1 --resume none";
  const std::string note = "note: the network between hosts was not measured, and is planned with as 1.1 GB/s; ";
  const auto measured = cluster().run(job, "XDG_CACHE_HOME=$PWD/cache " + train);
  BOOST_TEST(measured.exit_code == 0, measured.output);
  BOOST_TEST(!mentions(measured, note), measured.output);
  const auto assumed = cluster().run(job, "XDG_CACHE_HOME=$PWD/empty " + train);
  BOOST_TEST(mentions(assumed, note), assumed.output);
}

// As many on each host, and more on the first; more ranks than this are in the long suite.
BOOST_AUTO_TEST_CASE(comm_mpi_and_comm_ucx_keep_their_promises_between_hosts) {
  for (const char* comm : {"mpi", "ucx"})
    for (const char* geometry : {"-N2 -n4", "-N3 -n4"}) check_promises_of_comm(comm, geometry);
}

BOOST_AUTO_TEST_CASE(a_node_can_be_cut_off_powered_off_and_started_again) {
  const auto sandbox = [](const std::string& words) {
    const auto result = run_command(fmt::format("{} {}", kSandbox, words));
    BOOST_TEST(result.exit_code == 0, words << ": " << result.output);
  };
  const auto reaches = [](const char* from, const char* to) {  // refused is reached
    return mentions(cluster().on_node(from, fmt::format("timeout 1 bash -c \"</dev/tcp/{}/22\"", to)), "refused");
  };
  const std::string path = cluster().path();
  BOOST_TEST(reaches("n1", "n2"));
  sandbox(fmt::format("cut {} n1 n2", path));
  BOOST_TEST(!reaches("n1", "n2"));
  sandbox(fmt::format("heal {} n1 n2", path));
  BOOST_TEST(reaches("n1", "n2"));
  sandbox(fmt::format("kill {} n2", path));
  BOOST_TEST(!reaches("n1", "n2"));
  sandbox(fmt::format("boot {} n2", path));
  BOOST_TEST(reaches("n1", "n2"));
  BOOST_TEST(mentions(cluster().on_node("n2", "hostname"), "n2"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
