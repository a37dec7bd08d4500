// `altiplano profile --cluster` through the program: what was measured is a cluster file, and what this-machine is from
// then on.
#include <boost/test/unit_test.hpp>
#include <cstdlib>

#include "framework/cluster/cluster.hpp"
#include "framework/plan/plan.hpp"
#include "tests/support/job_folder.hpp"
#include "tests/support/own_cache.hpp"

namespace altiplano::test {
namespace {

/// A folder whose commands keep what they measure in it.
struct MeasuredCluster {
  JobFolder job;
  const OwnCache cache{job / "cache"};

  std::string profile(int ranks, const std::string& more) const {
    return job.plan_arguments(ranks, "run.dir=measured device.threads=1 " + degrees_text(1, 1, 1))
               .replace(0, 4, "profile") +
           more;
  }
  Plan planned(const std::string& settings) const {
    const auto result =
        job.altiplano(job.plan_arguments(2, "device.threads=1 " + degrees_text(2, 1, 1) + settings) + " -o plan.yaml");
    BOOST_REQUIRE_MESSAGE(result.exit_code == 0, result.output);
    return Plan::from_yaml(read_bytes(job / "plan.yaml"), "plan.yaml").value();
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(measured_clusters, MeasuredCluster)

BOOST_AUTO_TEST_CASE(a_machine_is_measured_once_and_planned_with_from_then_on) {
  const Plan before = planned("");
  BOOST_TEST(before.cluster_figures == "");
  const auto measured = job.altiplano(profile(2, " --cluster machine.yaml"));
  BOOST_REQUIRE_MESSAGE(measured.exit_code == 0, measured.output);
  BOOST_TEST(measured.output.find("written   machine.yaml") != std::string::npos, measured.output);
  const auto cluster = Cluster::from_yaml(read_bytes(job / "machine.yaml"), "machine.yaml");
  BOOST_REQUIRE_MESSAGE(cluster.is_ok(), cluster.status().to_string());
  BOOST_TEST(cluster->device.source.starts_with("measured 20"));
  BOOST_TEST(!cluster->device.curves->products.empty());
  BOOST_TEST(!cluster->device.curves->ops.empty());
  BOOST_TEST(!cluster->levels[0].curves->measured.empty());
  BOOST_TEST(cluster->device.curves->sharing.processors >= 1);

  const Plan after = planned("");
  BOOST_TEST(after.cluster_figures.starts_with("measured on this machine 20"), after.cluster_figures);
  BOOST_TEST(after.cluster_fingerprint == cluster->resized(2).fingerprint());
  BOOST_TEST(after.cluster_fingerprint != before.cluster_fingerprint);
  BOOST_TEST(planned(" cluster=./machine.yaml").predicted.step.value == after.predicted.step.value);
  const auto shown = job.altiplano(job.plan_arguments(2, "device.threads=1 " + degrees_text(2, 1, 1)) + " --explain");
  BOOST_TEST(shown.output.find("by figures measured on this machine") != std::string::npos, shown.output);
}

BOOST_AUTO_TEST_CASE(a_cluster_file_replaces_no_file_of_another_kind) {
  const auto refused = job.altiplano(profile(1, " --cluster job.yaml"));
  BOOST_TEST(refused.exit_code == 2, refused.output);
  BOOST_TEST(job.altiplano(profile(1, " --cluster machine.yaml --steps 3")).exit_code == 2);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
