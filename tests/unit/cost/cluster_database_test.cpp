// Measured clusters in the profile database: found again by machine, and never in the way.
#include "framework/cost/cluster_database.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/temporary_directory.hpp"

namespace altiplano::test {
namespace {

MeasuredCluster measured(const std::string& machine, double bandwidth) {
  Cluster cluster;
  cluster.name = "this-machine";
  cluster.device = {"core", Bytes(1 << 30), bandwidth, {{DType::kF32, 1e11}}, 1, 1e-6, "measured"};
  DeviceCurves curves;
  curves.memory = {{1024, bandwidth}};
  cluster.device.curves = std::make_shared<const DeviceCurves>(curves);
  cluster.levels = {{"node", 2, 1e-6, 1e9, 1}};
  return {machine, "2026-12-01", 0.05, cluster};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cluster_database)

BOOST_AUTO_TEST_CASE(a_measured_cluster_is_found_again_by_its_machine) {
  TemporaryDirectory folder;
  const std::string path = folder / "deep/clusters.h5";
  BOOST_REQUIRE(ClusterDatabase::read(path).store(measured("a cpu; 1 thread", 1e9)).is_ok());
  BOOST_REQUIRE(ClusterDatabase::read(path).store(measured("a cpu; 2 threads", 2e9)).is_ok());
  BOOST_REQUIRE(ClusterDatabase::read(path).store(measured("a cpu; 1 thread", 3e9)).is_ok());
  const ClusterDatabase found = ClusterDatabase::read(path);
  BOOST_TEST(found.notice() == "");
  const MeasuredCluster* one = found.find("a cpu; 1 thread");
  BOOST_REQUIRE(one != nullptr);
  BOOST_TEST(one->cluster.fingerprint() == measured("", 3e9).cluster.fingerprint());
  BOOST_TEST(one->cluster.device.curves->memory[0].value == 3e9);
  BOOST_TEST(one->date == "2026-12-01");
  BOOST_TEST(one->spread == 0.05);
  BOOST_TEST(found.find("a cpu; 2 threads")->cluster.device.memory_bandwidth == 2e9);
  BOOST_TEST(found.find("another cpu; 1 thread") == nullptr);
}

BOOST_AUTO_TEST_CASE(a_damaged_database_is_told_and_made_anew) {
  TemporaryDirectory folder;
  const std::string path = folder / "clusters.h5";
  BOOST_REQUIRE(ClusterDatabase::read(path).store(measured("a cpu; 1 thread", 1e9)).is_ok());
  const std::string whole = read_bytes(path);
  for (size_t at = 0; at < whole.size(); at += 211) {
    write_bytes(path, whole);
    flip_bit(path, at);
    BOOST_TEST(ClusterDatabase::read(path).notice() == path + " is damaged", at);
  }
  BOOST_REQUIRE(ClusterDatabase::read(path).store(measured("a cpu; 1 thread", 2e9)).is_ok());
  BOOST_TEST(ClusterDatabase::read(path).find("a cpu; 1 thread")->cluster.device.memory_bandwidth == 2e9);
}

BOOST_AUTO_TEST_CASE(where_nothing_can_be_written_storing_says_so) {
  BOOST_TEST(!ClusterDatabase::read("").store(measured("a cpu", 1e9)).is_ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
