#include "framework/launch/rank_board.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>

using namespace altiplano;

BOOST_AUTO_TEST_CASE(what_a_rank_was_doing_is_known_after_its_death) {
  const RankBoard board = RankBoard::create(3).value();
  const pid_t rank = fork();
  if (rank == 0) {
    const auto report = RankReport::open(board.address(), RankId(2), 3);
    if (report.is_ok()) report->set(RankPhase::kSaving, 1'000'000'000'000);
    raise(SIGKILL);
  }
  waitpid(rank, nullptr, 0);
  BOOST_TEST((board.of(2).phase == RankPhase::kSaving));
  BOOST_TEST(board.of(2).step == 1'000'000'000'000);
  BOOST_TEST(to_string(board.of(2)) == "while saving step 1000000000000");
  BOOST_TEST((board.of(1).phase == RankPhase::kAbsent));
  BOOST_TEST(to_string(board.of(1)) == "");
}

BOOST_AUTO_TEST_CASE(a_rank_that_was_asked_to_stop_says_so_beside_what_it_is_doing) {
  const RankBoard board = RankBoard::create(2).value();
  const auto report = RankReport::open(board.address(), RankId(1), 2).value();
  BOOST_TEST(report.is_read());
  report.set(RankPhase::kTraining, 7);
  BOOST_TEST(board.stop_signal_of(1) == 0);
  report.set_stop_signal(SIGTERM);
  report.set(RankPhase::kTraining, 8);
  BOOST_TEST(board.stop_signal_of(1) == SIGTERM);
  BOOST_TEST(board.of(1).step == 8);
  BOOST_TEST(board.stop_signal_of(0) == 0);
  RankReport().set_stop_signal(SIGTERM);  // nobody reads it
  BOOST_TEST(!RankReport().is_read());
}

BOOST_AUTO_TEST_CASE(every_phase_has_words) {
  BOOST_TEST(to_string(RankActivity{RankPhase::kStarting, 0}) == "while starting");
  BOOST_TEST(to_string(RankActivity{RankPhase::kTraining, 12}) == "in step 12");
  BOOST_TEST(to_string(RankActivity{RankPhase::kValidating, 12}) == "while validating after step 12");
  BOOST_TEST(to_string(RankActivity{RankPhase::kDone, 12}) == "after the last step 12");
}

BOOST_AUTO_TEST_CASE(without_a_launcher_nothing_is_reported_and_a_wrong_board_is_refused) {
  const auto alone = RankReport::open("", RankId(0), 1);
  BOOST_REQUIRE(alone.is_ok());
  alone->set(RankPhase::kTraining, 1);
  const auto gone = RankReport::open("/proc/1/fd/99999", RankId(0), 1);
  BOOST_REQUIRE(!gone.is_ok());
  BOOST_TEST(gone.status().message().find("is the launcher still running?") != std::string::npos);
  const RankBoard board = RankBoard::create(3).value();
  const auto other = RankReport::open(board.address(), RankId(0), 4);
  BOOST_REQUIRE(!other.is_ok());
  BOOST_TEST(other.status().message().find("is no board of 4 ranks") != std::string::npos);
}
