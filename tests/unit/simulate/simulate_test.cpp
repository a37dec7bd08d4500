#include "framework/simulate/simulate.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "framework/plugin/registry.hpp"

using namespace altiplano;

namespace {

Timetable schedule(const std::string& name, int stages, int microbatches) {
  ScheduleRequest request;
  request.num_stages = stages;
  request.num_microbatches = microbatches;
  return *(**PluginRegistry::instance().schedule(name)).build(request);
}

SimulationCosts equal_costs(int stages, double forward, double backward, double transfer = 0) {
  SimulationCosts costs;
  StageCosts stage;
  stage.forward = Seconds(forward);
  stage.backward = Seconds(backward);
  costs.stages.assign(static_cast<size_t>(stages), stage);
  costs.transfer.assign(static_cast<size_t>(stages - 1), Seconds(transfer));
  return costs;
}

Simulation simulate_table(const Timetable& table, const SimulationCosts& costs) {
  auto simulation = simulate_timetable(table, costs);
  BOOST_REQUIRE_MESSAGE(simulation.is_ok(), simulation.status().to_string());
  return *simulation;
}

/// The end of every action by relaxing "an action ends its cost after all it waits for" until nothing moves: slow and
/// with no order of its own.
double step_by_relaxation(const Timetable& table, const SimulationCosts& costs) {
  struct Node {
    size_t worker;
    int stage;
    Action action;
    double end = 0;
  };
  std::vector<Node> nodes;
  for (size_t w = 0; w < table.workers.size(); ++w) {
    for (const Action& action : table.workers[w]) {
      nodes.push_back({w, table.chunk_stage[w][static_cast<size_t>(action.chunk)].value, action});
    }
  }
  bool moved = true;
  while (moved) {
    moved = false;
    for (size_t i = 0; i < nodes.size(); ++i) {
      Node& node = nodes[i];
      bool is_forward = node.action.kind == ActionKind::kForward;
      double start = i > 0 && nodes[i - 1].worker == node.worker ? nodes[i - 1].end : 0;
      for (const Node& other : nodes) {
        bool feeds = other.action.kind == node.action.kind && other.action.microbatch == node.action.microbatch &&
                     other.stage == node.stage + (is_forward ? -1 : 1);
        if (!feeds) continue;
        double wire = other.worker == node.worker
                          ? 0
                          : costs.transfer[static_cast<size_t>(std::min(other.stage, node.stage))].value;
        start = std::max(start, other.end + wire);
      }
      const StageCosts& stage = costs.stages[static_cast<size_t>(node.stage)];
      double end = start + (is_forward ? stage.forward : stage.backward).value;
      if (end > node.end) node.end = end, moved = true;
    }
  }
  double last = 0;
  for (const Node& node : nodes) last = std::max(last, node.end);
  return last;
}

}  // namespace

