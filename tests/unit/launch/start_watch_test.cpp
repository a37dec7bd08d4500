#include "framework/launch/start_watch.hpp"

#include <boost/test/unit_test.hpp>

using namespace altiplano;
using namespace std::chrono_literals;

namespace {

const WatchTime kStart{};
constexpr WatchSpan kLimit = 10s;
const std::vector<std::string> kHosts = {"n1", "n2", "n3"};

WatchTime at(WatchSpan span) {
  return kStart + span;
}

RankNews rank_in_step(int rank, WatchSpan moved, bool waits) {
  return {rank, "n" + std::to_string(rank + 1), {RankPhase::kTraining, 47}, waits, at(29s), at(moved)};
}

std::string who(std::vector<RankNews> news) {
  return standing_still(news, at(30s), kLimit);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(start_watch)

BOOST_AUTO_TEST_CASE(a_host_is_silent_once_its_deadline_is_over_and_never_before_it_was_heard_of) {
  const LastHeard heard = {{"n1", at(25s)}, {"n2", at(20s)}};
  BOOST_TEST(silent_hosts(kHosts, heard, {}, at(29s), kLimit).empty());
  BOOST_TEST(silent_hosts(kHosts, heard, {}, at(30s), kLimit) == std::vector<std::string>{"n2"},
             boost::test_tools::per_element());
  BOOST_TEST(silent_hosts(kHosts, heard, {"n2"}, at(30s), kLimit).empty());
  BOOST_TEST(unheard_hosts(kHosts, heard) == std::vector<std::string>{"n3"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(news_of_all_are_there_when_each_was_heard_of_since_or_is_lost) {
  const LastHeard heard = {{"n1", at(25s)}, {"n2", at(20s)}};
  BOOST_TEST(is_known_of_all(kHosts, heard, {"n3"}, at(19s)));
  BOOST_TEST(!is_known_of_all(kHosts, heard, {}, at(19s)));
  BOOST_TEST(!is_known_of_all(kHosts, heard, {"n3"}, at(20s)));
}

BOOST_AUTO_TEST_CASE(the_rank_that_stands_still_is_named_and_not_those_that_wait_for_it) {
  BOOST_TEST(who({rank_in_step(0, 15s, true), rank_in_step(1, 14s, false), rank_in_step(2, 15s, true)}) ==
             "rank 1 on n2 does nothing for 16 s in step 47");
}

BOOST_AUTO_TEST_CASE(ranks_that_go_on_or_wait_for_one_that_does_are_left_alone) {
  BOOST_TEST(who({}) == "");
  BOOST_TEST(who({rank_in_step(0, 28s, false), rank_in_step(1, 21s, false)}) == "");
  BOOST_TEST(who({rank_in_step(0, 1s, true), rank_in_step(1, 28s, false)}) == "");
}

BOOST_AUTO_TEST_CASE(ranks_that_all_wait_for_each_other_are_said_to) {
  BOOST_TEST(who({rank_in_step(0, 1s, true), rank_in_step(1, 2s, true)}) ==
             "all 2 ranks wait for each other for 10 s in step 47");
}

BOOST_AUTO_TEST_CASE(a_stopped_process_is_known_by_its_silence_in_any_phase_and_also_where_it_waits) {
  RankNews stopped = rank_in_step(1, 3s, true);
  stopped.heard = at(4s);
  stopped.activity = {RankPhase::kSaving, 40};
  BOOST_TEST(who({rank_in_step(0, 15s, true), stopped}) == "rank 1 on n2 says nothing for 26 s while saving step 40");
}

BOOST_AUTO_TEST_CASE(starting_and_saving_take_the_time_they_take) {
  for (const RankPhase phase : {RankPhase::kStarting, RankPhase::kSaving, RankPhase::kDone}) {
    RankNews rank = rank_in_step(0, 1s, false);
    rank.activity.phase = phase;
    BOOST_TEST(who({rank, rank_in_step(1, 1s, true)}) == "");
  }
}

BOOST_AUTO_TEST_CASE(of_many_ranks_three_are_named) {
  std::vector<RankNews> news;
  for (int rank = 0; rank < 5; ++rank) news.push_back(rank_in_step(rank, 10s, false));
  const std::string names = who(news);
  BOOST_TEST(names.starts_with("rank 0 on n1 does nothing for 20 s in step 47; rank 1 on n2 "), names);
  BOOST_TEST(names.ends_with("; rank 2 on n3 does nothing for 20 s in step 47; and 2 more"), names);
}

BOOST_AUTO_TEST_CASE(ranks_of_lost_hosts_are_not_waited_for) {
  const std::vector<RankNews> news = {rank_in_step(0, 1s, true), rank_in_step(1, 1s, true)};
  BOOST_TEST(still_there(news, {"n1"}) == "rank 1 on n2");
  BOOST_TEST(still_there(news, {"n1", "n2"}) == "");
}

BOOST_AUTO_TEST_CASE(a_start_goes_on_until_a_node_is_lost_a_rank_stands_still_or_it_never_began) {
  StartView view;
  view.age = 5s;
  const auto decide = [&] { return decide_while(view, 60s); };
  BOOST_TEST((decide().order == StartOrder::kGoOn));
  view.age = 61s;
  BOOST_TEST((decide().order == StartOrder::kEnd));
  BOOST_TEST(decide().reason == "the first rank said nothing for 60 s");
  view.has_spoken = true;
  BOOST_TEST((decide().order == StartOrder::kGoOn));
  view.standing_still = "rank 1 on n2 does nothing";
  BOOST_TEST((decide().order == StartOrder::kEnd));
  BOOST_TEST(decide().reason == view.standing_still);
  view.is_a_node_lost = true;  // was told already, and explains the rank
  BOOST_TEST(decide().reason == "");
}

BOOST_AUTO_TEST_CASE(a_stop_is_passed_on_once) {
  StartView view;
  view.has_spoken = view.is_stop_heard = true;
  BOOST_TEST((decide_while(view, 60s).order == StartOrder::kTellToStop));
  view.is_stop_passed_on = true;
  BOOST_TEST((decide_while(view, 60s).order == StartOrder::kGoOn));
}

BOOST_AUTO_TEST_SUITE_END()
