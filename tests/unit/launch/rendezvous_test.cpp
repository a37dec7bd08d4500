#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <thread>

#include "framework/launch/inproc_rendezvous.hpp"
#include "framework/launch/local_rendezvous.hpp"
#include "framework/launch/socket_message.hpp"
#include "tests/support/contains.hpp"
#include "tests/support/ranks.hpp"

using namespace altiplano;
using namespace altiplano::test;
using namespace std::chrono_literals;

namespace {

Status exchange(Rendezvous& rendezvous) {
  for (int round = 0; round < 20; ++round) {
    // A value with every byte, and an empty one.
    std::string value =
        round % 2 == 0 ? "" : std::string("\xff\x00\x80", 3) + std::to_string(rendezvous.rank().value * 100 + round);
    ALTIPLANO_RETURN_IF_ERROR(rendezvous.put("key", value));
    ALTIPLANO_RETURN_IF_ERROR(rendezvous.fence(20s));
    for (int peer = 0; peer < rendezvous.world_size(); ++peer) {
      ALTIPLANO_ASSIGN(const std::string got, rendezvous.get(RankId(peer), "key"));
      if (round % 2 == 1 && got.substr(3) != std::to_string(peer * 100 + round))
        return runtime_failure("round {}: rank {} has '{}'", round, peer, got);
    }
    ALTIPLANO_RETURN_IF_ERROR(rendezvous.fence(20s));
  }
  return rendezvous.get(RankId(0), "nothing").is_ok() ? runtime_failure("found a key nobody put") : Status::ok();
}

}  // namespace

BOOST_AUTO_TEST_CASE(threads_exchange_values_between_fences) {
  for (int ranks : {1, 2, 5}) {
    const Status status = run_ranks(ranks, exchange);
    BOOST_TEST(status.is_ok(), status.to_string());
  }
}

BOOST_AUTO_TEST_CASE(processes_exchange_values_between_fences) {
  for (int ranks : {1, 2, 5})
    for (const Status& status : run_processes_all(ranks, exchange)) BOOST_TEST(status.is_ok(), status.to_string());
}

BOOST_AUTO_TEST_CASE(a_fence_says_which_ranks_are_missing) {
  const auto function = [](Rendezvous& rendezvous) {
    if (rendezvous.rank().value % 2 == 0) return rendezvous.fence(300ms);
    std::this_thread::sleep_for(600ms);
    return Status::ok();
  };
  for (const auto& statuses : {run_ranks_all(4, function), run_processes_all(4, function)})
    for (size_t rank : {0u, 2u}) {
      BOOST_TEST((statuses[rank].code() == StatusCode::kPeerStuck));
      const std::string message = statuses[rank].message();
      BOOST_TEST(message.starts_with("rank 1 ("), message);
      BOOST_TEST(contains(message, ", local 1), rank 3 ("), message);
      BOOST_TEST(contains(message, fmt::format("noticed by rank {}", rank)), message);
    }
}

BOOST_AUTO_TEST_CASE(the_first_failure_in_time_is_returned_with_its_rank) {
  const Status status = run_ranks(3, [](Rendezvous& rendezvous) -> Status {
    if (rendezvous.rank().value == 2) throw std::runtime_error("broken");
    std::this_thread::sleep_for(200ms);
    return runtime_failure("late");
  });
  BOOST_TEST(contains(status.to_string(), "broken"), status.to_string());
  BOOST_TEST(contains(status.to_string(), "on rank 2"), status.to_string());
}

BOOST_AUTO_TEST_CASE(who_waits_is_told_at_once_when_another_rank_has_failed) {
  auto server = RendezvousServer::listen(2).value();
  server->serve();
  auto rank = connect_local_rendezvous(server->address(), RankId(0), 2, "job").value();
  std::thread failing([&] {
    std::this_thread::sleep_for(100ms);
    server->fail("rank 1 (n1, local 1) failed first: it was killed");
  });
  const Status waited = rank->fence(60s);
  failing.join();
  BOOST_TEST((waited.code() == StatusCode::kCancelled), waited.to_string());
  BOOST_TEST(waited.message() == "rank 1 (n1, local 1) failed first: it was killed");
  BOOST_TEST((rank->put("key", "value").code() == StatusCode::kCancelled));
}

BOOST_AUTO_TEST_CASE(the_server_refuses_who_does_not_belong) {
  auto server = RendezvousServer::listen(2);
  BOOST_REQUIRE(server.is_ok());
  (*server)->serve();
  const std::string address = (*server)->address();
  const auto message = [&](const std::string& where, int rank, int world) {
    auto result = connect_local_rendezvous(where, RankId(rank), world, "job");
    return result.is_ok() ? std::string() : result.status().message();
  };
  const auto first = connect_local_rendezvous(address, RankId(0), 2, "job");
  BOOST_TEST(first.is_ok());
  BOOST_TEST(contains(message(address, 0, 2), "another process is rank 0 already"));
  BOOST_TEST(contains(message(address, 2, 2), "rank 2 is not in 0..1"));
  BOOST_TEST(contains(message(address, 1, 3), "it counts 3 ranks, the launcher 2"));
  BOOST_TEST(contains(message(address.substr(0, address.rfind(':') + 1) + "guess", 1, 2), "token is wrong"));
  BOOST_TEST(contains(message("tcp:host:1", 1, 2), "is not unix:NAME:TOKEN"));
  BOOST_TEST(message(address, 1, 2) == "");
}

BOOST_AUTO_TEST_CASE(garbage_on_the_socket_does_not_disturb_the_others) {
  auto server = RendezvousServer::listen(1);
  BOOST_REQUIRE(server.is_ok());
  (*server)->serve();
  const auto where = parse_local_address((*server)->address());
  auto stranger = connect_local(*where);
  BOOST_REQUIRE(stranger.is_ok());
  BOOST_TEST(write(*stranger, "GET / HTTP/1.1\r\n\r\n", 18) == 18);
  auto member = connect_local_rendezvous((*server)->address(), RankId(0), 1, "job");
  BOOST_REQUIRE_MESSAGE(member.is_ok(), member.status().to_string());
  BOOST_TEST((*member)->fence(5s).is_ok());
  close(*stranger);
}

BOOST_AUTO_TEST_CASE(a_launcher_that_is_gone_is_said_to_be_gone) {
  auto server = RendezvousServer::listen(2);
  (*server)->serve();
  const std::string address = (*server)->address();
  auto member = connect_local_rendezvous(address, RankId(0), 2, "job");
  BOOST_REQUIRE(member.is_ok());
  server->reset();
  BOOST_TEST(contains((*member)->put("a", "b").message(), "launcher closed the rendezvous"),
             (*member)->put("a", "b").message());
  const auto late = connect_local_rendezvous(address, RankId(1), 2, "job");
  BOOST_TEST(contains(late.status().message(), "is it still running?"), late.status().message());
}

BOOST_AUTO_TEST_CASE(memory_shared_by_threads_is_one_zeroed_and_gone_with_its_last_holder) {
  auto world = std::make_shared<InprocWorld>(2);
  InprocRendezvous a(world, RankId(0)), b(world, RankId(1));
  auto first = a.shared_in_process("x", 4096);
  auto same = b.shared_in_process("x", 4096);
  BOOST_TEST(first.get() == same.get());
  BOOST_TEST(a.shared_in_process("y", 64).get() != first.get());
  static_cast<char*>(first.get())[7] = 1;
  first.reset();
  same.reset();
  BOOST_TEST(static_cast<char*>(a.shared_in_process("x", 4096).get())[7] == 0);
}
