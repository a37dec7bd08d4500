#pragma once
// The communicator without its carriers: groups, the order of operations, collectives, what is said of those that are
// stuck. engine.cpp issues and drives operations, engine_collectives.cpp carries collectives through their phases,
// engine_failures.cpp finds out whom an operation waits for.
//
// Order: messages of one (peer, tag) and collectives of one stream run in the order of their calls; anything else is
// ordered by `after`. Progress is made inside calls, for all outstanding operations. A group whose members share a
// segment meets there; the collectives of others are steps of messages (collectives/collective_schedule.hpp).
#include <array>
#include <memory>
#include <mutex>
#include <optional>

#include "framework/api/engine/operation.hpp"
#include "framework/api/segment/segment_plane.hpp"
#include "framework/base/fifo.hpp"

namespace altiplano {

class Engine : public Communicator {
 public:
  RankId rank() const noexcept override { return RankId(rank_); }
  int world_size() const noexcept override { return static_cast<int>(hosts_.size()); }
  Result<GroupId> create_group(std::span<const RankId> ranks, const std::string& name) noexcept override;
  Result<Event> send(RankId peer, uint64_t tag, const void* data, int64_t bytes, StreamKind stream,
                     std::span<const Event> after) noexcept override;
  Result<Event> recv(RankId peer, uint64_t tag, void* data, int64_t bytes, StreamKind stream,
                     std::span<const Event> after) noexcept override;
  Result<Event> collective(GroupId group, const CollectiveCall& call, StreamKind stream,
                           std::span<const Event> after) noexcept override;
  Result<bool> test(Event event) noexcept override;
  void set_step(int64_t step) noexcept override { step_ = step; }
  void* allocate_registered(int64_t bytes) noexcept override;
  void free_registered(void* memory) noexcept override;

 protected:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kLookInterval{200};  ///< how often a rank in a wait looks around

  /// `mutex`: of the carrier, when more than one thread may not call it at once; held inside calls. May be null.
  Engine(int rank, std::vector<std::string> hosts, const CommOptions& options, std::mutex* mutex = nullptr);

  // What kinds of communicators differ in.
  virtual Status check_failed() = 0;  ///< what ended this communicator, here or at a peer
  virtual Status fail_world(StatusCode code, const std::string& reason) = 0;  ///< the first failure counts; all hear it
  virtual void show_life() {}
  /// Goes on sending what peers wait for and take: left half way, it would lie there until this rank calls again, and
  /// ranks that could work side by side would take turns. `lingers`: also for what a peer may ask for in a moment,
  /// since whoever has just answered this rank is about to.
  virtual Status hand_over(bool /*lingers*/) { return Status::ok(); }
  /// Takes over a transfer whose peer is not in the segment.
  virtual Status post_outside(Transfer& transfer);
  virtual Status move_outside(bool& /*moved*/) { return Status::ok(); }

  std::unique_lock<std::mutex> lock() const {
    return mutex_ == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(*mutex_);
  }

  // engine.cpp
  Status check_event(Event event) const;
  bool is_done(uint64_t id) const { return operations_.find(id) == nullptr; }
  /// One round of everything that can be done now; `moved` is set when anything was.
  Status advance(bool& moved);
  Status advance_until_idle();

  // engine_failures.cpp
  /// The operation that really holds up `operation`: itself, what it comes after, or the collective before it.
  const CommOperation& blocking(const CommOperation& operation) const;
  template <typename Visit>
  void for_each_missing_peer(const CommOperation& operation, Visit visit) const {
    for (const Transfer& transfer : operation.transfers)
      if (!transfer.is_done) visit(transfer.peer);
    if (operation.kind != OperationKind::kCollective || !is_in_meeting(operation)) return;
    for (size_t member = 0; member < operation.group->ranks.size(); ++member)
      if (!is_here(operation, member) && operation.group->ranks[member] != rank_) visit(operation.group->ranks[member]);
  }
  std::vector<int> missing_peers(const CommOperation& operation) const;
  std::string who(int rank) const;  ///< "rank 5 (n3, local 1)"
  /// "rank 2 (n1, local 0) stopped answering at step 5 in ..., 60.0 s ago": the start of what is said of `roots`.
  std::string stuck_text(const std::vector<int>& roots, const CommOperation& operation, Clock::duration silence) const;
  Status left_too_early(int peer, const CommOperation& operation);
  /// ok without one, else the failure of the world.
  Status check(const std::optional<SizeMismatch>& mismatch);

  const int rank_;
  const std::vector<std::string> hosts_;  ///< by rank
  const CommOptions options_;
  Status failure_;
  int64_t step_ = 0;
  Operations operations_;
  std::vector<TransferOwner*> completed_;
  std::optional<SegmentPlane> segment_;  ///< shared with ranks of this host

 private:
  Result<std::unique_ptr<CommGroup>> describe_group(std::span<const RankId> ranks, const std::string& name) const;
  Result<Event> message(OperationKind kind, RankId peer, uint64_t tag, std::byte* data, int64_t bytes,
                        std::span<const Event> after);
  CommOperation& begin(OperationKind kind);
  Result<Event> issue(CommOperation& operation, std::span<const Event> after);
  bool may_start(const CommOperation& operation) const;
  Status start_messages(bool& moved);
  Status start_collectives(bool& moved);
  Status start(CommOperation& operation);
  Status post(CommOperation& operation);
  Status finish_completed(bool& moved);

  // engine_collectives.cpp
  Status begin_collective(CommOperation& operation);
  void meet(CommOperation& operation);
  Status advance_collectives(bool& moved);
  Status advance_collective(CommOperation& operation, bool& moved);
  bool is_in_meeting(const CommOperation& operation) const;
  bool is_here(const CommOperation& operation, size_t member) const;
  bool are_all_here(const CommOperation& operation) const;
  Status run(CommOperation& operation);
  bool are_reachable(const CommOperation& operation) const;
  Status run_in_place(CommOperation& operation);
  Status exchange_records(CommOperation& operation);
  Status start_messages_of(CommOperation& operation);
  Status transfers_done(CommOperation& operation);
  Status next_stage(CommOperation& operation);
  void complete(const CommOperation& operation);
  Status calls_differ(const CommOperation& operation, size_t member, const CallRecord& theirs);

  std::mutex* const mutex_;
  uint64_t next_id_ = 1;
  std::vector<std::unique_ptr<CommGroup>> groups_;
  Fifo<CommOperation*> waiting_messages_;           // not started, in order
  std::array<Fifo<CommOperation*>, kLanes> lanes_;  // collectives by stream; the front may be running
};

}  // namespace altiplano
