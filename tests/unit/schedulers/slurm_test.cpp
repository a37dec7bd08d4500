// scheduler/slurm, asked as launch asks it: with an environment.
#include "tests/unit/schedulers/slurm.hpp"

#include <boost/test/unit_test.hpp>

#include "framework/base/text.hpp"
#include "framework/plugin/registry.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

using Environment = std::map<std::string, std::string>;

Environment job(const std::string& hosts, const std::string& tasks) {
  return {{"SLURM_JOB_ID", "42"}, {"SLURM_JOB_NODELIST", hosts}, {"SLURM_TASKS_PER_NODE", tasks}};
}

std::vector<std::string> hosts_of(const std::string& nodelist) {
  const auto first = slurm().allocation(job(nodelist, "1"), 1);
  if (first.is_ok()) return first->hosts;
  // More than one host wants as many tasks: ask again with what the refusal counts.
  for (int hosts = 2; hosts <= 64; ++hosts) {
    const auto allocation = slurm().allocation(job(nodelist, "1(x" + std::to_string(hosts) + ")"), hosts);
    if (allocation.is_ok()) return allocation->hosts;
  }
  return {first.status().message()};
}

std::string refusal(const Environment& environment, int ranks) {
  const auto allocation = slurm().allocation(environment, ranks);
  return allocation.is_ok() ? "" : allocation.status().message();
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_job_is_detected_by_its_number) {
  BOOST_TEST(slurm().detect({{"SLURM_JOB_ID", "7"}}));
  BOOST_TEST(!slurm().detect({{"SLURM_CONF", "/etc/slurm.conf"}}));
}

