// The bubble rates that Zero Bubble (table 5) prints for its profiled times, from the action lists of its schedules: a
// test of the simulation's logic, to all four printed decimals. A rate is the share of the longest span of a stage,
// from its first action's beginning to its last one's end, that is no work.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <fstream>
#include <sstream>

#include "framework/simulate/simulate.hpp"

namespace altiplano {

namespace {

enum class Kind { k1F1B, kH1, kH2 };

/// B before W before F, as they come. The weights' part of microbatch j follows the input's part of j + lag, so that a
/// stage holds no more than the schedule allows.
std::vector<Action> actions_of(Kind kind, int stages, int microbatches, int stage) {
  const int left = stages - stage;
  const int warm_up = std::min(microbatches, kind == Kind::kH2 ? 2 * left - 1 : left);
  const int lag = kind == Kind::kH2 ? 2 * stage : stage;
  std::vector<Action> list;
  int forward = 0, weight = 0;
  while (forward < warm_up) list.push_back({ActionKind::kForward, forward++});
  for (int backward = 0; backward < microbatches; ++backward) {
    list.push_back({ActionKind::kBackward, backward});
    if (kind != Kind::k1F1B && backward >= lag) list.push_back({ActionKind::kBackwardWeight, weight++});
    if (forward < microbatches) list.push_back({ActionKind::kForward, forward++});
  }
  while (kind != Kind::k1F1B && weight < microbatches) list.push_back({ActionKind::kBackwardWeight, weight++});
  return list;
}

Timetable timetable_of(Kind kind, int stages, int microbatches) {
  Timetable table;
  table.num_stages = stages;
  table.num_microbatches = microbatches;
  for (int s = 0; s < stages; ++s) {
    table.chunk_stage.push_back({StageId(s)});
    table.workers.push_back(actions_of(kind, stages, microbatches, s));
  }
  return table;
}

struct PrintedRow {
  int stages = 0, microbatches = 0;
  double forward = 0, backward = 0, weight = 0, transfer = 0;
  double rates[3] = {};  ///< 1F1B, ZB-H1, ZB-H2
};

std::vector<PrintedRow> printed_rows() {
  std::ifstream in(ALTIPLANO_SOURCE_DIR "/tests/fixtures/published/zero_bubble_table5.csv");
  std::vector<PrintedRow> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || std::isdigit(static_cast<unsigned char>(line[0])) == 0) continue;
    std::ranges::replace(line, ',', ' ');
    std::istringstream words(line);
    PrintedRow r;
    words >> r.stages >> r.microbatches >> r.forward >> r.backward >> r.weight >> r.transfer >> r.rates[0] >>
        r.rates[1] >> r.rates[2];
    BOOST_REQUIRE(!words.fail());
    rows.push_back(r);
  }
  return rows;
}

double bubble_rate(Kind kind, const PrintedRow& row) {
  StageCosts costs;
  costs.forward = Seconds(row.forward);
  costs.backward = Seconds(row.backward + (kind == Kind::k1F1B ? row.weight : 0));
  costs.backward_weight = Seconds(row.weight);
  SimulationCosts all;
  all.stages.assign(static_cast<size_t>(row.stages), costs);
  all.transfer.assign(static_cast<size_t>(row.stages - 1), Seconds(row.transfer));
  const auto simulation = simulate_timetable(timetable_of(kind, row.stages, row.microbatches), all);
  BOOST_REQUIRE_MESSAGE(simulation.is_ok(), simulation.status().to_string());
  double longest = 0;
  for (const auto& timeline : simulation->timelines)
    longest = std::max(longest, (timeline.back().end - timeline.front().begin).value);
  return 1 - row.microbatches * (row.forward + row.backward + row.weight) / longest;
}

}  // namespace

BOOST_AUTO_TEST_CASE(printed_bubble_rates_come_out_to_four_decimals) {
  constexpr double kHalfADecimal = 5e-5;
  const std::vector<PrintedRow> rows = printed_rows();
  BOOST_REQUIRE(rows.size() == 12);
  for (const PrintedRow& row : rows)
    for (const Kind kind : {Kind::k1F1B, Kind::kH1, Kind::kH2})
      BOOST_TEST(std::abs(bubble_rate(kind, row) - row.rates[static_cast<int>(kind)]) <= kHalfADecimal,
                 "p " << row.stages << " m " << row.microbatches << ": " << bubble_rate(kind, row) << ", printed "
                      << row.rates[static_cast<int>(kind)]);
}

}  // namespace altiplano
