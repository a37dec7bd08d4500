#pragma once
// Private to segment/: the class behind open_segment_communicator. segment_transport.cpp starts and drives operations,
// segment_collectives.cpp carries collectives through their phases, segment_failures.cpp finds out who is missing.
#include <array>
#include <memory>

#include "framework/api/segment/process_watch.hpp"
#include "framework/api/segment/segment_operation.hpp"
#include "framework/api/segment/segment_transport.hpp"
#include "framework/base/fifo.hpp"

namespace altiplano {

class SegmentCommunicator final : public Communicator {
 public:
  SegmentCommunicator(int rank, std::vector<std::string> hosts, const CommOptions& options,
                      SegmentAttachment attachment);
  ~SegmentCommunicator() override;

  RankId rank() const noexcept override { return RankId(rank_); }
  int world_size() const noexcept override { return static_cast<int>(hosts_.size()); }
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
  void* allocate_registered(int64_t bytes) noexcept override { return reachable_.allocate(bytes); }
  void free_registered(void* memory) noexcept override { reachable_.free(memory); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    Event event;
    Clock::time_point last_movement, last_look;
  };

  // segment_transport.cpp
  Result<Event> message(OperationKind kind, RankId peer, uint64_t tag, std::byte* data, int64_t bytes,
                        std::span<const Event> after);
  SegmentOperation& begin(OperationKind kind);
  Result<Event> issue(SegmentOperation& operation, std::span<const Event> after);
  Status check_call(const SegmentGroup& group, const CollectiveCall& call) const;
  bool is_done(uint64_t id) const { return operations_.find(id) == nullptr; }
  bool may_start(const SegmentOperation& operation) const;
  /// One round of everything that can be done now; `moved` is set when anything was.
  Status advance(bool& moved);
  Status advance_until_idle();
  Status start_ready(bool& moved);
  Status start_messages(bool& moved);
  Status start_collectives(bool& moved);
  Status start(SegmentOperation& operation);
  Status post(SegmentOperation& operation);
  Status finish_completed(bool& moved);
  Status move_frames(bool& moved);
  void ring(int peer);
  std::chrono::nanoseconds time_to_sleep(const Waiting& waiting) const;
  /// Goes on sending what peers wait for and take: left half way, it would lie there until this rank calls again, and
  /// ranks that could work side by side would take turns. `lingers`: also for what a peer may ask for in a moment,
  /// since whoever has just answered this rank is about to.
  Status hand_over(bool lingers);
  bool spins() const;

  // segment_collectives.cpp
  Status meet(SegmentOperation& operation);
  Status advance_collectives(bool& moved);
  Status advance_collective(SegmentOperation& operation, bool& moved);
  /// What a member showed for this call; nullptr: nothing yet.
  static const MeetingPost* post_of(const SegmentOperation& operation, size_t member) {
    return operation.group->meetings.post_of(member, operation.lane(), operation.sequence_on_lane);
  }
  static bool has_finished(const SegmentOperation& operation, size_t member) {
    return operation.group->meetings.has_finished(member, operation.lane(), operation.sequence_on_lane);
  }
  bool all_have_posted(const SegmentOperation& operation) const;
  bool all_have_finished(const SegmentOperation& operation) const;
  Status run(SegmentOperation& operation);
  Status run_in_place(SegmentOperation& operation);
  bool are_reachable(const SegmentOperation& operation) const;
  Status check_calls_agree(const SegmentOperation& operation);
  Status next_stage(SegmentOperation& operation);
  void complete(const SegmentOperation& operation);
  void ring_members(const SegmentGroup& group);

  // segment_failures.cpp
  static constexpr std::chrono::milliseconds kLookInterval{200};  ///< how often a rank in a wait looks around
  Status look_for_trouble(Waiting& waiting);
  Status peer_stuck(const SegmentOperation& operation, Clock::duration silence);
  Status check_ended_processes();
  bool has_left(int peer) const;
  Status check_peers_that_left(const SegmentOperation& operation);
  Status size_mismatch(const SizeMismatch& mismatch);
  Status calls_differ(const SegmentOperation& operation, size_t member, const CallRecord& theirs);
  /// The operation that really holds up `operation`: itself, what it comes after, or the collective before it.
  const SegmentOperation& blocking(const SegmentOperation& operation) const;
  template <typename Visit>
  void for_each_missing_peer(const SegmentOperation& operation, Visit visit) const;
  std::vector<int> missing_peers(const SegmentOperation& operation) const;
  void publish_whom_we_wait_for(Event event);
  static int64_t wall_milliseconds();
  bool is_silent(int rank, Clock::duration silence) const;
  int root_of_wait(int peer, Clock::duration silence) const;
  std::string who(int rank) const;  ///< "rank 5 (n3, local 1)"
  /// Puts the reason into the segment unless another rank was first, wakes all, returns this communicator's failure.
  Status fail_world(StatusCode code, const std::string& reason);
  Status check_aborted();
  bool publish_abort(StatusCode code, const std::string& reason);

  const int rank_;
  const std::vector<std::string> hosts_;
  const CommOptions options_;
  const SegmentAttachment attachment_;
  const SegmentView view_;
  ReachableMemory reachable_;
  ProcessWatch watch_;
  Status failure_;
  int64_t step_ = 0;
  uint64_t next_id_ = 1;
  std::vector<TransferOwner*> completed_;
  std::vector<PeerChannel> channels_;  // by peer
  std::vector<std::unique_ptr<SegmentGroup>> groups_;
  Operations operations_;
  Fifo<SegmentOperation*> waiting_messages_;           // not started, in order
  std::array<Fifo<SegmentOperation*>, kLanes> lanes_;  // collectives by stream; the front may be running
};

}  // namespace altiplano
