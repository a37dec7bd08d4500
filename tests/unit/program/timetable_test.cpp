#include "framework/program/timetable.hpp"

#include <boost/test/unit_test.hpp>

using namespace altiplano;

namespace {

Timetable table_of(const std::string& text) {
  auto table = Timetable::parse(text);
  BOOST_REQUIRE_MESSAGE(table.is_ok(), table.status().to_string());
  return *table;
}

std::string refusal_of(const std::string& text) {
  return verify_timetable(table_of(text)).message();
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_action_prints_and_parses_back) {
  for (const char* text : {"F0", "B12", "W3@1", "R7", "V2", "G", "U", "G@1"}) {
    auto action = Action::parse(text);
    BOOST_REQUIRE(action.is_ok());
    BOOST_TEST(action->to_string() == text);
  }
  BOOST_TEST((*Action::parse("F3@1") == Action{ActionKind::kForward, 3, 1}));
}

BOOST_AUTO_TEST_CASE(what_is_no_action_is_refused_with_the_form_expected) {
  for (const char* text : {"", "F", "X3", "F-1", "F3@", "F3@x", "G0", "3F", "F3 ", "F3.5"}) {
    auto action = Action::parse(text);
    BOOST_REQUIRE_MESSAGE(!action.is_ok(), text);
    BOOST_TEST(action.status().message().starts_with(std::string("'") + text +
                                                     "' is no action; expected a letter of F B W R V G U"));
  }
}

BOOST_AUTO_TEST_CASE(a_timetable_prints_and_parses_back) {
  std::string plain = "w0: F0 F1 B0 B1\nw1: F0 B0 F1 B1\n";
  Timetable table = table_of(plain);
  BOOST_TEST(table.to_string() == plain);
  BOOST_TEST(table.num_stages == 2);
  BOOST_TEST(table.num_microbatches == 2);
  std::string chunks = "w0 (s0 s2): F0 F0@1 B0@1 B0\nw1 (s1 s3): F0 F0@1 B0@1 B0\nafter w0:B0@1 -> w1:B0\n";
  table = table_of(chunks);
  BOOST_TEST(table.to_string() == chunks);
  BOOST_TEST(table.num_stages == 4);
  BOOST_TEST(table.after.at(0).from_index == 2);
  BOOST_TEST(verify_timetable(table).message() == "");
}

BOOST_AUTO_TEST_CASE(text_that_is_no_timetable_is_refused_by_line) {
  auto refusal = [](const std::string& text) { return Timetable::parse(text).status().message(); };
  BOOST_TEST(refusal("") == "timetable: no worker; expected lines like 'w0: F0 B0'");
  BOOST_TEST(refusal("w0: F0\nw2: F0\n") == "timetable line 2: expected worker w1, got 'w2'");
  BOOST_TEST(refusal("w0 (s0 2): F0") == "timetable line 1: '2' is no stage; expected s and a number, as in s2");
  BOOST_TEST(refusal("w0: F0 B0\nafter w0:F1 -> w0:B0") == "timetable line 2: w0 has no action F1");
  BOOST_TEST(refusal("w0 F0") == "timetable line 1: expected 'w0: ' and its actions, got 'w0 F0'");
}

BOOST_AUTO_TEST_CASE(one_stage_with_weight_parts_recompute_and_update_passes) {
  BOOST_TEST(refusal_of("w0: F0 R0 B0 F1 B1 W1 W0 G U") == "");
}

BOOST_AUTO_TEST_CASE(a_missing_or_doubled_action_is_named) {
  BOOST_TEST(refusal_of("w0: F0 B0 F1") == "timetable: B of microbatch 1 at stage 0 is missing; needed: once");
  BOOST_TEST(refusal_of("w0: F0 B0 F1 B1 W1") == "timetable: W of microbatch 0 at stage 0 is missing; needed: once");
  BOOST_TEST(refusal_of("w0: F0 B0 F0") ==
             "timetable: F of microbatch 0 at stage 0 stands twice, on w0 and w0; needed: once");
  BOOST_TEST(refusal_of("w0 (s0): F0 B0\nw1 (s0): F0") ==
             "timetable: F of microbatch 0 at stage 0 stands twice, on w0 and w1; needed: once");
  BOOST_TEST(refusal_of("w0: F0 V0 B0") ==
             "timetable: w0 V0: not an action of a training step (those are F B W R G U)");
}

BOOST_AUTO_TEST_CASE(a_backward_before_its_forward_is_refused) {
  BOOST_TEST(refusal_of("w0: B0 F0") ==
             "timetable: B0 at stage 0 (w0 position 0) must come after its F0 (w0 position 1) in the same chunk");
  BOOST_TEST(refusal_of("w0: F0 B0 R0") ==
             "timetable: B0 at stage 0 (w0 position 1) must come after its R0 (w0 position 2) in the same chunk");
}

BOOST_AUTO_TEST_CASE(a_backward_by_another_copy_of_the_stage_is_refused) {
  BOOST_TEST(refusal_of("w0 (s0): F0\nw1 (s0): B0") ==
             "timetable: B0 at stage 0 (w1 position 0) must come after its F0 (w0 position 0) in the same chunk");
}

BOOST_AUTO_TEST_CASE(copies_of_a_stage_may_share_the_microbatches) {
  BOOST_TEST(refusal_of("w0 (s0 s1): F0 F1@1 B1@1 B0\nw1 (s1 s0): F1@1 F0 B0 B1@1\n") == "");
}

BOOST_AUTO_TEST_CASE(work_behind_the_update_is_refused) {
  BOOST_TEST(refusal_of("w0: F0 B0 G F1 B1 U") ==
             "timetable: w0 F1: comes after G; G follows every B and W, U follows G");
  BOOST_TEST(refusal_of("w0: F0 B0 U G") == "timetable: w0 G: comes after U; G follows every B and W, U follows G");
}

BOOST_AUTO_TEST_CASE(a_cycle_between_workers_is_a_deadlock_that_names_both) {
  BOOST_TEST(refusal_of("w0: F0 B0 F1 B1\nw1: F0 F1 B0 B1") ==
             "timetable: deadlock with zero buffering: w0 stands at B0 and waits for w1 to do B0; w1 stands at F1 and "
             "waits for w0 to do F1");
}

BOOST_AUTO_TEST_CASE(order_that_needs_a_buffer_in_the_channel_is_a_deadlock) {
  // Data alone would allow it: w1 could take F1 while F0 waits in the channel. With one wire buffer at the sender F0
  // has to go first.
  BOOST_TEST(refusal_of("w0: F0 F1 B0 B1\nw1: F1 F0 B0 B1") ==
             "timetable: deadlock with zero buffering: w0 stands at F1 and waits for w1 to take the message for its "
             "F0; w1 stands at F1 and "
             "waits for w0 to do F1");
}

BOOST_AUTO_TEST_CASE(an_edge_is_waited_for) {
  BOOST_TEST(refusal_of("w0: F0 B0\nw1: F0 B0\nafter w0:F0 -> w1:B0\n") == "");
  BOOST_TEST(refusal_of("w0: F0 B0\nw1: F0 B0\nafter w0:B0 -> w1:F0\n") ==
             "timetable: deadlock with zero buffering: w0 stands at B0 and waits for w1 to do B0; w1 stands at F0 and "
             "waits for w0 to do B0 "
             "(edge)");
  Timetable table = table_of("w0: F0 B0");
  table.after.push_back({0, 0, 0, 9});
  BOOST_TEST(verify_timetable(table).message() ==
             "timetable: edge from w0 position 0 to w0 position 9 leaves the table");
}

BOOST_AUTO_TEST_CASE(a_table_that_contradicts_its_own_numbers_is_refused) {
  Timetable table = table_of("w0: F0 B0");
  table.num_microbatches = 2;
  BOOST_TEST(verify_timetable(table).message() == "timetable: F of microbatch 1 at stage 0 is missing; needed: once");
  table.num_microbatches = 0;
  BOOST_TEST(verify_timetable(table).message() == "timetable: 1 stage and 0 microbatches; the least is 1 of each");
  table = table_of("w0: F0@1 B0@1");
  BOOST_TEST(verify_timetable(table).message() == "timetable: w0 F0@1: the worker hosts 1 chunk");
  table = table_of("w0: F0 B0");
  table.chunk_stage[0][0] = StageId(3);
  BOOST_TEST(verify_timetable(table).message() == "timetable: w0 hosts stage 3; there are stages 0 to 0");
}

BOOST_AUTO_TEST_CASE(microbatches_in_flight_are_counted_per_worker) {
  std::vector<int> expected = {2, 1};
  BOOST_TEST(max_in_flight(table_of("w0: F0 F1 B0 B1\nw1: F0 B0 F1 B1")) == expected, boost::test_tools::per_element());
}
