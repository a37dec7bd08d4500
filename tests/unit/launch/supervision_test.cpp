#include "framework/launch/supervision.hpp"

#include <boost/test/unit_test.hpp>

using namespace altiplano;

namespace {

const std::vector<std::string> kAllocated = {"n1", "n2", "n3", "n4"};
const std::vector<std::string> kUsed = {"n1", "n2", "n3"};
constexpr SupervisionLimits kLimits{.nodes = 3, .min_nodes = 2, .max_restarts = 2};

StartEnd ended(int exit_code, std::set<std::string> lost = {}) {
  StartEnd end;
  end.exit_code = exit_code;
  end.lost = std::move(lost);
  return end;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(supervision)

BOOST_AUTO_TEST_CASE(only_the_record_of_all_ranks_is_an_end_whatever_srun_says) {
  StartEnd end = ended(0);
  BOOST_TEST((decide_after(kLimits, end, kAllocated, kUsed, 0).move == NextMove::kRestart));
  end = ended(137);
  end.has_record = end.is_done = true;
  const Decision done = decide_after(kLimits, end, kAllocated, kUsed, 0);
  BOOST_TEST((done.move == NextMove::kDone));
  BOOST_TEST(done.exit_code == 0);
  end.is_done = false;
  const Decision stopped = decide_after(kLimits, end, kAllocated, kUsed, 0);
  BOOST_TEST((stopped.move == NextMove::kRequeue));
  BOOST_TEST(stopped.exit_code == 75);
}

BOOST_AUTO_TEST_CASE(a_spare_node_takes_the_place_of_one_that_is_lost) {
  const Decision decision = decide_after(kLimits, ended(137, {"n2"}), kAllocated, kUsed, 0);
  BOOST_TEST((decision.move == NextMove::kRestart));
  BOOST_TEST(decision.hosts == (std::vector<std::string>{"n1", "n3", "n4"}), boost::test_tools::per_element());
  BOOST_TEST(decision.reason == "missing: n2");
}

BOOST_AUTO_TEST_CASE(without_spare_nodes_it_goes_on_with_those_left_until_they_are_too_few) {
  const Decision two = decide_after(kLimits, ended(1, {"n2", "n4"}), kAllocated, kUsed, 0);
  BOOST_TEST((two.move == NextMove::kRestart));
  BOOST_TEST(two.hosts == (std::vector<std::string>{"n1", "n3"}), boost::test_tools::per_element());
  const Decision one = decide_after(kLimits, ended(1, {"n1", "n2", "n4"}), kAllocated, kUsed, 0);
  BOOST_TEST((one.move == NextMove::kRequeue));
  BOOST_TEST(one.exit_code == 75);
  BOOST_TEST(one.reason == "missing: n1, n2; 1 node left, slurm.min_nodes is 2");
}

BOOST_AUTO_TEST_CASE(a_refusal_is_not_tried_again_unless_a_node_was_lost_with_it) {
  for (const int code : {2, 3, 4, 5}) {
    const Decision refused = decide_after(kLimits, ended(code), kAllocated, kUsed, 0);
    BOOST_TEST((refused.move == NextMove::kFail));
    BOOST_TEST(refused.exit_code == code);
    BOOST_TEST((decide_after(kLimits, ended(code, {"n3"}), kAllocated, kUsed, 0).move == NextMove::kRestart));
  }
}

BOOST_AUTO_TEST_CASE(starts_that_die_without_a_new_checkpoint_are_counted_and_end_and_progress_begins_the_count_anew) {
  int restarts = 0;
  for (int start = 0; start < 2; ++start) {
    const Decision again = decide_after(kLimits, ended(134), kAllocated, kUsed, restarts);
    BOOST_TEST((again.move == NextMove::kRestart));
    restarts = again.restarts;
  }
  StartEnd progress = ended(134);
  progress.made_progress = true;
  BOOST_TEST(decide_after(kLimits, progress, kAllocated, kUsed, restarts).restarts == 0);
  const Decision last = decide_after(kLimits, ended(134), kAllocated, kUsed, restarts);
  BOOST_TEST((last.move == NextMove::kFail));
  BOOST_TEST(last.exit_code == 134);
  // srun's 0 without a record is a failure, too.
  BOOST_TEST(decide_after(kLimits, ended(0), kAllocated, kUsed, restarts).exit_code == 1);
}

BOOST_AUTO_TEST_CASE(a_job_that_was_asked_to_stop_starts_nothing_more) {
  StartEnd end = ended(143);
  end.is_asked_to_stop = true;
  const Decision decision = decide_after(kLimits, end, kAllocated, kUsed, 0);
  BOOST_TEST((decision.move == NextMove::kRequeue));
  BOOST_TEST(decision.exit_code == 75);
}

BOOST_AUTO_TEST_CASE(a_start_that_was_ended_for_a_rank_begins_again_and_says_for_which) {
  StartEnd end = ended(137);
  end.ended_for = "rank 1 on n2 does nothing for 10 s in step 47";
  const Decision again = decide_after(kLimits, end, kAllocated, kUsed, 0);
  BOOST_TEST((again.move == NextMove::kRestart));
  BOOST_TEST(again.restarts == 1);
  BOOST_TEST(again.reason == "no rank's node is missing, rank 1 on n2 does nothing for 10 s in step 47");
  end.lost = {"n2"};
  BOOST_TEST(decide_after(kLimits, end, kAllocated, kUsed, 0).reason == "missing: n2");
}

BOOST_AUTO_TEST_CASE(without_nodes_or_when_asked_to_stop_no_start_is_tried) {
  BOOST_TEST(!decide_before(kUsed, false).has_value());
  for (const auto& none : {decide_before({}, false), decide_before(kUsed, true)}) {
    BOOST_REQUIRE(none.has_value());
    BOOST_TEST((none->move == NextMove::kRequeue));
    BOOST_TEST(none->exit_code == 75);
  }
  BOOST_TEST(decide_before({}, true)->reason == "too few nodes are left");
}

BOOST_AUTO_TEST_SUITE_END()
