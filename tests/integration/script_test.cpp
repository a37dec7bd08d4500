// The script that `altiplano init` writes, under what Slurm does to it before the time is over: a signal to the batch
// shell alone (--signal=B:USR1@180), or to the processes of its step and not to the shell (--signal=USR1@180).
#include <boost/test/unit_test.hpp>

#include "tests/support/job_folder.hpp"

namespace altiplano::test {

namespace {

/// A folder with a first job, a stand-in for scontrol that notes how it is called, and the environment of a job.
class ScriptFolder {
 public:
  ScriptFolder() {
    auto made = job_.altiplano("init gpt --ranks 2 --data text.h5");
    BOOST_REQUIRE_MESSAGE(made.exit_code == 0, made.output);
    std::filesystem::create_directories(job_ / "bin");
    write_bytes(job_ / "bin/scontrol", "#!/bin/sh\necho \"$@\" >>scontrol.log\n");
    std::filesystem::permissions(job_ / "bin/scontrol", std::filesystem::perms::owner_all);
  }
  /// Runs the script, lets `signal_it` (shell, with $script and $launcher) happen after its third step; its output and
  /// exit code.
  CommandResult run(const std::string& signal_it, const std::string& settings) const {
    return run_command("cd " + job_.path() + R"( && export PATH="$PWD/bin:$PATH" SLURM_JOB_ID=42 SLURM_SUBMIT_DIR="$PWD"
export SLURM_JOB_NODELIST=here SLURM_TASKS_PER_NODE=1 SLURM_CPUS_PER_TASK=2
: >out; bash gpt.sbatch --set train.log_every=1 )" +
                       settings + R"( >out 2>&1 </dev/null & script=$!
for i in $(seq 1200); do [ $(grep -c '^step:' out) -ge 3 ] && break; sleep 0.05; done
launcher=$(cut -d' ' -f1 /proc/$script/task/$script/children)
)" + signal_it + "\nwait $script; code=$?; cat out; exit $code");
  }
  const JobFolder& job() const { return job_; }

 private:
  JobFolder job_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(script)

BOOST_AUTO_TEST_CASE(whoever_slurm_signals_before_the_end_the_job_saves_requeues_itself_and_goes_on) {
  const ScriptFolder folder;
  const std::pair<const char*, const char*> forms[] = {
      {"shell", "kill -USR1 $script"},
      {"steps", "kill -USR1 $launcher $(cat /proc/$launcher/task/$launcher/children)"},
      {"everybody", "kill -TERM $script $launcher $(cat /proc/$launcher/task/$launcher/children)"}};
  int64_t saved = 0;
  std::string calls;
  for (const auto& [name, signal_it] : forms) {
    auto result = folder.run(signal_it, "--set train.max_steps=1000000 --set lr_scheduler.decay_steps=100");
    BOOST_TEST(result.exit_code == 75, name << ": " << result.output);
    BOOST_TEST(result.output.find("stopped   after step ") != std::string::npos, name << ": " << result.output);
    if (saved > 0)
      BOOST_TEST(result.output.find("resumed   from step " + std::to_string(saved)) != std::string::npos,
                 result.output);
    saved = read_steps(folder.job() / "runs/gpt/metrics.jsonl").rbegin()->first;
    calls += "requeue 42\n";
    BOOST_TEST(read_bytes(folder.job() / "scontrol.log") == calls, name);
  }
  auto done =
      folder.run("true", "--set lr_scheduler.decay_steps=100 --set train.max_steps=" + std::to_string(saved + 3));
  BOOST_TEST(done.exit_code == 0, done.output);
  BOOST_TEST(read_steps(folder.job() / "runs/gpt/metrics.jsonl").size() == static_cast<size_t>(saved + 3));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
