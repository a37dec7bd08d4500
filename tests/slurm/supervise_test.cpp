// altiplano submit, altiplano supervise, altiplano status and altiplano logs on a real Slurm: what they say, a node
// that dies, a job that is requeued.
#include "tests/slurm/supervised_run.hpp"

namespace altiplano::test {

BOOST_AUTO_TEST_SUITE(slurm_supervise)

BOOST_AUTO_TEST_CASE(a_job_with_an_odd_name_is_submitted_watched_and_asked_about_and_strangers_are_refused) {
  const JobFolder job;
  write_bytes(job / "odd.sh",
              R"($ALTIPLANO submit job.yaml --set 'run.dir=runs/a $$b' --set slurm.nodes=2 --set slurm.time=5 \
  --set "slurm.job_name=it's \"\$\$x\" 50%" --set train.max_steps=1000000 --set lr_scheduler.decay_steps=100 -- --comment='a b'
)");
  wait_until_all_nodes_are_idle(job);
  const auto submitted = cluster().run(job, ". ./odd.sh");
  BOOST_REQUIRE_MESSAGE(submitted.exit_code == 0, submitted.output);
  const std::string run = job / "runs/a $b", id = trim(split(submitted.output, '\n').at(0)).substr(10);
  wait_for_log(run + "/metrics.jsonl", "\"step\"");
  const auto asked = cluster().run(job, fmt::format("squeue -h -j {} -o '%j|%k'\n$ALTIPLANO status 'runs/a $b'\n"
                                                    "$ALTIPLANO logs 'runs/a $b' --rank 1 --path",
                                                    id));
  for (const std::string& words :
       {std::string("it's \"$x\" 50%|a b\n"), "job       " + id + ", RUNNING on n1, n2, first start, ends in 0:0",
        fmt::format("/logs/job-{}.0.0/rank-1.log\n", id)})
    BOOST_TEST(mentions(asked, words), "'" << words << "' not in: " << asked.output);
  // A process of another job on the same host: it finds the port, not the secret.
  const std::string story = read_bytes(run + "/story.log");
  const size_t at = story.find("heartbeats on ") + 14, colon = story.find(':', at);
  const std::string host = story.substr(at, colon - at),
                    port = story.substr(colon + 1, story.find('\n', at) - colon - 1);
  const auto stranger =
      cluster().on_node("n2", fmt::format("exec 3<>/dev/tcp/{}/{}; echo HELLO guess n2 >&3; cat <&3", host, port));
  BOOST_TEST(trim(stranger.output) == "NO");
  wait_for_log(run + "/story.log", " was refused: it does not know the job's secret");
  // Nobody's command line has it.
  const auto arguments = cluster().on_node("n2", "cat /proc/[0-9]*/cmdline | tr \"\\0\" \" \"");
  BOOST_TEST(mentions(arguments, "agent --run"), arguments.output);
  BOOST_TEST(!mentions(arguments, "SECRET"), arguments.output);
  // Asked to stop from outside, it goes on by itself.
  (void)cluster().run(job, "scancel --signal=USR1 " + id);
  wait_for_log(run + "/story.log", "all ranks agreed that they have saved and stop: the job is requeued");
  wait_for_log(run + fmt::format("/logs/job-{}.1.log", id), "resumed   from step ");
  (void)cluster().run(job, "scancel " + id);
  wait_for_log(run + "/story.log", "nothing is left to do");
}

BOOST_AUTO_TEST_CASE(a_node_that_dies_is_left_out_and_the_run_ends_as_if_nothing_had_happened) {
  const JobFolder job;
  const std::string settings = std::string(kExactJob) + "train.max_steps=100 checkpoint.every_steps=10 ";
  job.launch(1, "one", settings);
  {
    const SupervisedRun run(job, "run", 3, settings);
    run.wait_for_step(15);
    sandbox("kill", "n3");
    run.wait_until_done();
    BOOST_TEST(run.tells("nothing is heard from n3 for 4 s: it is given up"), run.story());
    BOOST_TEST(run.tells("missing: n3; 2 nodes left, going on with them"), run.story());
    BOOST_TEST(run.tells(".1: 2 ranks on 2 nodes (n1, n2), the newest checkpoint is that of step "), run.story());
    run.check_equal("one", 100, 1e-6);
  }
  sandbox("boot", "n3");
}

// Each as a person sends it off in the repository's folder, all at once: while the one that is signalled waits in the
// queue again, the others run.
BOOST_AUTO_TEST_CASE(the_example_scripts_run_as_they_stand_and_a_signalled_one_saves_requeues_and_goes_on) {
  const JobFolder job;
  namespace fs = std::filesystem;
  const fs::path source = ALTIPLANO_SOURCE_DIR;
  for (const char* folder : {"configs/jobs", "data"}) fs::create_directories(job / folder);
  fs::copy(source / "jobs", job / "jobs");
  fs::copy_file(source / "configs/jobs/quickstart.yaml", job / "configs/jobs/quickstart.yaml");
  fs::copy_file(job / "text.h5", job / "data/kjv.h5");
  const std::string few = " --set train.max_steps=2 --set lr_scheduler.warmup_steps=1 --set train.validate_every=0\n";
  std::string all =
      "sbatch --parsable jobs/train_gpt.sbatch --set train.max_steps=1000000 --set lr_scheduler.decay_steps=1000 --set "
      "train.validate_every=0\n";
  for (const char* script : {"single_node", "four_nodes", "array"})
    all += fmt::format("sbatch --parsable jobs/{}.sbatch{}", script, few);
  all += "LINKS=2 sbatch --parsable jobs/chain.sbatch" + few;
  const auto submitted = cluster().run(job, all);
  BOOST_REQUIRE_MESSAGE(submitted.exit_code == 0, submitted.output);
  const auto ids = split(trim(submitted.output), '\n');
  BOOST_REQUIRE(ids.size() == 5u);
  const std::string signalled = job / ("train-gpt-" + ids[0] + ".log");
  wait_for_log(signalled, "step:  ");
  (void)cluster().run(job, "scancel --signal=USR1 " + ids[0]);
  wait_for_log(signalled, "stopped   after step ");
  for (const auto& log : {"single-node-" + ids[1], "four-nodes-" + ids[2], "array-" + ids[3] + "-0",
                          "array-" + ids[3] + "-1", "array-" + ids[3] + "-2", "chain-" + ids[4]})
    wait_for_log(job / log + ".log", "\ndone      2 steps");
  wait_for_log(job / "runs/four-nodes/story.log", "all ranks agreed that the run is done: exit code 0");
  wait_for_log(signalled, "resumed   from step ");
  (void)cluster().run(job, "scancel " + ids[0]);
  wait_until([&] { return trim(cluster().run(job, "squeue -h").output).empty(); }, "the end of all jobs");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
