#include "framework/runtime/comm_survey.hpp"

#include <boost/test/unit_test.hpp>

#include "framework/conformance/ranks.hpp"
#include "tests/support/comm_backends.hpp"

using namespace altiplano;

namespace {

std::string pairs_of(const std::vector<std::string>& hosts, int most = 8) {
  std::string text;
  for (const SurveyedPair& pair : pairs_to_survey(hosts, most))
    text += fmt::format("{}-{} {}; ", pair.a, pair.b, pair.pair_class);
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(pairs_of_every_class_are_measured_neighbours_first) {
  BOOST_TEST(pairs_of({"n1"}) == "");
  BOOST_TEST(pairs_of({"n1", "n1"}) == "0-1 within a host; ");
  BOOST_TEST(pairs_of({"n1", "n1", "n2", "n3", "n3"}) ==
             "0-1 within a host; 3-4 within a host; 0-2 between hosts; 2-3 between hosts; 0-3 between hosts; ");
  BOOST_TEST(pairs_of({"n1", "n1", "n2", "n2", "n3"}, 1) == "0-1 within a host; 0-2 between hosts; ");
}

BOOST_AUTO_TEST_CASE(a_survey_is_a_table_for_people_and_yaml_for_programs) {
  const std::vector<std::string> hosts = {"n1", "n1", "n2"};
  auto pairs = pairs_to_survey(hosts, 8);
  pairs[0].latency = Seconds(0.9e-6);
  pairs[0].bytes_per_second = 5.12e9;
  pairs[1].latency = Seconds(17.34e-6);
  pairs[1].bytes_per_second = 1.5e9;
  BOOST_TEST(survey_text(pairs, hosts) ==
             "pairs                latency     bandwidth   measured\n"
             "within a host         0.9 us     5.12 GB/s   1 pair, 5.12 to 5.12 GB/s; the first 0 of n1 and 1 of n1\n"
             "between hosts        17.3 us     1.50 GB/s   1 pair, 1.50 to 1.50 GB/s; the first 0 of n1 and 2 of n2\n");
  BOOST_TEST(network_of(pairs)->latency == 17.34e-6);
  BOOST_TEST(network_of(pairs)->bandwidth == 1.5e9);
  BOOST_TEST(!network_of({pairs[0]}).has_value());
  BOOST_TEST(
      survey_yaml(pairs, hosts, "comm/ucx") ==
      "comm: \"comm/ucx\"\nmessage_bytes: 4194304\nclasses:\n"
      "  - name: within a host\n    latency: 9.000e-07    # seconds\n    bandwidth: 5.120e+09  # bytes per second\n"
      "    pairs:\n      - {ranks: [0, 1], hosts: [n1, n1], latency: 9.000e-07, bandwidth: 5.120e+09}\n"
      "  - name: between hosts\n    latency: 1.734e-05    # seconds\n    bandwidth: 1.500e+09  # bytes per second\n"
      "    pairs:\n      - {ranks: [0, 2], hosts: [n1, n2], latency: 1.734e-05, bandwidth: 1.500e+09}\n");
}

BOOST_AUTO_TEST_CASE(rank_0_hears_the_figures_of_all_pairs) {
  const std::vector<std::string> hosts = {"n1", "n2", "n2"};
  const auto survey = [&](Communicator& comm) -> Status {
    ALTIPLANO_ASSIGN(const auto pairs, survey_pairs(comm, pairs_to_survey(hosts, 8)));
    for (const SurveyedPair& pair : pairs)
      if (comm.rank().value == 0 && !(pair.latency.value > 0 && pair.bytes_per_second > 0))
        return runtime_failure("nothing of {} and {}", pair.a, pair.b);
    return Status::ok();
  };
  const Status status = test::run_backend(3, *test::comm_backend("inproc"), test::test_options(), survey);
  BOOST_TEST(status.is_ok(), status.to_string());
}
