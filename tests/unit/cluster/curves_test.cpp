#include "framework/cluster/curves.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/cluster_file.hpp"

using namespace altiplano;

// A valid file, of which each refusal test changes one line.
static const test::ClusterFile kWithCurves{{
    "altiplano_cluster: 1",                                                                     // 1
    "name: small",                                                                              // 2
    "device:",                                                                                  // 3
    "  name: d",                                                                                // 4
    "  memory: 8 GiB",                                                                          // 5
    "  memory_bandwidth: 10 GB/s",                                                              // 6
    "  peak_flops: {f32: 100 GFLOP/s}",                                                         // 7
    "  overlaps_communication: false\n  eager_messages: 64 KiB",                                // 8
    "  curves:",                                                                                // 9
    "    products:",                                                                            // 10
    "      - {type: f32, points: [[1 MFLOP, 20 GFLOP/s], [1 GFLOP, 80 GFLOP/s]]}",              // 11
    "      - {type: bf16, smallest_dim: 64, points: [[1 MFLOP, 20 GFLOP/s]]}",                  // 12
    "    memory: [[4 KiB, 40 GB/s], [64 MiB, 10 GB/s]]",                                        // 13
    "    ops:",                                                                                 // 14
    "      - {kind: attention, type: f32, inner_passes: 2.5, points: [[1 MFLOP, 9 GFLOP/s]]}",  // 15
    "      - {kind: count, type: i32, points: [[1 KiB, 3 GB/s], [1 MiB, 4 GB/s]]}",             // 16
    "    sharing: {processors: 2, compute: [[2, 1.25]], memory: [[2, 1.5], [4, 3]]}",           // 17
    "  source: measured",                                                                       // 18
    "levels:",                                                                                  // 19
    "  - name: node",                                                                           // 20
    "    fanout: 2",                                                                            // 21
    "    latency: 1 us",                                                                        // 22
    "    bandwidth: 5 GB/s",                                                                    // 23
    "    curves:",                                                                              // 24
    "      bandwidth: [[1 KiB, 1 GB/s], [1 MiB, 5 GB/s]]",                                      // 25
    "      measured:",                                                                          // 26
    "        - {kind: all_reduce, ranks: 2, points: [[1 KiB, 2 us], [1 MiB, 300 us]]}",         // 27
    "        - {kind: message, points: [[1 KiB, 1 us]]}",                                       // 28
}};

BOOST_AUTO_TEST_CASE(curves_of_devices_and_levels_are_read_and_printed_back) {
  const Result<Cluster> cluster = Cluster::from_yaml(kWithCurves.with(0, ""), "c.yaml");
  BOOST_REQUIRE_MESSAGE(cluster.is_ok(), cluster.status().to_string());
  const DeviceCurves& curves = *cluster->device.curves;
  BOOST_TEST(!cluster->device.overlaps_communication);
  BOOST_TEST(cluster->device.eager_messages == 65536);
  BOOST_TEST(curves.products[0].smallest_dim == 0);
  BOOST_TEST(curves.products[1].smallest_dim == 64);
  BOOST_TEST((curves.products[0].points == Curve{{1e6, 20e9}, {1e9, 80e9}}));
  BOOST_TEST(curves.ops[0].by_flops);
  BOOST_TEST(curves.ops[0].inner_passes == 2.5);
  BOOST_TEST(!curves.ops[1].by_flops);
  BOOST_TEST((curves.ops[1].points == Curve{{1024, 3e9}, {1 << 20, 4e9}}));
  BOOST_TEST(curves.sharing.processors == 2);
  BOOST_TEST((curves.sharing.memory == Curve{{2, 1.5}, {4, 3}}));
  const LevelCurves& level = *cluster->levels[0].curves;
  BOOST_TEST((level.measured[0].kind == CollectiveKind::kAllReduce));
  BOOST_TEST(!level.measured[1].kind.has_value());
  const Result<Cluster> back = Cluster::from_yaml(cluster->to_yaml(), "printed.yaml");
  BOOST_REQUIRE_MESSAGE(back.is_ok(), back.status().to_string());
  BOOST_TEST(back->to_yaml() == cluster->to_yaml());
  BOOST_TEST(back->fingerprint() == cluster->fingerprint());
  BOOST_TEST((back->levels[0].curves->measured[0].points == level.measured[0].points));
}

BOOST_AUTO_TEST_CASE(alignment_and_dispatch_are_read_and_printed_back) {
  const Result<Cluster> cluster = Cluster::from_yaml(
      kWithCurves.with(17, "    alignment: {multiple_of: 8, times_longer: 2.5}\n  dispatch: 40 us"), "c.yaml");
  BOOST_REQUIRE_MESSAGE(cluster.is_ok(), cluster.status().to_string());
  BOOST_TEST(cluster->device.curves->alignment.multiple_of == 8);
  BOOST_TEST(cluster->device.curves->alignment.times_longer == 2.5);
  BOOST_TEST(cluster->device.dispatch == 40e-6);
  BOOST_TEST(Cluster::from_yaml(cluster->to_yaml(), "printed.yaml")->to_yaml() == cluster->to_yaml());
}