BOOST_AUTO_TEST_CASE(equal_stages_have_the_bubble_of_the_papers) {
  for (const char* name : {"gpipe", "1f1b"}) {
    for (int p = 1; p <= 8; ++p) {
      for (int m = 1; m <= 20; ++m) {
        for (auto [forward, backward] : {std::pair(1.0, 2.0), std::pair(1.0, 1.0), std::pair(3.0, 1.0)}) {
          Simulation simulation = simulate_table(schedule(name, p, m), equal_costs(p, forward, backward));
          BOOST_REQUIRE_CLOSE_FRACTION(simulation.step.value, (m + p - 1) * (forward + backward), 1e-12);
          BOOST_REQUIRE_SMALL(simulation.bubble - static_cast<double>(p - 1) / (m + p - 1), 1e-12);
          for (Seconds busy : simulation.busy)
            BOOST_REQUIRE_CLOSE_FRACTION(busy.value, m * (forward + backward), 1e-12);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(messages_cost_time_on_the_way_there_and_back) {
  Simulation simulation = simulate_table(schedule("1f1b", 3, 1), equal_costs(3, 1, 2, 0.5));
  BOOST_TEST(simulation.step.value == 3 * (1 + 2) + 4 * 0.5);
  // GPipe: the messages of later microbatches travel behind the first one's.
  simulation = simulate_table(schedule("gpipe", 3, 5), equal_costs(3, 1, 2, 0.5));
  BOOST_TEST(simulation.step.value == (5 + 2) * 3 + 4 * 0.5);
}

BOOST_AUTO_TEST_CASE(the_timeline_has_every_action_in_order_and_without_overlap) {
  Simulation simulation = simulate_table(schedule("1f1b", 2, 2), equal_costs(2, 1, 2));
  std::string text;
  for (const auto& timeline : simulation.timelines) {
    for (const auto& entry : timeline)
      text += fmt::format("{}[{},{}] ", entry.action.to_string(), entry.begin.value, entry.end.value);
    text += "| ";
  }
  BOOST_TEST(text == "F0[0,1] F1[1,2] B0[4,6] B1[7,9] | F0[1,2] B0[2,4] F1[4,5] B1[5,7] | ");
  BOOST_TEST(simulation.step.value == 9);
}

BOOST_AUTO_TEST_CASE(the_slowest_stage_sets_the_pace) {
  SimulationCosts costs = equal_costs(4, 1, 2);
  costs.stages[2].forward = Seconds(5);
  costs.stages[2].backward = Seconds(10);
  Simulation simulation = simulate_table(schedule("1f1b", 4, 32), costs);
  BOOST_TEST(simulation.busy[2].value == 32 * 15);
  // Stage 2 waits for two forwards, then never again; two backwards follow it. Stage 3 works in its shadow.
  BOOST_TEST(simulation.step.value == 2 * 1 + 32 * 15 + 2 * 2);
}

BOOST_AUTO_TEST_CASE(uneven_stages_and_wires_end_when_the_longest_path_does) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> cost(0, 3);
  for (const char* name : {"gpipe", "1f1b"}) {
    for (int trial = 0; trial < 20; ++trial) {
      int p = 1 + trial % 5, m = 1 + trial % 7;
      SimulationCosts costs = equal_costs(p, 1, 1);
      for (auto& stage : costs.stages) stage.forward = Seconds(cost(random)), stage.backward = Seconds(cost(random));
      for (auto& wire : costs.transfer) wire = Seconds(cost(random));
      Timetable table = schedule(name, p, m);
      BOOST_TEST(simulate_table(table, costs).step.value == step_by_relaxation(table, costs),
                 boost::test_tools::tolerance(1e-12));
    }
  }
}

BOOST_AUTO_TEST_CASE(chunks_of_one_worker_hand_over_for_nothing_and_edges_are_waited_for) {
  SimulationCosts costs = equal_costs(2, 1, 2, 100);
  BOOST_TEST(simulate_table(*Timetable::parse("w0 (s0 s1): F0 F0@1 B0@1 B0"), costs).step.value == 6);
  costs = equal_costs(1, 1, 2);
  Simulation simulation =
      simulate_table(*Timetable::parse("w0 (s0): F0 B0\nw1 (s0): F1 B1\nafter w0:B0 -> w1:F1"), costs);
  BOOST_TEST(simulation.step.value == 6);
  BOOST_TEST(simulation.bubble == 0.5);
}

BOOST_AUTO_TEST_CASE(weight_parts_recompute_reduce_and_update_cost_what_they_are_given) {
  SimulationCosts costs = equal_costs(1, 1, 2);
  costs.stages[0].backward_weight = Seconds(4);
  costs.stages[0].recompute = Seconds(8);
  costs.stages[0].reduce = Seconds(16);
  costs.stages[0].update = Seconds(32);
  BOOST_TEST(simulate_table(*Timetable::parse("w0: F0 R0 B0 W0 G U"), costs).step.value == 63);
}

BOOST_AUTO_TEST_CASE(wrong_costs_and_wrong_timetables_are_refused) {
  Timetable table = schedule("1f1b", 2, 2);
  auto refusal = [](const Timetable& t, const SimulationCosts& costs) {
    return simulate_timetable(t, costs).status().message();
  };
  BOOST_TEST(refusal(table, equal_costs(3, 1, 2)) == "simulation: costs of 3 stages for a timetable of 2");
  SimulationCosts costs = equal_costs(2, 1, 2);
  costs.transfer.resize(2);
  BOOST_TEST(refusal(table, costs) == "simulation: 2 transfer costs for 1 boundaries between 2 stages");
  BOOST_TEST(refusal(table, equal_costs(2, 1, 2, -1)) ==
             "simulation: a transfer between stages 0 and 1 costs -1 s; a cost is finite and not negative");
  costs = equal_costs(2, 1, std::numeric_limits<double>::quiet_NaN());
  BOOST_TEST(refusal(table, costs) == "simulation: stage 0 has the cost nan s; a cost is finite and not negative");
  BOOST_TEST(refusal(*Timetable::parse("w0: F0"), equal_costs(1, 1, 2)).starts_with("timetable: B of microbatch 0"));
}

BOOST_AUTO_TEST_CASE(a_step_of_no_cost_has_no_bubble) {
  Simulation simulation = simulate_table(schedule("gpipe", 2, 2), equal_costs(2, 0, 0));
  BOOST_TEST(simulation.step.value == 0);
  BOOST_TEST(simulation.bubble == 0);
}
