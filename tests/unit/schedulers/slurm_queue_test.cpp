// scheduler/slurm asks Slurm's programs: here stand-ins that say what those of Slurm 22.05 said (tests/slurm has the
// real ones), and the texts that it writes for them.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>

#include "framework/config/job_config.hpp"
#include "framework/plugin/registry.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/schedulers/slurm.hpp"

using namespace altiplano;
using namespace altiplano::test;
using namespace std::chrono_literals;

namespace {

/// A folder of programs before all others in PATH.
class StandIns {
 public:
  StandIns() : path_(std::getenv("PATH")) { setenv("PATH", (folder_.path().string() + ":" + path_).c_str(), 1); }
  ~StandIns() { setenv("PATH", path_.c_str(), 1); }
  void add(const std::string& name, const std::string& script) const {
    write_bytes(folder_ / name, "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(folder_ / name, std::filesystem::perms(0755));
  }

 private:
  TemporaryDirectory folder_;
  std::string path_;
};

std::string squeue_says(const std::string& state, const std::string& end, const std::string& hosts) {
  return fmt::format("printf '%-40s%-40s%-20s%-260s%s\\n' {} {} 2 n1 '{}'", state, end, hosts);
}

Options slurm_section(const std::vector<std::pair<std::string, OptionValue>>& values) {
  Options options(job_option_records());
  for (const auto& [key, value] : values) {
    const Status status = options.set(key, value, {});
    BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
  }
  return options.section("slurm");
}

BatchRequest request_with(const std::vector<std::pair<std::string, OptionValue>>& values) {
  BatchRequest request;
  request.folder = "/data/my jobs";
  request.log_folder = "/data/runs/50%/logs";
  request.run_name = "it's \"$x\" #1";
  request.command = {"/opt/bin/altiplano", "supervise", "-c", "a b.yaml"};
  request.section = slurm_section(values);
  return request;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(slurm_queue)

BOOST_AUTO_TEST_CASE(a_jobs_state_its_end_its_restarts_and_its_hosts_are_what_squeue_says) {
  const StandIns programs;
  programs.add("squeue", squeue_says("RUNNING", "1796129530", "n[1-2],m07"));
  const auto job = slurm().job_state("14", 30s);
  BOOST_REQUIRE_MESSAGE(job.is_ok(), job.status().to_string());
  BOOST_TEST(job->is_running);
  BOOST_TEST(job->end_time == 1796129530);
  BOOST_TEST(job->restart_count == 2);
  BOOST_TEST(job->first_host == "n1");
  BOOST_TEST(job->hosts == (std::vector<std::string>{"n1", "n2", "m07"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_job_without_limit_has_no_end_and_one_that_ends_is_not_running) {
  const StandIns programs;
  programs.add("squeue", squeue_says("COMPLETING", "N/A", ""));
  const auto job = slurm().job_state("14", 30s);
  BOOST_REQUIRE_MESSAGE(job.is_ok(), job.status().to_string());
  BOOST_TEST(!job->is_running);
  BOOST_TEST(job->end_time == 0);
  BOOST_TEST(job->hosts.empty());
}

BOOST_AUTO_TEST_CASE(what_slurm_says_when_it_fails_comes_through_and_one_that_hangs_is_named) {
  const StandIns programs;
  programs.add("squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1");
  BOOST_TEST(slurm().job_state("14", 30s).status().message() ==
             "squeue failed with exit code 1: slurm_load_jobs error: Unable to contact slurm controller");
  programs.add("squeue", "sleep 1000");
  BOOST_TEST(slurm().job_state("14", 300ms).status().message() == "squeue did not answer within 0.3 s");
  programs.add("squeue", "exit 0");
  BOOST_TEST(slurm().job_state("14", 30s).status().message() == "squeue does not know job 14");
}

BOOST_AUTO_TEST_CASE(nodes_are_usable_while_they_are_up_and_answer) {
  const StandIns programs;
  programs.add("sinfo",
               "printf 'n1|mixed\\nn1|mixed\\nn2|down*\\nn3|allocated*\\nn4|draining\\nn5|idle~\\nn6|idle\\n'");
  const auto nodes = slurm().node_states({"n1", "n2", "n3", "n4", "n5", "n6"}, 30s);
  BOOST_REQUIRE_MESSAGE(nodes.is_ok(), nodes.status().to_string());
  std::string usable;
  for (const NodeState& node : *nodes) usable += node.host + (node.is_usable ? "+" : "-");
  BOOST_TEST(usable == "n1+n2-n3-n4+n5-n6+");
}

BOOST_AUTO_TEST_CASE(a_submission_passes_options_on_and_takes_the_jobs_number) {
  const StandIns programs;
  programs.add("sbatch", "echo \"$@\" >&2; [ $# = 4 ] && echo '15;cluster' || echo sorry");
  Submission submission;
  submission.script = "job.sbatch";
  submission.after_job = "14";
  submission.options = {"--partition=long"};
  const auto job = slurm().submit(submission);
  BOOST_REQUIRE_MESSAGE(job.is_ok(), job.status().to_string());
  BOOST_TEST(*job == "15");
  submission.options.clear();
  BOOST_TEST(slurm().submit(submission).status().message() == "sbatch answered 'sorry', expected the number of a job");
}

BOOST_AUTO_TEST_CASE(a_script_holds_names_with_blanks_dollars_and_quotes_and_lines_end_with_LF) {
  const auto script = slurm().batch_script(request_with({{"slurm.nodes", int64_t{3}},
                                                         {"slurm.spare_nodes", int64_t{1}},
                                                         {"slurm.ntasks_per_node", int64_t{2}},
                                                         {"slurm.time", std::string("1:00:00")},
                                                         {"slurm.gres", std::string("gpu:a100:2")},
                                                         {"slurm.options", std::vector<std::string>{"--switches=1@30"}},
                                                         {"slurm.setup", std::vector<std::string>{"module load x"}}}));
  BOOST_REQUIRE_MESSAGE(script.is_ok(), script.status().to_string());
  BOOST_TEST(*script == R"(#!/bin/bash
#SBATCH --job-name="it\'s \"$x\" \#1"
#SBATCH --time=1:00:00
#SBATCH --gres=gpu:a100:2
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=1
#SBATCH --signal=USR1@180
#SBATCH --requeue
#SBATCH --no-kill
#SBATCH --output="/data/runs/50%%/logs/job-%j.out"
#SBATCH --open-mode=append
#SBATCH --switches=1@30
# Written by `altiplano submit`; what is above stands in the job file's section slurm.
set -u
cd '/data/my jobs' || exit 2
export SLURM_PMIX_FENCE=ring  # Slurm's own fence is no barrier between nodes
module load x
start=${SLURM_RESTART_COUNT:-0}
log=/data/runs/50%/logs/job-$SLURM_JOB_ID.$start.log
echo "start $start on $SLURM_JOB_NODELIST: $log"
exec >>"$log" 2>&1
exec /opt/bin/altiplano supervise -c 'a b.yaml'
)");
}

BOOST_AUTO_TEST_CASE(without_a_supervisor_the_script_has_the_whole_geometry_of_srun) {
  const auto script = slurm().batch_script(request_with({{"slurm.nodes", int64_t{2}},
                                                         {"slurm.ntasks_per_node", int64_t{4}},
                                                         {"slurm.cpus_per_task", int64_t{3}},
                                                         {"slurm.supervise", false}}));
  BOOST_REQUIRE_MESSAGE(script.is_ok(), script.status().to_string());
  BOOST_TEST(script->find("srun --mpi=pmix --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpus-per-task=3 "
                          "--kill-on-bad-exit=1 /opt/bin/altiplano") != std::string::npos,
             *script);
  BOOST_TEST(script->find("if [ \"$code\" -eq 75 ]; then scontrol requeue") != std::string::npos, *script);
  BOOST_TEST(script->find("--no-kill") == std::string::npos, *script);
}

BOOST_AUTO_TEST_CASE(what_no_script_can_hold_is_refused) {
  BatchRequest request = request_with({});
  request.command.emplace_back("a\nb");
  BOOST_TEST(slurm().batch_script(request).status().message() ==
             "'a\nb': a line break or a control character is in it, which a batch script cannot hold");
  request = request_with({});
  request.log_folder = "/data/a\\b";
  BOOST_TEST(
      slurm().batch_script(request).status().message() ==
      "the folder /data/a\\b: Slurm does not take a backslash in the name of a job's output; take another folder");
  request = request_with({{"slurm.options", std::vector<std::string>{"switches=1"}}});
  BOOST_TEST(slurm().batch_script(request).status().message() ==
             "slurm.options[0]: switches=1 is no option of sbatch; one begins with -, as in --switches=1@30");
}

BOOST_AUTO_TEST_CASE(a_step_leaves_nothing_to_the_jobs_variables) {
  StepRequest request;
  request.hosts = {"n1", "n4"};
  request.tasks_per_host = 2;
  request.output = "/runs/50%/rank-{task}.log";
  request.command = {"altiplano", "train"};
  const auto command = slurm().step_command(request);
  BOOST_REQUIRE_MESSAGE(command.is_ok(), command.status().to_string());
  const std::vector<std::string> expected = {"srun",
                                             "--overlap",
                                             "--no-kill",
                                             "--export=ALL",
                                             "--nodes=2",
                                             "--ntasks=4",
                                             "--ntasks-per-node=2",
                                             "--cpus-per-task=1",
                                             "--distribution=block",
                                             "--nodelist=n1,n4",
                                             "--mpi=pmix",
                                             "--kill-on-bad-exit=1",
                                             "--output=/runs/50%%/rank-%t.log",
                                             "--open-mode=append",
                                             "altiplano",
                                             "train"};
  BOOST_TEST(*command == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_scheduler_without_a_queue_says_so) {
  const Scheduler& local = **PluginRegistry::instance().scheduler("local");
  BOOST_TEST(local.job_state("1", 1s).status().message() == "this scheduler has no jobs to ask about");
  BOOST_TEST(local.step_command({}).status().message() == "this scheduler has no steps");
  BOOST_TEST(local.submit({}).status().message() == "this scheduler has no queue");
}

BOOST_AUTO_TEST_SUITE_END()
