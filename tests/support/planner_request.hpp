#pragma once
// What the host hands to a planner, over any graph and a test's cluster.
#include <boost/test/unit_test.hpp>

#include "framework/config/job_config.hpp"
#include "framework/simulate/plan_estimate.hpp"
#include "tests/support/plans.hpp"

namespace altiplano::test {

class PlannerBench {
 public:
  PlannerBench(const TrainingGraph& graph, int ranks) : PlannerBench(graph, test_cluster(ranks)) {}
  PlannerBench(const TrainingGraph& graph, Cluster cluster) : graph_(graph), cluster_(std::move(cluster)) {
    services_.schedule = [](const std::string& name) { return PluginRegistry::instance().schedule(name); };
    services_.estimate = [this](const Plan& plan) {
      return estimate_plan(graph_, plan, cluster_.resized(plan.num_slots()), make_timetable(plan));
    };
    services_.preview = [this](const Plan& plan) {
      LoweringOptions options;
      options.only_first_of_stage = true;
      return estimate_plan(graph_, plan, cluster_.resized(plan.num_slots()), make_timetable(plan), options);
    };
  }
  PlannerBench(const PlannerBench&) = delete;

  /// All of the cluster's devices, 16 GiB each, options at their defaults. Points to this.
  PlanRequest request() const {
    PlanRequest request;
    request.graph = &graph_;
    request.cluster = &cluster_;
    request.services = &services_;
    request.options = Options(job_option_records()).section("parallel");
    request.num_ranks = cluster_.num_devices();
    request.global_batch = graph_.graph.value(graph_.inputs[0]).shape[0];
    request.memory_per_rank = cluster_.device.memory;
    return request;
  }

 private:
  const TrainingGraph& graph_;
  Cluster cluster_;
  PlannerServices services_;
};

inline const Planner& planner_plugin(const std::string& name) {
  auto& registry = PluginRegistry::instance();
  static const bool once = (registry.add_search_path(ALTIPLANO_TEST_PLUGIN_DIR), true);
  (void)once;
  auto planner = registry.planner(name);
  BOOST_REQUIRE_MESSAGE(planner.is_ok(), planner.status().to_string());
  return **planner;
}

}  // namespace altiplano::test
