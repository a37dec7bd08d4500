#include "framework/cluster/cluster.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/cluster_file.hpp"

using namespace altiplano;

static Cluster two_leaves() {
  Cluster cluster;
  cluster.name = "two leaves";
  cluster.device = {"a100-40", Bytes(40'000'000'000),   1555e9, {{DType::kF32, 19.5e12}, {DType::kBF16, 312e12}}, 0.87,
                    5e-6,      "a \"quoted\" source: x"};
  cluster.levels = {{"node", 4, 5e-6, 227e9, 1}, {"leaf", 4, 14e-6, 24e9, 1}, {"spine", 2, 20e-6, 24e9, 2.5}};
  return cluster;
}

BOOST_AUTO_TEST_CASE(devices_and_nodes_are_counted_over_the_tree) {
  Cluster cluster = two_leaves();
  BOOST_TEST(cluster.num_devices() == 32);
  BOOST_TEST(cluster.devices_per_node() == 4);
  BOOST_TEST(cluster.devices_in_level(1) == 16);
  BOOST_TEST(cluster.shape_text() == "8 nodes x 4 a100-40, 2 leaf groups");
  BOOST_TEST(cluster.resized(4).shape_text() == "1 node x 4 a100-40");
}

BOOST_AUTO_TEST_CASE(two_devices_meet_at_the_innermost_level_that_joins_them) {
  Cluster cluster = two_leaves();
  BOOST_TEST(cluster.connecting_level(5, 5) == -1);
  BOOST_TEST(cluster.connecting_level(4, 7) == 0);
  BOOST_TEST(cluster.connecting_level(3, 4) == 1);
  BOOST_TEST(cluster.connecting_level(0, 15) == 1);
  BOOST_TEST(cluster.connecting_level(15, 16) == 2);
  for (int a = 0; a < 32; ++a)
    for (int b = 0; b < 32; ++b) BOOST_REQUIRE(cluster.connecting_level(a, b) == cluster.connecting_level(b, a));
}

BOOST_AUTO_TEST_CASE(resizing_gives_exactly_the_devices_asked_for) {
  Cluster cluster = two_leaves();
  for (int devices = 1; devices <= 130; ++devices) {
    Cluster resized = cluster.resized(devices);
    BOOST_REQUIRE(resized.num_devices() == devices);
    BOOST_REQUIRE(resized.levels[0].fanout <= 4);
    BOOST_REQUIRE(resized.levels[1].fanout <= 4);
  }
  BOOST_TEST(cluster.resized(64).shape_text() == "16 nodes x 4 a100-40, 4 leaf groups");
  BOOST_TEST(cluster.resized(6).shape_text() == "2 nodes x 3 a100-40");
}

BOOST_AUTO_TEST_CASE(printing_and_parsing_a_cluster_gives_it_back) {
  Cluster cluster = two_leaves();
  Result<Cluster> back = Cluster::from_yaml(cluster.to_yaml(), "printed.yaml");
  BOOST_REQUIRE_MESSAGE(back.is_ok(), back.status().to_string());
  BOOST_TEST(back->to_yaml() == cluster.to_yaml());
  BOOST_TEST(back->fingerprint() == cluster.fingerprint());
  BOOST_TEST(back->device.source == cluster.device.source);
  BOOST_TEST(back->levels[2].oversubscription == 2.5);
  BOOST_TEST((back->device.peak_flops == cluster.device.peak_flops));
}

BOOST_AUTO_TEST_CASE(the_fingerprint_follows_figures_and_not_names) {
  Cluster cluster = two_leaves(), renamed = two_leaves(), slower = two_leaves();
  renamed.name = "x";
  renamed.device.source = "y";
  slower.levels[1].bandwidth = 12e9;
  BOOST_TEST(renamed.fingerprint() == cluster.fingerprint());
  BOOST_TEST(slower.fingerprint() != cluster.fingerprint());
}

// A valid file of fixed lines, one of which each refusal test changes.
static const test::ClusterFile kSmall{{
    "altiplano_cluster: 1",                                           // 1
    "name: small",                                                    // 2
    "device:",                                                        // 3
    "  name: d",                                                      // 4
    "  memory: 8 GiB",                                                // 5
    "  memory_bandwidth: 10 GB/s",                                    // 6
    "  peak_flops: {f32: 100 GFLOP/s}",                               // 7
    "  source: measured",                                             // 8
    "levels:",                                                        // 9
    "  - {name: node, fanout: 2, latency: 1 us, bandwidth: 5 GB/s}",  // 10
}};

BOOST_AUTO_TEST_CASE(a_small_file_is_accepted_with_defaults_and_with_dos_line_ends) {
  BOOST_TEST(kSmall.refusal(0, "") == "accepted");
  std::string dos;
  for (char c : kSmall.with(0, "")) dos += c == '\n' ? std::string("\r\n") : std::string(1, c);
  Result<Cluster> cluster = Cluster::from_yaml(dos, "c.yaml");
  BOOST_REQUIRE_MESSAGE(cluster.is_ok(), cluster.status().to_string());
  BOOST_TEST(cluster->device.source == "measured");
  BOOST_TEST(cluster->levels[0].oversubscription == 1.0);
  BOOST_TEST(cluster->device.op_overhead == 0.0);
}

BOOST_AUTO_TEST_CASE(refusals_name_file_line_column_key_and_rule) {
  BOOST_TEST(kSmall.refusal(5, "  memroy: 8 GiB") == "c.yaml:4:3: device.memory: missing");
  BOOST_TEST(kSmall.refusal(4, "  name: d\n  memroy: 8 GiB") ==
             "c.yaml:5:3: device.memroy: unknown key; did you mean memory?");
  BOOST_TEST(kSmall.refusal(5, "  memory: 8 Gb") == "c.yaml:5:11: device.memory: \"8 Gb\" is not bytes such as 40 GiB");
  BOOST_TEST(kSmall.refusal(5, "  memory: 0") == "c.yaml:5:11: device.memory: 0 bytes; must be more than 0");
  BOOST_TEST(kSmall.refusal(7, "  peak_flops: {bf16: 100 GFLOP/s}") ==
             "c.yaml:7:15: device.peak_flops: no f32; it is what other types are estimated from");
  BOOST_TEST(kSmall.refusal(10, "  - {name: node, fanout: two, latency: 1 us, bandwidth: 5 GB/s}") ==
             "c.yaml:10:26: levels[0].fanout: \"two\" is no whole number up to 1000000");
  BOOST_TEST(kSmall.refusal(10, "  - {name: node, fanout: 0, latency: 1 us, bandwidth: 5 GB/s}") ==
             "c.yaml:10:26: levels[0].fanout: 0; must be at least 1");
  BOOST_TEST(
      kSmall.refusal(10, "  - {name: node, fanout: 2, latency: 1 us, bandwidth: 5 GB/s, oversubscription: 0.5}") ==
      "c.yaml:10:81: levels[0].oversubscription: 0.5; must be at least 1 (1: none)");
  BOOST_TEST(kSmall.refusal(1, "altiplano_cluster: 2") ==
             "c.yaml:1:20: altiplano_cluster: format 2; this version reads format 1");
  BOOST_TEST(kSmall.refusal(2, "name: a\nname: b") == "c.yaml:3:1: name: stands twice");
}

BOOST_AUTO_TEST_CASE(a_cluster_without_levels_is_refused) {
  std::string text = kSmall.with(10, "");
  std::string empty = text.substr(0, text.find("levels:")) + "levels: []\n";
  BOOST_TEST(Cluster::from_yaml(empty, "c.yaml").status().to_string() ==
             "c.yaml:9:9: levels: none; a cluster has at least the level \"node\"");
}

BOOST_AUTO_TEST_CASE(text_that_is_no_yaml_or_no_mapping_is_refused_and_not_thrown) {
  for (const char* text : {"a: [1", "- 1", "", "just words", "levels: 3", "device: [a, b]\nname: x", "\t: {"}) {
    Result<Cluster> cluster = Cluster::from_yaml(text, "c.yaml");
    BOOST_TEST(!cluster.is_ok(), text);
    BOOST_TEST(cluster.status().to_string().starts_with("c.yaml:"), cluster.status().to_string());
  }
}
