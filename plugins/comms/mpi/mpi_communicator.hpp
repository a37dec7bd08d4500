#pragma once
// The communicator of comm/mpi. mpi_communicator.cpp starts and drives operations, mpi_failures.cpp finds out who is
// missing and tells others of failures.
//
// Sums are made by the framework's schedules over messages, in the group's order, so that they have the bits of
// comm/shm. What only moves data is left to MPI's non-blocking collectives, on a communicator of the group; calls of
// more than MPI can count go by the schedules too.
#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "framework/api/collectives/collective_schedule.hpp"
#include "framework/api/segment/segment_operation.hpp"
#include "plugins/comms/mpi/mpi_messages.hpp"

namespace altiplano::mpi {

struct Group {
  std::string name;
  std::vector<int> ranks;  ///< of the job, in the group's order
  int index = 0;           ///< this rank's place
  uint64_t context = 0;    ///< equal on all members, distinct between groups; its last bits tell lanes and uses apart
  MPI_Comm communicator = MPI_COMM_NULL;
  uint64_t calls = 0;
  std::array<uint64_t, kLanes> calls_on_lane{}, started_on_lane{};
};

enum class Phase : uint8_t { kWaiting, kComparing, kMoving };

struct Operation {
  uint64_t id = 0;
  OperationKind kind = OperationKind::kSend;
  std::vector<uint64_t> after;
  Phase phase = Phase::kWaiting;
  int64_t step = 0;
  int open = 0;                    ///< transfers that are not done
  std::deque<Transfer> transfers;  ///< of a message, or of the collective's present stage

  // Collectives only.
  Group* group = nullptr;
  CollectiveCall call;
  StreamKind stream = StreamKind::kCollective;
  uint64_t sequence = 0, sequence_on_lane = 0;
  std::vector<CallRecord> records;  ///< by member, while calls are compared
  CollectiveSchedule schedule;
  size_t next_stage = 0;
  MPI_Request native = MPI_REQUEST_NULL;

  size_t lane() const { return static_cast<size_t>(stream); }
};

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(int rank, Connection connection, const CommOptions& options);
  ~MpiCommunicator() override;

  RankId rank() const noexcept override { return RankId(rank_); }
  int world_size() const noexcept override { return static_cast<int>(messages_.hosts().size()); }
  Result<GroupId> create_group(std::span<const RankId> ranks, const std::string& name) noexcept override;
  Result<Event> send(RankId peer, uint64_t tag, const void* data, int64_t bytes, StreamKind stream,
                     std::span<const Event> after) noexcept override;
  Result<Event> recv(RankId peer, uint64_t tag, void* data, int64_t bytes, StreamKind stream,
                     std::span<const Event> after) noexcept override;
  Result<Event> collective(GroupId group, const CollectiveCall& call, StreamKind stream,
                           std::span<const Event> after) noexcept override;
  Status wait(Event event) noexcept override;
  Result<bool> test(Event event) noexcept override;
  void set_step(int64_t step) noexcept override;
  void abort(const std::string& reason) noexcept override;

 private:
  using Clock = std::chrono::steady_clock;
  enum Use : uint64_t { kData = 0, kRecords = 1, kMeeting = 2 };

  // mpi_communicator.cpp; all but the first under mpi_mutex().
  Result<Event> message(OperationKind kind, RankId peer, uint64_t tag, std::byte* data, int64_t bytes,
                        std::span<const Event> after);
  Operation& begin(OperationKind kind);
  Result<Event> issue(Operation& operation, std::span<const Event> after);
  Status check_call(const Group& group, const CollectiveCall& call) const;
  Result<std::unique_ptr<Group>> describe_group(std::span<const RankId> ranks, const std::string& name) const;
  Status meet(Group& group);
  Operation* find(uint64_t id) const;
  bool is_done(uint64_t id) const { return find(id) == nullptr; }
  bool may_start(const Operation& operation) const;
  Status advance(bool& moved);
  Status advance_until_idle();
  Status start_messages(bool& moved);
  Status start_collectives(bool& moved);
  Status start(Operation& operation);
  Status post(Operation& operation);
  Status finish_operations(bool& moved);
  enum class Next : uint8_t { kWaits, kBegan, kIsOver };
  Result<Next> finish_stage(Operation& operation);
  Status exchange_records(Operation& operation);
  Status move(Operation& operation);
  bool moves_natively(const Operation& operation) const;
  Status start_natively(Operation& operation);
  Status post_stage(Operation& operation);
  void end(uint64_t id) { operations_.erase(id); }
  static uint64_t context_of(const Operation& operation, Use use);
  std::string describe(const Operation& operation) const;
  std::string who(int rank) const;  ///< "rank 5 (n3, local 1)"

  // mpi_failures.cpp, under mpi_mutex().
  static constexpr std::chrono::milliseconds kLookInterval{200};
  Status take_notes();
  void answer(const Note& question);
  Status peer_stuck(const Operation& operation, Clock::duration silence);
  Status check_peers_that_left(const Operation& operation);
  Status size_mismatch(const SizeMismatch& mismatch);
  Status calls_differ(const Operation& operation, size_t member);
  const Operation& blocking(const Operation& operation) const;
  std::vector<int> missing_peers(const Operation& operation);
  /// What a peer says of an operation; nullopt: nothing within a moment.
  struct Answer {
    bool has_started = false;
    int waits_for = -1;
  };
  std::optional<Answer> ask(int peer, const Operation& operation);
  /// To what others say, until it is enough or one of them has failed.
  void listen(std::chrono::milliseconds limit, const std::function<bool()>& is_enough);
  int root_of_wait(int peer, const Operation& operation);
  Status fail_world(StatusCode code, const std::string& reason);

  const int rank_;
  const CommOptions options_;
  Messages messages_;
  Status failure_;
  int64_t step_ = 0;
  uint64_t next_id_ = 1;
  std::vector<std::unique_ptr<Group>> groups_;
  std::map<uint64_t, std::unique_ptr<Operation>> operations_;  ///< that are not done, by id
  std::deque<Operation*> waiting_messages_;                    ///< not started, in order
  std::array<std::deque<Operation*>, kLanes> lanes_;           ///< collectives by stream; the front may be running
  uint64_t waits_for_event_ = 0;                               ///< what this rank is blocked in; 0: nothing
  std::set<int> left_;                                         ///< peers that closed their communicators
  std::map<int, Answer> answers_;
};

}  // namespace altiplano::mpi
