#include "framework/runtime/step_profile.hpp"

#include <boost/test/unit_test.hpp>

using namespace altiplano;

namespace {

Instruction compute(const char* kind) {
  ComputeInstruction add{kind, {}, {{BufferId(0), {0}, {4}}, {BufferId(0), {0}, {4}}}, {{BufferId(1), {0}, {4}}},
                         {},   {}};
  return {add, StreamKind::kCompute, {}, kind};
}

/// Two forward adds and a multiply, and an add in backward, on vectors of four floats.
Program program() {
  Program program;
  for (int i = 0; i < 2; ++i) {
    Buffer buffer;
    buffer.id = BufferId(i);
    buffer.bytes = 16;
    buffer.extents = {4};
    program.buffers.push_back(buffer);
  }
  program.blocks.push_back({BlockId(0),
                            "F",
                            ActionKind::kForward,
                            0,
                            MicrobatchVariant::kAny,
                            {compute("add"), compute("multiply"), compute("add")}});
  program.blocks.push_back({BlockId(1), "B", ActionKind::kBackward, 0, MicrobatchVariant::kAny, {compute("add")}});
  return program;
}

}  // namespace

BOOST_AUTO_TEST_CASE(instructions_that_do_the_same_are_one_row_per_step) {
  const Program p = program();
  StepProfile profile(p);
  BOOST_TEST(profile.rows().empty());
  for (int step = 0; step < 2; ++step) {
    profile.add(BlockId(0), 0, 0.1);
    profile.add(BlockId(0), 1, 0.5);
    profile.add(BlockId(0), 2, 0.3);
    profile.add(BlockId(1), 0, 0.2);
    profile.end_step(1.25);
  }
  const auto rows = profile.rows();
  BOOST_REQUIRE(rows.size() == 4u);
  BOOST_TEST(rows[0].what == "multiply");
  BOOST_TEST(rows[1].what == "add");
  BOOST_TEST(rows[1].during == "forward");
  BOOST_TEST(rows[1].calls == 2);
  BOOST_TEST(rows[1].seconds == 0.4, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(rows[1].flops == 8);
  BOOST_TEST(rows[1].bytes == 2 * 48);
  BOOST_TEST(rows[2].during == "backward");
  BOOST_TEST(rows[3].what == "between instructions");
  BOOST_TEST(rows[3].seconds == 0.15, boost::test_tools::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(seconds_are_summed_by_what_the_instructions_are) {
  std::vector<ProfileRow> rows(4);
  for (size_t i = 0; i < rows.size(); ++i) rows[i].seconds = 1.0 + static_cast<double>(i);
  rows[1].group = ProfileGroup::kMoved;
  rows[2].group = ProfileGroup::kExchanged;
  rows[3].group = ProfileGroup::kComputed;
  const auto seconds = seconds_by_group(rows);
  BOOST_TEST(seconds[0] == 5);
  BOOST_TEST(seconds[1] == 2);
  BOOST_TEST(seconds[2] == 3);
  BOOST_TEST(seconds[3] == 0);
}

BOOST_AUTO_TEST_CASE(small_rows_become_one_but_a_single_one_stays) {
  std::vector<ProfileRow> rows(4);
  const double seconds[] = {90, 8, 1.5, 0.5};
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].what = "op" + std::to_string(i);
    rows[i].calls = 2;
    rows[i].seconds = seconds[i];
  }
  const auto folded = with_small_rows_folded(rows, 0.02);
  BOOST_REQUIRE(folded.size() == 3u);
  BOOST_TEST(folded[1].what == "op1");
  BOOST_TEST(folded[2].what == "2 more");
  BOOST_TEST(folded[2].calls == 4);
  BOOST_TEST(folded[2].seconds == 2);
  BOOST_TEST(with_small_rows_folded(rows, 0.01).size() == 4u);
}

BOOST_AUTO_TEST_CASE(a_clock_without_a_profile_does_nothing_and_with_one_adds_its_life) {
  const Program p = program();
  StepProfile profile(p);
  { const InstructionClock none(nullptr, BlockId(0), 0); }
  { const InstructionClock clock(&profile, BlockId(0), 1); }
  profile.end_step(1);
  const auto rows = profile.rows();
  BOOST_REQUIRE(rows.size() == 2u);
  BOOST_TEST(rows[1].what == "multiply");
  BOOST_TEST(rows[1].seconds > 0);
}