BOOST_AUTO_TEST_CASE(node_lists_expand_with_ranges_widths_and_several_brackets) {
  using Names = std::vector<std::string>;
  const std::vector<std::pair<std::string, Names>> cases = {
      {"login", {"login"}},
      {"n[1-3]", {"n1", "n2", "n3"}},
      {"n[08-11]", {"n08", "n09", "n10", "n11"}},
      {"n[9-11]", {"n9", "n10", "n11"}},
      {"a[1,03-04]-ib,b7", {"a1-ib", "a03-ib", "a04-ib", "b7"}},
      {"r[1-2]n[1-2]", {"r1n1", "r1n2", "r2n1", "r2n2"}},
      {"x[001]", {"x001"}},
      // As users met them.
      {"linux[1,2]", {"linux1", "linux2"}},
      {"nodeA,nodeB[001,003],nodeC", {"nodeA", "nodeB001", "nodeB003", "nodeC"}},
      {"ml-16-node-[001-002,004],ml-17-node-[001-003]",
       {"ml-16-node-001", "ml-16-node-002", "ml-16-node-004", "ml-17-node-001", "ml-17-node-002", "ml-17-node-003"}},
      {"host[001,003-004,006]", {"host001", "host003", "host004", "host006"}},
      {"gpu[001-003,7],login-2", {"gpu001", "gpu002", "gpu003", "gpu7", "login-2"}},
      {"rack[1-2]n[01-02]", {"rack1n01", "rack1n02", "rack2n01", "rack2n02"}},
      // What else the grammar has.
      {"a,b", {"a", "b"}},
      {"a[1]", {"a1"}},
      {"a[1-1]", {"a1"}},
      {"a[0-2]", {"a0", "a1", "a2"}},
      {"a[00-02]", {"a00", "a01", "a02"}},
      {"a[098-101]", {"a098", "a099", "a100", "a101"}},
      {"a[98-101]", {"a98", "a99", "a100", "a101"}},
      {"a[1,1]", {"a1", "a1"}},
      {"a[3,1]", {"a3", "a1"}},
      {"10.0.0.[1-2]", {"10.0.0.1", "10.0.0.2"}},
      {"n1.cluster.local,n2.cluster.local", {"n1.cluster.local", "n2.cluster.local"}},
      {"a[1-2]b[3-4]c", {"a1b3c", "a1b4c", "a2b3c", "a2b4c"}},
      {"[1-2]", {"1", "2"}},
      {"a-b_c[7]", {"a-b_c7"}},
  };
  for (const auto& [text, names] : cases) BOOST_TEST(hosts_of(text) == names, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(tasks_processors_and_restarts_come_from_the_job) {
  auto environment = job("n[1-3]", "4(x2),3");
  environment["SLURM_JOB_CPUS_PER_NODE"] = "16(x2),9";
  environment["SLURM_RESTART_COUNT"] = "2";
  environment["SLURM_JOB_END_TIME"] = "4102444800";
  const auto allocation = slurm().allocation(environment, 11);
  BOOST_REQUIRE_MESSAGE(allocation.is_ok(), allocation.status().to_string());
  BOOST_TEST(allocation->job_id == "42");
  BOOST_TEST(allocation->ranks_per_host == (std::vector<int>{4, 4, 3}), boost::test_tools::per_element());
  BOOST_TEST(allocation->cpus_per_rank == 3);
  BOOST_TEST(allocation->restart_count == 2);
  BOOST_TEST(allocation->end_time == 4102444800);
  environment["SLURM_CPUS_PER_TASK"] = "4";
  BOOST_TEST(slurm().allocation(environment, 11)->cpus_per_rank == 4);
}

BOOST_AUTO_TEST_CASE(counts_of_tasks_are_read_with_repetitions) {
  const auto ranks = [](const std::string& hosts, const std::string& tasks, int sum) {
    const auto allocation = slurm().allocation(job(hosts, tasks), sum);
    BOOST_REQUIRE_MESSAGE(allocation.is_ok(), allocation.status().to_string());
    return allocation->ranks_per_host;
  };
  BOOST_TEST(ranks("n[1-2]", "4(x2)", 8) == (std::vector<int>{4, 4}), boost::test_tools::per_element());
  BOOST_TEST(ranks("n[1-4]", "2(x3),1", 7) == (std::vector<int>{2, 2, 2, 1}), boost::test_tools::per_element());
  BOOST_TEST(ranks("n[1-3]", "1,3,2", 6) == (std::vector<int>{1, 3, 2}), boost::test_tools::per_element());
  auto environment = job("n[1-2]", "4(x2)");
  environment["SLURM_JOB_CPUS_PER_NODE"] = "24(x2)";
  BOOST_TEST(slurm().allocation(environment, 8)->cpus_per_rank == 6);
}

BOOST_AUTO_TEST_CASE(a_step_goes_before_its_job) {
  auto environment = job("n[1-4]", "2(x4)");
  environment["SLURM_STEP_NODELIST"] = "n[2-3]";
  environment["SLURM_STEP_TASKS_PER_NODE"] = "2(x2)";
  BOOST_TEST(slurm().allocation(environment, 4)->hosts == (std::vector<std::string>{"n2", "n3"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(one_host_takes_as_many_ranks_as_asked_for) {
  BOOST_TEST(slurm().allocation(job("n1", "1"), 4)->ranks_per_host == std::vector<int>{4},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(ranks_that_one_task_starts_share_its_processors) {
  auto environment = job("n1", "1");
  environment["SLURM_JOB_CPUS_PER_NODE"] = "64";
  environment["SLURM_CPUS_PER_TASK"] = "8";
  for (const auto& [ranks, processors] : {std::pair(1, 8), std::pair(4, 2), std::pair(3, 2), std::pair(16, 1)})
    BOOST_TEST(slurm().allocation(environment, ranks)->cpus_per_rank == processors);
  environment["SLURM_TASKS_PER_NODE"] = "4";  // a task each
  BOOST_TEST(slurm().allocation(environment, 4)->cpus_per_rank == 8);
}

BOOST_AUTO_TEST_CASE(refusals_quote_the_variable_and_the_column) {
  const std::vector<std::pair<std::string, std::string>> lists = {
      {"n[1-3", "SLURM_JOB_NODELIST 'n[1-3', column 6: expected ',' or ']'"},
      {"n[3-1]", "SLURM_JOB_NODELIST 'n[3-1]', column 6: the range falls from 3 to 1"},
      {"n[]", "SLURM_JOB_NODELIST 'n[]', column 3: expected a number"},
      {"n[1-[2]]", "SLURM_JOB_NODELIST 'n[1-[2]]', column 5: expected a number"},
      {"n1]", "SLURM_JOB_NODELIST 'n1]', column 3: ']' without '['"},
      {"a,,b", "SLURM_JOB_NODELIST 'a,,b', column 3: expected a host's name"},
      {"n[1-999999999]", "SLURM_JOB_NODELIST 'n[1-999999999]', column 14: more than 131072 entries"},
  };
  for (const auto& [text, expected] : lists) BOOST_TEST(refusal(job(text, "1"), 1) == expected);
  BOOST_TEST(refusal(job("n[1-2]", "2(x"), 4) == "SLURM_TASKS_PER_NODE '2(x', column 4: expected a number");
  BOOST_TEST(
      refusal(job("n[1-2]", "2(x2)"), 6) ==
      "scheduler slurm: 6 ranks were asked for, Slurm gives 4 tasks on 2 hosts (2(x2)); ask for 4 ranks, or allocate "
      "with --ntasks=6");
  BOOST_TEST(refusal(job("n[1-2]", "2(x3)"), 6) ==
             "scheduler slurm: SLURM_TASKS_PER_NODE=2(x3) is for 3 hosts, the node list has 2");
  auto environment = job("n1", "1");
  environment["SLURM_JOB_END_TIME"] = "soon";
  BOOST_TEST(refusal(environment, 1) == "scheduler slurm: SLURM_JOB_END_TIME=soon; expected a number from 0 on");
  BOOST_TEST(refusal(job("n1", "1"), 0) == "scheduler slurm: 0 ranks; nearest legal value: 1");
  BOOST_TEST(
      refusal({{"SLURM_JOB_ID", "1"}}, 1) ==
      "scheduler slurm: none of SLURM_STEP_NODELIST, SLURM_JOB_NODELIST is set; start inside a job (sbatch, salloc, "
      "srun)");
}

namespace {

Tasks tasks_of(const Environment& environment) {
  const auto tasks = slurm().tasks(environment);
  BOOST_REQUIRE_MESSAGE(tasks.is_ok(), tasks.status().to_string());
  return *tasks;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_batch_script_and_a_shell_of_salloc_are_none_of_the_tasks) {
  auto environment = job("n[1-2]", "2(x2)");
  environment["SLURM_NTASKS"] = "4";
  environment["SLURM_PROCID"] = "0";  // a batch script has it, too
  BOOST_TEST(tasks_of(environment).started == 0);
  BOOST_TEST(tasks_of(environment).planned == 4);
  BOOST_TEST(tasks_of(environment).how_to_start == "srun --mpi=pmix");
  environment["SLURM_STEP_ID"] = "4294967290";  // the interactive step
  environment["SLURM_STEP_NUM_TASKS"] = "1";
  BOOST_TEST(tasks_of(environment).started == 0);
}

BOOST_AUTO_TEST_CASE(a_task_of_srun_knows_how_many_were_started_with_it) {
  auto environment = job("n[1-2]", "2(x2)");
  environment["SLURM_NTASKS"] = "4";
  environment["SLURM_STEP_ID"] = "0";
  environment["SLURM_PROCID"] = "3";
  environment["SLURM_CPUS_PER_TASK"] = "8";
  BOOST_TEST(tasks_of(environment).started == 4);
  BOOST_TEST(tasks_of(environment).index == 3);
  BOOST_TEST(tasks_of(environment).cpus_each == 8);
  environment["SLURM_STEP_NUM_TASKS"] = "1";  // srun --pty bash of a job of four
  environment["SLURM_PROCID"] = "0";
  BOOST_TEST(tasks_of(environment).started == 1);
  BOOST_TEST(tasks_of(environment).planned == 4);
}

BOOST_AUTO_TEST_CASE(the_switches_above_a_task_are_those_of_its_address) {
  auto environment = job("n[1-2]", "2(x2)");
  environment["SLURM_STEP_ID"] = "0";
  BOOST_TEST(tasks_of(environment).switches.empty());
  environment["SLURM_TOPOLOGY_ADDR"] = "spine.leaf1.n1.cluster.local";
  BOOST_TEST(tasks_of(environment).switches.empty());
  environment["SLURM_TOPOLOGY_ADDR_PATTERN"] = "switch.switch.node";
  BOOST_TEST(join(tasks_of(environment).switches, " ") == "spine leaf1");
  environment["SLURM_TOPOLOGY_ADDR_PATTERN"] = "node";
  BOOST_TEST(tasks_of(environment).switches.empty());
  environment["SLURM_TOPOLOGY_ADDR"] = "n1";
  environment["SLURM_TOPOLOGY_ADDR_PATTERN"] = "switch.switch.node";
  BOOST_TEST(tasks_of(environment).switches.empty());
}

BOOST_AUTO_TEST_CASE(planned_tasks_are_known_without_ntasks) {
  BOOST_TEST(tasks_of(job("n[1-3]", "4(x2),3")).planned == 11);
  BOOST_TEST(tasks_of({{"SLURM_JOB_ID", "1"}, {"SLURM_NNODES", "3"}, {"SLURM_NTASKS_PER_NODE", "4"}}).planned == 12);
  BOOST_TEST(tasks_of({{"SLURM_JOB_ID", "1"}}).planned == 1);
}

BOOST_AUTO_TEST_CASE(numbers_of_tasks_that_are_none_are_refused_with_their_variable) {
  const auto tasks = slurm().tasks({{"SLURM_JOB_ID", "1"}, {"SLURM_NTASKS", "four"}});
  BOOST_REQUIRE(!tasks.is_ok());
  BOOST_TEST(tasks.status().message() == "scheduler slurm: SLURM_NTASKS=four; expected a number from 0 on");
}
