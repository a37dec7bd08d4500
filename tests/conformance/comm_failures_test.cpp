// The backends of the tree: what a rank says when a peer is stuck, gone, or calls something else, word by word; and
// what comm/shm leaves behind.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <filesystem>
#include <thread>

#include "tests/support/comm_backends.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

CommOptions short_deadline(int milliseconds) {
  CommOptions options;
  options.deadline = std::chrono::milliseconds(milliseconds);
  return options;
}

Result<GroupId> world_group(Communicator& comm, const std::string& name) {
  std::vector<RankId> all;
  for (int r = 0; r < comm.world_size(); ++r) all.emplace_back(r);
  return comm.create_group(all, name);
}

Status all_reduce(Communicator& comm, GroupId group, int64_t count, DType dtype = DType::kF32) {
  std::vector<double> data(static_cast<size_t>(count) + 1);
  CollectiveCall call{CollectiveKind::kAllReduce, ReduceKind::kSum, dtype, data.data(), data.data(), count, 0};
  ALTIPLANO_ASSIGN(const Event event, comm.collective(group, call, StreamKind::kCollective, {}));
  return comm.wait(event);
}

void check_mentions(const Status& status, std::initializer_list<const char*> words) {
  for (const char* word : words)
    BOOST_TEST(status.message().find(word) != std::string::npos, "'" << word << "' not in: " << status.to_string());
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_stuck_peer_is_named_with_step_operation_group_and_bytes_by_everybody) {
  for (CommBackend* backend : comm_backends()) {
    const auto statuses = run_backend_all(4, *backend, short_deadline(500), [](Communicator& comm) -> Status {
      ALTIPLANO_ASSIGN(const GroupId group, world_group(comm, "data/1"));
      comm.set_step(1204);
      ALTIPLANO_RETURN_IF_ERROR(all_reduce(comm, group, 10));
      if (comm.rank().value == 2) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        return all_reduce(comm, group, 4096);
      }
      return all_reduce(comm, group, 4096);
    });
    for (size_t rank = 0; rank < 4; ++rank) {
      BOOST_TEST((statuses[rank].code() == StatusCode::kPeerStuck), statuses[rank].to_string());
      check_mentions(
          statuses[rank],
          {"rank 2 (", "local 2) stopped answering at step 1204 in all_reduce #2 of group data/1 (16.0 KiB, f32)",
           " s ago; last heartbeat ", "noticed by rank "});
    }
  }
}

BOOST_AUTO_TEST_CASE(the_peer_at_the_root_of_a_chain_of_waits_is_blamed) {
  for (CommBackend* backend : comm_backends()) {
    const auto statuses = run_backend_all(4, *backend, short_deadline(600), [](Communicator& comm) -> Status {
      const int me = comm.rank().value;
      int64_t value = 0;
      if (me == 3) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        return Status::ok();
      }
      ALTIPLANO_ASSIGN(const Event in, comm.recv(RankId(me + 1), 7, &value, 8, StreamKind::kTransfer, {}));
      return comm.wait(in);  // 0 waits for 1, 1 for 2, 2 for 3
    });
    for (size_t rank = 0; rank < 3; ++rank)
      check_mentions(statuses[rank], {"rank 3 (", "stopped answering", "recv tag 7 (8 B)"});
  }
}

BOOST_AUTO_TEST_CASE(an_abort_from_another_thread_ends_every_wait_with_its_reason) {
  for (CommBackend* backend : comm_backends()) {
    const auto statuses = run_backend_all(3, *backend, test_options(), [](Communicator& comm) -> Status {
      ALTIPLANO_ASSIGN(const GroupId group, world_group(comm, "world"));
      int64_t value = 0;
      ALTIPLANO_ASSIGN(const Event never, comm.recv(RankId(0), 99, &value, 8, StreamKind::kTransfer, {}));
      std::jthread other;
      if (comm.rank().value == 1)
        other = std::jthread([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          comm.abort("loss is not finite");
        });
      const Status waited = comm.wait(never);
      if (waited.is_ok() || comm.wait(Event{}).is_ok() || all_reduce(comm, group, 1).is_ok()) return Status::ok();
      return waited;
    });
    for (size_t rank = 0; rank < 3; ++rank) {
      BOOST_TEST((statuses[rank].code() == StatusCode::kCancelled), statuses[rank].to_string());
      check_mentions(statuses[rank], {"loss is not finite"});
      if (rank != 1) check_mentions(statuses[rank], {"rank 1 (", "failed first"});
    }
  }
}

