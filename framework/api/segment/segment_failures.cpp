#include <fmt/chrono.h>

#include <algorithm>

#include "framework/api/segment/segment_communicator.hpp"

namespace altiplano {
namespace {

std::string wall_clock_text(int64_t milliseconds) {
  const std::time_t seconds = milliseconds / 1000;
  std::tm local{};
  localtime_r(&seconds, &local);
  return fmt::format("{:%H:%M:%S}.{:03}", local, milliseconds % 1000);
}

}  // namespace

// ---- the reason all ranks share ----

bool SegmentCommunicator::publish_abort(StatusCode code, const std::string& reason) {
  SegmentHeader& header = view_.header();
  uint32_t running = kRunning;
  if (!header.abort_state.compare_exchange_strong(running, kAbortBeingWritten)) return false;
  header.abort_rank = rank_;
  header.abort_code = static_cast<int32_t>(code);
  const size_t length = std::min(reason.size(), sizeof(header.abort_reason) - 1);
  std::copy_n(reason.begin(), length, header.abort_reason);
  header.abort_reason[length] = '\0';
  header.abort_state.store(kAborted, std::memory_order_seq_cst);
  for (int peer = 0; peer < world_size(); ++peer) {
    RankSlot& slot = view_.rank(peer);
    slot.doorbell.fetch_add(1, std::memory_order_seq_cst);
    futex_wake_all(slot.doorbell, segment_->scope());
  }
  return true;
}

void SegmentCommunicator::abort(const std::string& reason) noexcept {
  publish_abort(StatusCode::kCancelled, reason);
}

Status SegmentCommunicator::fail_world(StatusCode code, const std::string& reason) {
  if (publish_abort(code, reason)) failure_ = Status(code, reason);
  return check_failed();
}

Status SegmentCommunicator::check_failed() {
  if (!failure_.is_ok()) return failure_;
  const SegmentHeader& header = view_.header();
  uint32_t state = header.abort_state.load(std::memory_order_seq_cst);
  if (state == kRunning) return Status::ok();
  const auto begin = Clock::now();  // a process that dies while it writes the reason must not hold up the others
  while (state == kAbortBeingWritten && Clock::now() - begin < kLookInterval)
    state = header.abort_state.load(std::memory_order_seq_cst);
  if (state != kAborted)
    return failure_ = Status(StatusCode::kCancelled, "a rank failed and died before it could say why");
  const auto code = static_cast<StatusCode>(header.abort_code);
  std::string reason = header.abort_reason;
  if (code == StatusCode::kCancelled && header.abort_rank != rank_)
    reason = fmt::format("{} failed first: {}", who(header.abort_rank), reason);
  failure_ = Status(code, reason);
  return failure_;
}

// ---- who is missing ----

void SegmentCommunicator::publish_whom_we_wait_for(Event event) {
  int first = -1;
  for_each_missing_peer(blocking(*operations_.find(event.id)), [&](int peer) { first = first < 0 ? peer : first; });
  view_.rank(rank_).waits_for.store(first + 1, std::memory_order_relaxed);
}

/// A rank in a wait looks around every kLookInterval; one that has not for long is stopped or starved itself, and what
/// it last said of its wait is old.
bool SegmentCommunicator::is_silent(int rank, Clock::duration silence) const {
  const auto since = std::chrono::milliseconds(wall_milliseconds() - view_.rank(rank).heartbeat.load());
  return since > std::max<Clock::duration>(silence / 2, 2 * kLookInterval);
}

/// Follows ranks that wait for others to one that does not, or no longer; the peer itself when they wait in a circle.
int SegmentCommunicator::root_of_wait(int peer, Clock::duration silence) const {
  int at = peer;
  for (int hops = 0; hops < world_size(); ++hops) {
    const int next = view_.rank(at).waits_for.load(std::memory_order_relaxed) - 1;
    if (next < 0 || is_silent(at, silence)) return at;
    at = next;
  }
  return peer;
}

Status SegmentCommunicator::look_for_trouble(Waiting& waiting) {
  const auto now = Clock::now();
  ALTIPLANO_RETURN_IF_ERROR(check_failed());
  const CommOperation* waited_for = operations_.find(waiting.event.id);
  if (waited_for == nullptr) return Status::ok();
  const CommOperation& operation = blocking(*waited_for);
  if (now - waiting.last_look >= kLookInterval) {
    waiting.last_look = now;
    ALTIPLANO_RETURN_IF_ERROR(check_ended_processes());
    ALTIPLANO_RETURN_IF_ERROR(check_peers_that_left(operation));
  }
  if (now - waiting.last_movement < options_.deadline) return Status::ok();
  bool moved = false;
  ALTIPLANO_RETURN_IF_ERROR(advance(moved));
  if (moved || is_done(waiting.event.id)) {
    waiting.last_movement = now;
    return Status::ok();
  }
  return peer_stuck(operation, now - waiting.last_movement);
}

Status SegmentCommunicator::peer_stuck(const CommOperation& operation, Clock::duration silence) {
  std::vector<int> roots;
  for (int peer : missing_peers(operation))
    if (const int root = root_of_wait(peer, silence); std::find(roots.begin(), roots.end(), root) == roots.end())
      roots.push_back(root);
  int64_t heartbeat = 0;
  for (int root : roots) {
    const int64_t last = view_.rank(root).heartbeat.load(std::memory_order_relaxed);
    heartbeat = heartbeat == 0 ? last : std::min(heartbeat, last);
  }
  return fail_world(StatusCode::kPeerStuck,
                    fmt::format("{}; last heartbeat {}; noticed by {}", stuck_text(roots, operation, silence),
                                wall_clock_text(heartbeat), who(rank_)));
}

Status SegmentCommunicator::check_ended_processes() {
  // One that left says so before it ends, so that it is asked after it was seen to have ended.
  for (int peer = 0; peer < world_size(); ++peer)
    if (watch_.has_ended(peer) && !has_left(peer))
      return fail_world(StatusCode::kRuntimeFailure,
                        fmt::format("{} died: its process {} is gone; noticed by {} at step {}", who(peer),
                                    view_.rank(peer).process.load(), who(rank_), step_));
  return Status::ok();
}

bool SegmentCommunicator::has_left(int peer) const {
  return view_.rank(peer).left.load(std::memory_order_seq_cst) != 0;
}

Status SegmentCommunicator::check_peers_that_left(const CommOperation& operation) {
  int gone = -1;
  for_each_missing_peer(operation, [&](int peer) {
    if (has_left(peer)) gone = peer;
  });
  if (gone < 0) return Status::ok();
  bool moved = false;  // what it wrote before it left is still there
  ALTIPLANO_RETURN_IF_ERROR(advance(moved));
  if (moved) return Status::ok();
  return left_too_early(gone, operation);
}

}  // namespace altiplano