BOOST_AUTO_TEST_CASE(the_fingerprint_follows_curves) {
  const auto fingerprint = [](size_t line, const std::string& text) {
    return Cluster::from_yaml(kWithCurves.with(line, text), "c.yaml")->fingerprint();
  };
  const uint64_t whole = fingerprint(0, "");
  BOOST_TEST(fingerprint(18, "  source: elsewhere") == whole);
  BOOST_TEST(fingerprint(13, "    memory: [[4 KiB, 40 GB/s], [64 MiB, 11 GB/s]]") != whole);
  BOOST_TEST(fingerprint(28, "        - {kind: message, points: [[1 KiB, 2 us]]}") != whole);
  BOOST_TEST(fingerprint(8, "  overlaps_communication: true") != whole);
}

BOOST_AUTO_TEST_CASE(refusals_of_curves_name_file_line_column_key_and_rule) {
  BOOST_TEST(kWithCurves.refusal(8, "  overlaps_communication: no") ==
             "c.yaml:8:27: device.overlaps_communication: \"no\" is neither true nor false");
  BOOST_TEST(kWithCurves.refusal(11, "      - {type: f31, points: [[1 MFLOP, 20 GFLOP/s]]}") ==
             "c.yaml:12:16: device.curves.products[0].type: \"f31\" is no type here; valid: f64, f32, bf16");
  BOOST_TEST(kWithCurves.refusal(11, "      - {type: f32, point: [[1 MFLOP, 20 GFLOP/s]]}") ==
             "c.yaml:12:21: device.curves.products[0].point: unknown key; did you mean points?");
  BOOST_TEST(kWithCurves.refusal(11, "      - {type: f32, points: [[1 MiB, 20 GFLOP/s]]}") ==
             "c.yaml:12:31: device.curves.products[0].points: \"1 MiB\" is not work such as 20 GFLOP");
  BOOST_TEST(kWithCurves.refusal(11, "      - {type: f32, points: [1 MFLOP]}") ==
             "c.yaml:12:30: device.curves.products[0].points: must be pairs [size, value]");
  BOOST_TEST(kWithCurves.refusal(11, "      - {type: f32, points: []}") ==
             "c.yaml:12:29: device.curves.products[0].points: none; a curve has at least one point [size, value]");
  BOOST_TEST(kWithCurves.refusal(13, "    memory: [[64 MiB, 10 GB/s], [4 KiB, 40 GB/s]]") ==
             "c.yaml:14:13: device.curves.memory: the size 4096 of point 1 follows 6.71089e+07; sizes must rise");
  BOOST_TEST(kWithCurves.refusal(13, "    memory: [[1 KiB, 1 GB/s], [2 KiB, 4 GB/s]]") ==
             "c.yaml:14:13: device.curves.memory: size 1024 takes 1.024e-06 s and 2048 takes 5.12e-07 s; more must not "
             "take less");
  BOOST_TEST(kWithCurves.refusal(16, "      - {kind: attention, type: f32, points: [[1 KiB, 3 GB/s]]}") ==
             "c.yaml:17:16: device.curves.ops[1].kind: attention of f32 stands twice");
  BOOST_TEST(kWithCurves.refusal(17, "    sharing: {compute: [[2, 0.5]]}") ==
             "c.yaml:18:24: device.curves.sharing.compute: 2 devices take 0.5 times as long; points are of more than "
             "one device, which takes 1, and factors at least 1");
  BOOST_TEST(kWithCurves.refusal(17, "    alignment: {multiple_of: 8, times_longer: 0.5}") ==
             "c.yaml:18:47: device.curves.alignment.times_longer: 0.5; must be at least 1");
  BOOST_TEST(kWithCurves.refusal(15, "      - {kind: gelu, type: bf16, inner_passes: -1, points: [[1 KiB, 3 GB/s]]}") ==
             "c.yaml:16:48: device.curves.ops[0].inner_passes: -1; must not be negative");
  BOOST_TEST(kWithCurves.refusal(25, "      bandwidth: 5 GB/s") ==
             "c.yaml:26:18: levels[0].curves.bandwidth: must be a list of pairs [size, value]");
  BOOST_TEST(
      kWithCurves.refusal(27, "        - {kind: allreduce, ranks: 2, points: [[1 KiB, 2 us]]}") ==
      "c.yaml:28:18: levels[0].curves.measured[0].kind: \"allreduce\" is no exchange; valid: message, all_reduce, "
      "all_gather, reduce_scatter, all_to_all, broadcast, barrier");
  BOOST_TEST(kWithCurves.refusal(27, "        - {kind: all_reduce, points: [[1 KiB, 2 us]]}") ==
             "c.yaml:28:11: levels[0].curves.measured[0].ranks: missing");
  BOOST_TEST(kWithCurves.refusal(28, "        - {kind: message, ranks: 3, points: [[1 KiB, 1 us]]}") ==
             "c.yaml:29:34: levels[0].curves.measured[1].ranks: 3; must be at least 2, and 2 for a message");
}
