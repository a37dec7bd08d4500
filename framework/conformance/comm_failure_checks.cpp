// Failures: what a rank says when a peer is stuck, killed, aborted, or calls something else.
#include <unistd.h>

#include <csignal>
#include <thread>

#include "framework/conformance/comm_checks.hpp"

namespace altiplano::conformance {
namespace {

Status all_reduce(Communicator& comm, GroupId group, int64_t count, DType dtype = DType::kF32) {
  std::vector<double> data(static_cast<size_t>(count) + 1);
  CollectiveCall call{CollectiveKind::kAllReduce, ReduceKind::kSum, dtype, data.data(), data.data(), count, 0};
  ALTIPLANO_ASSIGN(const Event event, comm.collective(group, call, StreamKind::kCollective, {}));
  return comm.wait(event);
}

/// Launched ranks are as many as they are: what wants another number of them was not run.
bool were_left_out(const std::vector<Status>& statuses) {
  return launched_ranks() != nullptr && launched_ranks()->world_size() != static_cast<int>(statuses.size());
}

/// A failure of `rank` that says all of `words`.
Status must_fail(const std::vector<Status>& statuses, size_t rank, std::initializer_list<const char*> words) {
  if (were_left_out(statuses)) return Status::ok();
  if (rank >= statuses.size()) return first_failure(statuses);  // the ranks could not be started
  if (statuses[rank].is_ok()) return broken("rank {} noticed nothing", rank);
  for (const char* word : words)
    if (statuses[rank].message().find(word) == std::string::npos)
      return broken("rank {} fails without naming '{}': \"{}\"", rank, word, statuses[rank].message());
  return Status::ok();
}

Status check_stuck(CommBackend& backend, RanksAre ranks_are) {
  const auto function = [](Communicator& comm) -> Status {
    ALTIPLANO_ASSIGN(const GroupId group, world_group(comm, "data/1"));
    comm.set_step(1204);
    ALTIPLANO_RETURN_IF_ERROR(all_reduce(comm, group, 10));
    if (comm.rank().value == 2) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    return all_reduce(comm, group, 4096);
  };
  const auto statuses = run_backend_all(3, backend, deadline_options(500), function, ranks_are);
  for (size_t rank : {0u, 1u}) {
    ALTIPLANO_RETURN_IF_ERROR(must_fail(statuses, rank, {"rank 2 (", "1204", "all_reduce", "data/1"}));
    if (!were_left_out(statuses) && statuses[rank].code() != StatusCode::kPeerStuck)
      return broken("a peer that is late fails with {}; needed: {}", to_string(statuses[rank].code()),
                    to_string(StatusCode::kPeerStuck));
  }
  return Status::ok();
}

/// Rank 1 is told to stop by another thread of it while it waits.
Status be_aborted(Communicator& comm) {
  ALTIPLANO_ASSIGN(const GroupId group, world_group(comm, "world"));
  int64_t value = 0;
  ALTIPLANO_ASSIGN(const Event never, comm.recv(RankId(0), 99, &value, 8, StreamKind::kTransfer, {}));
  std::jthread other([&comm] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (comm.rank().value == 1) comm.abort("loss is not finite");
  });
  const Status waited = comm.wait(never);
  const bool goes_on = comm.rank().value == 1 && all_reduce(comm, group, 1).is_ok();
  return goes_on ? Status::ok() : waited;
}

Status check_abort(CommBackend& backend, RanksAre ranks_are) {
  const auto statuses = run_backend_all(2, backend, deadline_options(5000), be_aborted, ranks_are);
  ALTIPLANO_RETURN_IF_ERROR(must_fail(statuses, 1, {"loss is not finite"}));
  return must_fail(statuses, 0, {"rank 1 ("});  // told by the backend, or at the deadline
}

Status check_calls_differ(CommBackend& backend, RanksAre ranks_are) {
  CommOptions options = patient_options();
  options.check_calls = true;
  const auto function = [](Communicator& comm) -> Status {
    ALTIPLANO_ASSIGN(const GroupId group, world_group(comm, "tensor/0"));
    ALTIPLANO_RETURN_IF_ERROR(all_reduce(comm, group, 5));
    const bool is_odd = comm.rank().value == 2;
    return all_reduce(comm, group, is_odd ? 200 : 100, is_odd ? DType::kBF16 : DType::kF32);
  };
  const auto statuses = run_backend_all(3, backend, options, function, ranks_are);
  for (size_t rank = 0; rank < 3; ++rank)
    ALTIPLANO_RETURN_IF_ERROR(must_fail(statuses, rank, {"tensor/0", "100 f32", "200 bf16"}));
  return Status::ok();
}

Status check_sizes_differ(CommBackend& backend, RanksAre ranks_are) {
  for (int64_t base : {int64_t{8}, int64_t{200'000}}) {
    const auto function = [base](Communicator& comm) -> Status {
      std::vector<std::byte> data(static_cast<size_t>(base) * 2);
      if (comm.rank().value == 0) {
        ALTIPLANO_ASSIGN(const Event out, comm.send(RankId(1), 3, data.data(), base, StreamKind::kTransfer, {}));
        return comm.wait(out);
      }
      ALTIPLANO_ASSIGN(const Event in, comm.recv(RankId(0), 3, data.data(), base * 2, StreamKind::kTransfer, {}));
      return comm.wait(in);
    };
    const auto statuses = run_backend_all(2, backend, patient_options(), function, ranks_are);
    const std::string sent = fmt::format("{}", base), received = fmt::format("{}", base * 2);
    ALTIPLANO_RETURN_IF_ERROR(must_fail(statuses, 1, {"tag 3", sent.c_str(), received.c_str()}));
  }
  return Status::ok();
}

Status use_wrongly(Communicator& comm) {
  const std::vector<RankId> twice = {RankId(0), RankId(0)}, outside = {RankId(4)}, self = {RankId(0)};
  ALTIPLANO_ASSIGN(const GroupId group, comm.create_group(self, "self"));
  CollectiveCall bad_root{CollectiveKind::kBroadcast, ReduceKind::kSum, DType::kF32, nullptr, nullptr, 0, 3};
  CollectiveCall negative{CollectiveKind::kAllGather, ReduceKind::kSum, DType::kF32, nullptr, nullptr, -1, 0};
  const std::pair<const char*, bool> accepted[] = {
      {"a group with rank 0 twice", comm.create_group(twice, "a").is_ok()},
      {"a group with rank 4 of 1", comm.create_group(outside, "b").is_ok()},
      {"a send to rank 1 of 1", comm.send(RankId(1), 0, nullptr, 0, StreamKind::kTransfer, {}).is_ok()},
      {"a recv of -5 bytes", comm.recv(RankId(0), 0, nullptr, -5, StreamKind::kTransfer, {}).is_ok()},
      {"a collective of a group that is not", comm.collective(GroupId(7), {}, StreamKind::kCollective, {}).is_ok()},
      {"root 3 in a group of 1", comm.collective(group, bad_root, StreamKind::kCollective, {}).is_ok()},
      {"a count of -1", comm.collective(group, negative, StreamKind::kCollective, {}).is_ok()},
      {"a wait for an event that is not", comm.wait(Event{1000}).is_ok()}};
  for (const auto& [what, is_ok] : accepted)
    if (is_ok) return broken("accepted: {}", what);
  return Status::ok();
}

Status check_wrong_arguments(CommBackend& backend, RanksAre ranks_are) {
  return run_on(1, backend, ranks_are, patient_options(), use_wrongly);
}

Finding check_killed(CommBackend& backend) {
  const auto function = [](Communicator& comm) -> Status {
    ALTIPLANO_ASSIGN(const GroupId group, world_group(comm, "world"));
    comm.set_step(5);
    ALTIPLANO_RETURN_IF_ERROR(all_reduce(comm, group, 100'000));
    if (comm.rank().value == 1) kill(getpid(), SIGKILL);
    return all_reduce(comm, group, 100'000);
  };
  const auto begin = std::chrono::steady_clock::now();
  const auto statuses = run_backend_all(3, backend, deadline_options(4000), function, worlds_of(backend).back());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  for (size_t rank : {0u, 2u}) ALTIPLANO_RETURN_IF_ERROR(must_fail(statuses, rank, {"rank 1 (", "step 5"}));
  const bool notices = (backend.capabilities() & kCommNoticesDeath) != 0;
  for (size_t rank : {0u, 2u})
    if (notices && statuses[rank].code() == StatusCode::kPeerStuck)
      return broken("notices_death is claimed, and rank {} waited for its deadline: {}", rank,
                    statuses[rank].message());
  return fmt::format("noticed after {:.1f} s, deadline 4.0 s", took.count());
}

}  // namespace

std::vector<Check> comm_failure_checks() {
  std::vector<Check> checks = {
      comm_check("a late peer fails the wait at its deadline, named with step and operation", check_stuck),
      comm_check("abort() from another thread ends every wait with its reason", check_abort),
      comm_check("check_calls names calls that differ between ranks with both sides", check_calls_differ),
      comm_check("sizes that differ are an error with both numbers, not a hang", check_sizes_differ),
      comm_check("wrong arguments are refused", check_wrong_arguments),
      check_of<CommBackend>("a killed peer is noticed by the deadline and named", check_killed),
  };
  checks.back().not_owed = [](const Subject& subject) -> std::string {
    if (launched_ranks() != nullptr) return "their launcher would end with one of them";
    return (subject.info.capabilities & kCommBetweenProcesses) == 0 ? "capability between_processes is not claimed"
                                                                    : "";
  };
  return checks;
}

}  // namespace altiplano::conformance
