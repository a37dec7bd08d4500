// Processes that another launcher started, from their environment alone; tests/slurm starts real ones.
#include "framework/launch/task_ranks.hpp"

#include <boost/test/unit_test.hpp>

using namespace altiplano;

namespace {

using Variables = std::map<std::string, std::string>;

Variables task(const std::string& index) {
  return {{"SLURM_JOB_ID", "7"},         {"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_TASKS_PER_NODE", "2(x2)"},
          {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_STEP_ID", "0"},           {"SLURM_PROCID", index}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_process_that_nobody_started_is_alone) {
  RankEnvironment environment;
  const auto ranks = meet_tasks(environment, {});
  BOOST_REQUIRE(ranks.is_ok());
  BOOST_TEST(!ranks->rendezvous);
  BOOST_TEST(ranks->notices.empty());
  BOOST_TEST(environment.world_size == 1);
}

BOOST_AUTO_TEST_CASE(tasks_without_a_server_to_meet_by_are_refused_and_know_who_speaks) {
  RankEnvironment environment;
  const auto ranks = meet_tasks(environment, task("3"));
  BOOST_REQUIRE(!ranks.is_ok());
  BOOST_TEST((ranks.status().code() == StatusCode::kInvalidArgument));
  BOOST_TEST(ranks.status().message().find("4 tasks were started, and none of them can reach another") == 0u,
             ranks.status().message());
  BOOST_TEST(environment.rank.value == 3);
}

BOOST_AUTO_TEST_CASE(processes_of_an_mpirun_that_has_no_pmix_are_refused) {
  RankEnvironment environment;
  const auto ranks = meet_tasks(environment, {{"OMPI_COMM_WORLD_SIZE", "2"}});
  BOOST_REQUIRE(!ranks.is_ok());
  BOOST_TEST(ranks.status().message().find("2 tasks were started") == 0u, ranks.status().message());
}

BOOST_AUTO_TEST_CASE(one_process_of_an_allocation_for_several_is_told_of_srun) {
  Variables variables = task("0");
  variables.erase("SLURM_STEP_ID");
  RankEnvironment environment;
  const auto ranks = meet_tasks(environment, variables);
  BOOST_REQUIRE(ranks.is_ok());
  BOOST_TEST(!ranks->rendezvous);
  BOOST_REQUIRE(ranks->notices.size() == 1u);
  BOOST_TEST(ranks->notices[0].find("the job has 4 tasks, and this process is one rank, alone; `srun --mpi=pmix") == 0u,
             ranks->notices[0]);
}

BOOST_AUTO_TEST_CASE(a_single_task_is_told_nothing) {
  Variables variables = task("0");
  variables["SLURM_STEP_NUM_TASKS"] = "1";  // srun --pty bash
  RankEnvironment environment;
  const auto ranks = meet_tasks(environment, variables);
  BOOST_REQUIRE(ranks.is_ok());
  BOOST_TEST(ranks->notices.empty());
}

BOOST_AUTO_TEST_CASE(commands_that_start_ranks_themselves_are_refused_several_times_over) {
  BOOST_TEST(check_is_only_task("launch", {}).is_ok());
  const Status refused = check_is_only_task("launch", task("1"));
  BOOST_TEST(refused.message().find("4 tasks were started and each is an `altiplano launch` of its own") == 0u,
             refused.message());
}

BOOST_AUTO_TEST_CASE(where_ranks_are_is_said_by_runs_of_them) {
  BOOST_TEST(placement_text({"n1", "n1", "n2", "n3", "n3", "n3"}) == "n1: ranks 0-1; n2: rank 2; n3: ranks 3-5");
  BOOST_TEST(placement_text({"n2", "n1", "n2"}) == "n2: rank 0; n1: rank 1; n2: rank 2");
  BOOST_TEST(num_hosts({"n2", "n1", "n2"}) == 2);
  BOOST_TEST(num_hosts({}) == 1);
}
