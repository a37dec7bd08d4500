#include "framework/launch/rank_beats.hpp"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <thread>

using namespace altiplano;
using namespace std::chrono_literals;

namespace {

constexpr const char* kStart = "14.0.2";

std::unique_ptr<HeartbeatServer> listening_for_ranks() {
  auto server = HeartbeatServer::listen("s3cret", {});
  BOOST_REQUIRE_MESSAGE(server.is_ok(), server.status().to_string());
  return std::move(*server);
}

RankEnvironment rank_three_of(const HeartbeatServer& server) {
  RankEnvironment environment;
  environment.rank = RankId(3);
  environment.start_name = kStart;
  environment.heartbeats = server.address();
  environment.secret = "s3cret";
  environment.beat_interval = 10ms;
  return environment;
}

std::vector<RankNews> wait_for_news(const HeartbeatServer& server,
                                    const std::function<bool(const std::vector<RankNews>&)>& holds) {
  for (int i = 0; i < 6000; ++i, std::this_thread::sleep_for(10ms))
    if (const auto news = news_of_ranks(server, kStart); holds(news)) return news;
  BOOST_FAIL("no such news within a minute");
  return {};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(rank_beats)

BOOST_AUTO_TEST_CASE(a_rank_says_where_it_is_and_whether_it_moves_until_it_leaves) {
  auto server = listening_for_ranks();
  auto report = RankReport::open("", RankId(3), 4);
  BOOST_REQUIRE(report.is_ok());
  auto beats = RankBeats::start(rank_three_of(*server), "n2", *report);
  BOOST_REQUIRE(beats != nullptr);
  report->set(RankPhase::kTraining, 12);
  const auto is_in_step = [](const auto& news) { return news.size() == 1 && news[0].activity.step == 12; };
  const RankNews first = wait_for_news(*server, is_in_step)[0];
  BOOST_TEST(first.rank == 3);
  BOOST_TEST(first.host == "n2");
  BOOST_TEST((first.activity.phase == RankPhase::kTraining));
  BOOST_TEST(!first.waits);
  // Heard again and again, and it does nothing.
  const auto again = wait_for_news(*server, [&](const auto& news) { return news[0].heard > first.heard + 20ms; })[0];
  BOOST_TEST((again.moved == first.moved));
  report->move(true);
  const auto moved = wait_for_news(*server, [&](const auto& news) { return news[0].moved > first.moved; })[0];
  BOOST_TEST(moved.waits);
  BOOST_TEST(news_of_ranks(*server, "14.0.1").empty());
  BOOST_TEST(server->last_heard().empty());  // a rank is no host
  beats.reset();
  wait_for_news(*server, [](const auto& news) { return news.empty(); });
}

BOOST_AUTO_TEST_CASE(ranks_of_a_start_that_is_over_hear_so_and_those_that_come_back_too) {
  auto server = listening_for_ranks();
  auto report = RankReport::open("", RankId(3), 4);
  std::atomic<int> ends = 0;
  const auto start_one = [&] { return RankBeats::start(rank_three_of(*server), "n2", *report, [&] { ++ends; }); };
  const auto wait_for_ends = [&](int count) {
    for (int i = 0; i < 6000 && ends < count; ++i) std::this_thread::sleep_for(10ms);
    BOOST_TEST(ends == count);
  };
  const auto first = start_one();
  wait_for_news(*server, [](const auto& news) { return news.size() == 1; });
  server->end_ranks("14.0.1");  // another one
  server->end_ranks(kStart);
  wait_for_ends(1);
  const auto late = start_one();
  wait_for_ends(2);
}

BOOST_AUTO_TEST_CASE(the_end_is_heard_long_before_the_next_beat) {
  auto server = listening_for_ranks();
  auto report = RankReport::open("", RankId(3), 4);
  RankEnvironment environment = rank_three_of(*server);
  environment.beat_interval = 1h;
  std::atomic<bool> is_over = false;
  const auto beats = RankBeats::start(environment, "n2", *report, [&] { is_over = true; });
  std::this_thread::sleep_for(50ms);  // there, or still to come
  server->end_ranks(kStart);
  for (int i = 0; i < 6000 && !is_over; ++i) std::this_thread::sleep_for(10ms);
  BOOST_TEST(is_over);
}

BOOST_AUTO_TEST_CASE(without_a_supervisor_nothing_is_said) {
  const RankReport report;
  BOOST_TEST((RankBeats::start(RankEnvironment{}, "n2", report) == nullptr));
}

BOOST_AUTO_TEST_CASE(a_supervisor_that_goes_leaves_the_rank_alone) {
  auto server = listening_for_ranks();
  auto report = RankReport::open("", RankId(0), 1);
  const auto beats = RankBeats::start(rank_three_of(*server), "n2", *report);
  wait_for_news(*server, [](const auto& news) { return news.size() == 1; });
  server.reset();
  report->set(RankPhase::kTraining, 1);
}

BOOST_AUTO_TEST_CASE(what_is_no_word_of_a_rank_is_none) {
  BOOST_TEST(parse_rank_word(rank_word("n2", {RankPhase::kSaving, 7}, {9, true})).has_value());
  for (const char* text :
       {"", "n2", "n2 2 12 5", "n2 2 12 5 0 1", "n2 9 12 5 0", "n2 -1 12 5 0", "n2 x 12 5 0", " 2 1 5 0"})
    BOOST_TEST(!parse_rank_word(text).has_value(), text);
}

BOOST_AUTO_TEST_SUITE_END()
