#include "framework/cluster/network.hpp"

#include <boost/test/unit_test.hpp>

#include "framework/cluster/presets.hpp"

using namespace altiplano;

namespace {

Cluster joined(const std::vector<NetworkAddress>& addresses, const NetworkFigures& network = {}) {
  const auto host = load_cluster("this-machine");
  BOOST_REQUIRE(host.is_ok());
  const Cluster cluster = join_hosts(*host, RankPlaces::from_addresses(addresses), network);
  BOOST_TEST(cluster.verify().is_ok());
  return cluster;
}

}  // namespace

BOOST_AUTO_TEST_CASE(hosts_are_joined_above_what_is_within_them) {
  NetworkFigures network;
  network.latency = 2e-6;
  network.bandwidth = 25e9;
  const Cluster cluster = joined({{"a"}, {"a"}, {"a"}, {"b"}, {"b"}, {"b"}}, network);
  BOOST_TEST(cluster.num_devices() == 6);
  BOOST_TEST(cluster.devices_per_node() == 3);
  BOOST_TEST(cluster.levels.back().name == "network");
  BOOST_TEST(cluster.levels.back().fanout == 2);
  BOOST_TEST(cluster.levels.back().latency == 2e-6);
  BOOST_TEST(cluster.levels.back().bandwidth == 25e9);
  BOOST_TEST(cluster.levels.back().oversubscription == 3);
}

BOOST_AUTO_TEST_CASE(ranks_of_uneven_hosts_have_nothing_in_common_but_the_network) {
  const Cluster cluster = joined({{"a"}, {"a"}, {"b"}});
  BOOST_TEST(cluster.num_devices() == 3);
  BOOST_TEST(cluster.devices_per_node() == 1);
  BOOST_TEST(most_ranks_of_a_host(RankPlaces::from_addresses({{"a"}, {"a"}, {"b"}}), 3) == 2);
  BOOST_TEST(most_ranks_of_a_host({}, 3) == 3);
}

BOOST_AUTO_TEST_CASE(network_figures_are_read_as_written_and_refused_with_their_place) {
  NetworkFigures network;
  network.latency = 17.25e-6;
  network.bandwidth = 1.5e9;
  network.measured = "2026-12-01 over comm/ucx";
  const auto read = NetworkFigures::from_yaml(network.to_yaml(), "network.yaml");
  BOOST_REQUIRE_MESSAGE(read.is_ok(), read.status().to_string());
  BOOST_TEST(read->latency == network.latency, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(read->bandwidth == network.bandwidth, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(read->measured == network.measured);
  const auto refusal = [](const std::string& text) {
    const auto figures = NetworkFigures::from_yaml(text, "n.yaml");
    return figures.is_ok() ? "accepted" : figures.status().message();
  };
  BOOST_TEST(refusal("altiplano_network: 2\nlatency: 1 us\nbandwidth: 1 GB/s\nmeasured: x\n") ==
             "n.yaml:1:20: altiplano_network: version 2; expected 1");
  BOOST_TEST(refusal("altiplano_network: 1\nlatency: 1 us\nbandwidth: 0 GB/s\nmeasured: x\n") ==
             "n.yaml:3:12: bandwidth: must be more than 0");
  BOOST_TEST(refusal("altiplano_network: 1\nlatency: soon\nbandwidth: 1 GB/s\nmeasured: x\n")
                 .starts_with("n.yaml:2:10: latency: \"soon\" is not"));
  BOOST_TEST(refusal("{").starts_with("n.yaml:"));
}
