#pragma once
// Plans for tests: from degrees, with the tensor-parallel rule applied, lowered and verified.
#include <boost/test/unit_test.hpp>

#include "framework/plan/degrees.hpp"
#include "framework/plugin/registry.hpp"
#include "framework/program/lowering.hpp"
#include "framework/sharding/dims.hpp"
#include "framework/sharding/tensor_parallel.hpp"

namespace altiplano::test {

inline Cluster test_cluster(int devices) {
  Cluster cluster;
  cluster.name = "test";
  cluster.device = {
      "cpu", Bytes(int64_t{1} << 34), 1e10, {{DType::kF32, 1e11}, {DType::kF64, 5e10}, {DType::kBF16, 2e11}}, 0.6, 0,
      "test"};
  cluster.levels = {{"node", devices, 1e-6, 1e10, 1.0}};
  return cluster;
}

/// Fails the test on a refusal.
inline Plan make_plan(const TrainingGraph& graph, const DegreePlanOptions& options) {
  auto plan = plan_from_degrees(graph, test_cluster(options.degrees.num_ranks()), options);
  BOOST_REQUIRE_MESSAGE(plan.is_ok(), plan.status().to_string());
  auto rules = rules_of(graph.graph);
  BOOST_REQUIRE_MESSAGE(rules.is_ok(), rules.status().to_string());
  auto specs = tensor_parallel_specs(graph.graph, *rules, options.degrees.tensor);
  BOOST_REQUIRE_MESSAGE(specs.is_ok(), specs.status().to_string());
  for (const auto& [id, spec] : *specs) plan->sharding.emplace_back(graph.graph.value(id).name, spec);
  Status status = verify_plan(*plan, graph);
  BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
  return std::move(plan).value();
}

inline Timetable make_timetable(const Plan& plan) {
  auto schedule = PluginRegistry::instance().schedule(plan.schedule);
  BOOST_REQUIRE_MESSAGE(schedule.is_ok(), schedule.status().to_string());
  ScheduleRequest request;
  request.num_stages = static_cast<int>(plan.stages.size());
  request.num_microbatches = plan.num_microbatches;
  auto timetable = (*schedule)->build(request);
  BOOST_REQUIRE_MESSAGE(timetable.is_ok(), timetable.status().to_string());
  return std::move(timetable).value();
}

inline std::vector<Program> lower_plan(const TrainingGraph& graph, const Plan& plan,
                                       const LoweringOptions& options = {}) {
  auto programs = lower(graph, plan, make_timetable(plan), Binding::identity(plan.num_slots()), options);
  BOOST_REQUIRE_MESSAGE(programs.is_ok(), programs.status().to_string());
  Status status = verify_programs(*programs);
  BOOST_REQUIRE_MESSAGE(status.is_ok(), plan.to_yaml() << status.to_string());
  return std::move(programs).value();
}

}  // namespace altiplano::test
