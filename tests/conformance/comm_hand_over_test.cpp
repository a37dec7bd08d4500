// Large messages between ranks that make progress in their calls only.
#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <thread>

#include "framework/conformance/ranks.hpp"
#include "tests/support/comm_backends.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

constexpr int64_t kBytes = 4 << 20;  // several rings

/// Rank 1 sends while rank 0 waits for it, then calls nothing more until rank 0 has the message or patience ends.
/// Whether one of `messages` came meanwhile; after that there are no more.
bool is_received_while_the_sender_works(CommBackend& backend, int messages) {
  std::atomic<int> asked = 0, received = 0, heard = 0;
  std::atomic<bool> in_time = false, sender_failed = false;
  const auto body = [&](Communicator& comm) -> Status {
    std::vector<char> data(kBytes, static_cast<char>(comm.rank().value));
    for (int i = 0; i < messages && !in_time; ++i) {
      if (comm.rank().value == 0) {
        ALTIPLANO_ASSIGN(const Event got, comm.recv(RankId(1), 7, data.data(), kBytes, StreamKind::kTransfer, {}));
        asked = i + 1;
        ALTIPLANO_RETURN_IF_ERROR(comm.wait(got));
        received = i + 1;
        while (heard <= i && !sender_failed) std::this_thread::yield();
        continue;
      }
      while (asked <= i) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // rank 0 is in its wait
      const Result<Event> sent = comm.send(RankId(0), 7, data.data(), kBytes, StreamKind::kTransfer, {});
      for (int turn = 0; turn < 100 && received <= i; ++turn) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (received > i) in_time = true;
      const Status done = sent.is_ok() ? comm.wait(*sent) : sent.status();
      sender_failed = !done.is_ok();
      ALTIPLANO_RETURN_IF_ERROR(done);
      heard = i + 1;
    }
    return Status::ok();
  };
  const Status status =
      conformance::first_failure(conformance::run_backend_all(2, backend, {}, body, conformance::RanksAre::kThreads));
  BOOST_TEST(status.is_ok(), status.to_string());
  return in_time;
}

/// Rank 1 sends what peers reach and calls nothing more until rank 0 has it.
Status fetch_while_the_sender_is_away(Communicator& comm, std::atomic<bool>& is_fetched) {
  auto* const data = static_cast<char*>(comm.allocate_registered(kBytes));
  if (data == nullptr) return runtime_failure("no registered memory");
  std::fill_n(data, kBytes, static_cast<char>(7 * comm.rank().value));
  Status done = Status::ok();
  if (comm.rank().value == 0) {
    ALTIPLANO_ASSIGN(const Event got, comm.recv(RankId(1), 7, data, kBytes, StreamKind::kTransfer, {}));
    done = comm.wait(got);
    is_fetched = true;
    if (done.is_ok() && !std::all_of(data, data + kBytes, [](char c) { return c == 7; }))
      done = runtime_failure("it arrived changed");
  } else {
    ALTIPLANO_ASSIGN(const Event sent, comm.send(RankId(0), 7, data, kBytes, StreamKind::kTransfer, {}));
    while (!is_fetched) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    done = comm.wait(sent);
  }
  comm.free_registered(data);
  return done;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_large_message_that_its_receiver_reaches_needs_its_sender_no_more) {
  for (CommBackend* backend : comm_backends()) {
    if ((backend->capabilities() & kCommWithinProcess) == 0) continue;
    std::atomic<bool> is_fetched = false;
    const auto body = [&](Communicator& comm) { return fetch_while_the_sender_is_away(comm, is_fetched); };
    const Status status = conformance::first_failure(
        conformance::run_backend_all(2, *backend, {}, body, conformance::RanksAre::kThreads));
    BOOST_TEST(status.is_ok(), status.to_string());
  }
}

// A loaded machine may keep rank 0 from running for longer than a sender is patient; not for half a minute.
BOOST_AUTO_TEST_CASE(a_large_message_that_is_waited_for_arrives_although_its_sender_goes_on_working) {
  int tried = 0;
  for (CommBackend* backend : comm_backends()) {
    if ((backend->capabilities() & kCommWithinProcess) == 0) continue;
    ++tried;
    BOOST_TEST(is_received_while_the_sender_works(*backend, 150));
  }
  BOOST_TEST(tried > 0);
}