BOOST_AUTO_TEST_CASE(calls_that_differ_between_ranks_are_named_with_both_sides) {
  for (CommBackend* backend : comm_backends()) {
    const auto statuses = run_backend_all(3, *backend, test_options(), [](Communicator& comm) -> Status {
      ALTIPLANO_ASSIGN(const GroupId group, world_group(comm, "tensor/0"));
      ALTIPLANO_RETURN_IF_ERROR(all_reduce(comm, group, 5));
      return all_reduce(comm, group, comm.rank().value == 2 ? 200 : 100,
                        comm.rank().value == 2 ? DType::kBF16 : DType::kF32);
    });
    for (const Status& status : statuses) {
      BOOST_TEST((status.code() == StatusCode::kRuntimeFailure), status.to_string());
      check_mentions(status, {"call #2 of group tensor/0 differs", "all_reduce sum of 100 f32",
                              "all_reduce sum of 200 bf16", "rank 2 ("});
    }
  }
}

BOOST_AUTO_TEST_CASE(sizes_that_differ_are_an_error_and_not_a_hang) {
  for (CommBackend* backend : comm_backends())
    for (int64_t base : {int64_t{8}, int64_t{200'000}}) {
      const auto statuses = run_backend_all(2, *backend, test_options(), [base](Communicator& comm) -> Status {
        std::vector<std::byte> data(static_cast<size_t>(base) * 2);
        if (comm.rank().value == 0) {
          ALTIPLANO_ASSIGN(const Event out, comm.send(RankId(1), 3, data.data(), base, StreamKind::kTransfer, {}));
          ALTIPLANO_RETURN_IF_ERROR(comm.wait(out));
          ALTIPLANO_ASSIGN(const Event in, comm.recv(RankId(1), 4, data.data(), 8, StreamKind::kTransfer, {}));
          return comm.wait(in);
        }
        ALTIPLANO_ASSIGN(const Event in, comm.recv(RankId(0), 3, data.data(), base * 2, StreamKind::kTransfer, {}));
        return comm.wait(in);
      });
      for (const Status& status : statuses)
        check_mentions(status,
                       {"sizes differ in recv tag 3", "rank 0 (", fmt::format("sends {} B", base).c_str(), "rank 1 ("});
    }
}

BOOST_AUTO_TEST_CASE(a_collective_of_different_sizes_is_an_error_and_not_a_hang) {
  for (CommBackend* backend : comm_backends())
    for (const auto& [count, other] : {std::pair<int64_t, int64_t>{100, 200}, {100'000, 70'000}, {1, 0}}) {
      const auto statuses = run_backend_all(3, *backend, short_deadline(3000), [&](Communicator& comm) -> Status {
        ALTIPLANO_ASSIGN(const GroupId group, world_group(comm, "tensor/0"));
        ALTIPLANO_RETURN_IF_ERROR(all_reduce(comm, group, comm.rank().value == 2 ? other : count));
        return all_reduce(comm, group, 5);
      });
      for (const Status& status : statuses)
        check_mentions(status, {"call #1 of group tensor/0 differs", "rank 2 (", fmt::format("{} f32", count).c_str(),
                                fmt::format("{} f32", other).c_str()});
    }
}

BOOST_AUTO_TEST_CASE(a_peer_that_closed_its_communicator_is_not_waited_for) {
  for (CommBackend* backend : comm_backends()) {
    const auto statuses = run_backend_all(2, *backend, test_options(), [](Communicator& comm) -> Status {
      if (comm.rank().value == 1) return Status::ok();
      int64_t value = 0;
      ALTIPLANO_ASSIGN(const Event in, comm.recv(RankId(1), 1, &value, 8, StreamKind::kTransfer, {}));
      return comm.wait(in);
    });
    BOOST_TEST(statuses[1].is_ok());
    check_mentions(statuses[0], {"rank 1 (", "closed its communicator", "recv tag 1"});
  }
}

BOOST_AUTO_TEST_CASE(ranks_with_other_chunk_sizes_are_refused) {
  CommBackend* shm = comm_backend("shm");
  const auto statuses = run_processes_all(2, [&](Rendezvous& rendezvous) -> Status {
    CommOptions options = short_deadline(1000);
    options.chunk_bytes = rendezvous.rank().value == 0 ? 4096 : 65536;
    return shm->connect(rendezvous, options).status();
  });
  check_mentions(statuses[1], {"comm.chunk_bytes must be equal on all ranks"});
}

BOOST_AUTO_TEST_CASE(inproc_refuses_ranks_that_are_processes_and_names_shm) {
  CommBackend* inproc = comm_backend("inproc");
  for (const Status& status :
       run_processes_all(2, [&](Rendezvous& r) { return inproc->connect(r, test_options()).status(); }))
    check_mentions(status, {"comm/shm"});
}

BOOST_AUTO_TEST_CASE(a_killed_peer_is_noticed_within_seconds_and_named) {
  const auto begin = std::chrono::steady_clock::now();
  const auto statuses = run_backend_all(3, *comm_backend("shm"), test_options(), [](Communicator& comm) -> Status {
    ALTIPLANO_ASSIGN(const GroupId group, world_group(comm, "world"));
    comm.set_step(5);
    ALTIPLANO_RETURN_IF_ERROR(all_reduce(comm, group, 100'000));
    if (comm.rank().value == 1) kill(getpid(), SIGKILL);
    return all_reduce(comm, group, 100'000);
  });
  BOOST_TEST(
      (std::chrono::steady_clock::now() - begin < std::chrono::seconds(15)));  // far below the deadline of the waits
  check_mentions(statuses[1], {"killed by signal 9"});
  for (size_t rank : {0u, 2u}) check_mentions(statuses[rank], {"rank 1 (", "died: its process", "at step 5"});
}

BOOST_AUTO_TEST_CASE(segments_never_have_a_name_and_the_files_of_others_are_left_alone) {
  namespace fs = std::filesystem;
  const fs::path directory = fs::temp_directory_path() / fmt::format("altiplano-shm-test-{}", getpid());
  fs::create_directories(directory);
  setenv("ALTIPLANO_SHM_DIR", directory.c_str(), 1);
  const fs::path other = directory / fmt::format("altiplano-{}-other", geteuid());
  close(open(other.c_str(), O_RDWR | O_CREAT, 0600));
  const auto count = [&] { return std::distance(fs::directory_iterator(directory), fs::directory_iterator()); };
  const Status status = run_backend(2, *comm_backend("shm"), test_options(), [&](Communicator& comm) -> Status {
    ALTIPLANO_ASSIGN(const GroupId group, world_group(comm, "world"));
    ALTIPLANO_RETURN_IF_ERROR(all_reduce(comm, group, 10));
    return count() == 1 ? Status::ok() : runtime_failure("{} names while the job runs", count());
  });
  BOOST_TEST(status.is_ok(), status.to_string());
  BOOST_TEST(fs::exists(other));
  unsetenv("ALTIPLANO_SHM_DIR");
  fs::remove_all(directory);
}

BOOST_AUTO_TEST_CASE(a_shared_memory_directory_that_is_too_small_is_an_error_with_both_numbers) {
  namespace fs = std::filesystem;
  const fs::path directory = fs::temp_directory_path() / fmt::format("altiplano-shm-small-{}", getpid());
  fs::create_directories(directory);
  if (mount("none", directory.c_str(), "tmpfs", 0, "size=1m") != 0) {
    BOOST_TEST_MESSAGE("skipped: mounting a 1 MiB tmpfs needs root");
    fs::remove_all(directory);
    return;
  }
  setenv("ALTIPLANO_SHM_DIR", directory.c_str(), 1);
  const auto statuses =
      run_backend_all(2, *comm_backend("shm"), test_options(), [](Communicator&) { return Status::ok(); });
  unsetenv("ALTIPLANO_SHM_DIR");
  umount(directory.c_str());
  fs::remove_all(directory);
  for (const Status& status : statuses)
    check_mentions(status, {"comm/shm needs 2.4 MiB in ", ", has 1.0 MiB", "comm.chunk_bytes"});
}
