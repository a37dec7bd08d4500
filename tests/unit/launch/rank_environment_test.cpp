#include "framework/launch/rank_environment.hpp"

#include <boost/test/unit_test.hpp>
#include <map>

using namespace altiplano;

namespace {

EnvironmentLookup environment(std::map<std::string, std::string> variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

std::map<std::string, std::string> launched(const std::string& rank, const std::string& size) {
  return {{"ALTIPLANO_RANK", rank},
          {"ALTIPLANO_WORLD_SIZE", size},
          {"ALTIPLANO_RENDEZVOUS", "unix:a:b"},
          {"ALTIPLANO_JOB_ID", "j"}};
}

std::string refusal(const std::map<std::string, std::string>& variables) {
  const auto result = rank_environment(environment(variables));
  return result.is_ok() ? "" : result.status().message();
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_process_without_variables_is_all_of_its_job) {
  auto alone = rank_environment(environment({}));
  BOOST_REQUIRE(alone.is_ok());
  BOOST_TEST(alone->world_size == 1);
  BOOST_TEST(alone->threads == num_usable_cpus());
  auto rendezvous = join_job(*alone);
  BOOST_REQUIRE(rendezvous.is_ok());
  BOOST_TEST((*rendezvous)->world_size() == 1);
  BOOST_TEST((*rendezvous)->fence(std::chrono::milliseconds(1)).is_ok());
  BOOST_TEST(rank_environment(environment({}))->job_id != alone->job_id);
}

BOOST_AUTO_TEST_CASE(a_launched_rank_reads_its_place) {
  auto variables = launched("3", "4");
  variables["ALTIPLANO_THREADS"] = "6";
  variables["ALTIPLANO_TERMINAL_COLUMNS"] = "120";
  variables["ALTIPLANO_END_TIME"] = "4102444800";
  const auto rank = rank_environment(environment(variables));
  BOOST_REQUIRE(rank.is_ok());
  BOOST_TEST(rank->rank.value == 3);
  BOOST_TEST(rank->world_size == 4);
  BOOST_TEST(rank->threads == 6);
  BOOST_TEST(rank->end_time == 4102444800);
  BOOST_TEST(rank->terminal_columns == 120);
  BOOST_TEST(rank->rendezvous == "unix:a:b");
}

BOOST_AUTO_TEST_CASE(the_users_thread_count_wins) {
  auto variables = launched("0", "2");
  variables["ALTIPLANO_THREADS"] = "6";
  variables["OMP_NUM_THREADS"] = "2,1";
  BOOST_TEST(rank_environment(environment(variables))->threads == 2);
  variables["OMP_NUM_THREADS"] = "many";
  BOOST_TEST(refusal(variables) == "OMP_NUM_THREADS: 'many' is not a whole number in 1..65536");
}

BOOST_AUTO_TEST_CASE(half_an_environment_or_nonsense_is_refused_by_name_and_value) {
  auto variables = launched("0", "2");
  variables.erase("ALTIPLANO_RENDEZVOUS");
  BOOST_TEST(refusal(variables).starts_with("ALTIPLANO_RENDEZVOUS not set"));
  BOOST_TEST(refusal(launched("4", "4")) == "ALTIPLANO_RANK: '4' is not a whole number in 0..3");
  BOOST_TEST(refusal(launched("0", "4(x2)")).starts_with("ALTIPLANO_WORLD_SIZE: '4(x2)'"));
}

BOOST_AUTO_TEST_CASE(ranks_share_the_processors_and_have_one_thread_at_least) {
  BOOST_TEST(threads_per_rank(16, 4) == 4);
  BOOST_TEST(threads_per_rank(7, 2) == 3);
  BOOST_TEST(threads_per_rank(2, 8) == 1);
}
