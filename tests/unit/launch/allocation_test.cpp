#include "framework/launch/allocation.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdlib>

#include "framework/launch/rank_environment.hpp"

using namespace altiplano;

BOOST_AUTO_TEST_CASE(without_a_workload_manager_the_scheduler_of_this_host_answers) {
  auto found = find_allocation({}, 2);
  BOOST_REQUIRE_MESSAGE(found.is_ok(), found.status().to_string());
  BOOST_TEST(found->scheduler == "scheduler/local");
  BOOST_TEST(found->allocation.hosts.size() == 1u);
  BOOST_TEST(found->allocation.ranks_per_host.at(0) == 2);
  BOOST_TEST(found->allocation.cpus_per_rank == threads_per_rank(num_usable_cpus(), 2));
}

BOOST_AUTO_TEST_CASE(the_schedulers_own_refusal_comes_through) {
  BOOST_TEST(find_allocation({}, 0).status().message() == "scheduler local: 0 ranks; nearest legal value: 1");
}

BOOST_AUTO_TEST_CASE(the_environment_is_read_variable_by_variable) {
  setenv("ALTIPLANO_TEST_VARIABLE", "a=b", 1);
  BOOST_TEST(environment_variables().at("ALTIPLANO_TEST_VARIABLE") == "a=b");
  unsetenv("ALTIPLANO_TEST_VARIABLE");
}
