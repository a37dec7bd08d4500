#include "framework/api/segment/segment_transport.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "framework/api/segment/segment_communicator.hpp"
#include "framework/base/text.hpp"

namespace altiplano {
namespace {

constexpr int kSpins = 200;  // idle rounds before sleeping, a few microseconds
// For a peer that takes what it waits for: to do so, and where ranks share processors to be woken up first.
constexpr std::chrono::microseconds kPatience{200}, kPatienceSharing{400};

int num_cpus() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

SegmentCommunicator::SegmentCommunicator(int rank, std::vector<std::string> hosts, const CommOptions& options,
                                         SegmentAttachment attachment)
    : rank_(rank),
      hosts_(std::move(hosts)),
      options_(options),
      attachment_(std::move(attachment)),
      view_(attachment_.memory.get()),
      reachable_(view_, rank, attachment_.arenas) {
  std::vector<int> processes;
  for (int peer = 0; peer < world_size(); ++peer) {
    channels_.emplace_back(view_, rank_, peer, &completed_);
    const bool watched = attachment_.scope == FutexScope::kShared && peer != rank_;
    processes.push_back(watched ? view_.rank(peer).process.load() : 0);
  }
  watch_ = ProcessWatch(processes);
  view_.rank(rank_).heartbeat.store(wall_milliseconds(), std::memory_order_relaxed);
}

int64_t SegmentCommunicator::wall_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

SegmentCommunicator::~SegmentCommunicator() {
  view_.rank(rank_).left.store(1, std::memory_order_seq_cst);
  for (int peer = 0; peer < world_size(); ++peer) ring(peer);
}

Result<GroupId> SegmentCommunicator::create_group(std::span<const RankId> ranks, const std::string& name) noexcept {
  auto group = std::make_unique<SegmentGroup>();
  group->name = name;
  group->index = -1;
  for (RankId member : ranks) {
    if (member.value < 0 || member.value >= world_size())
      return invalid_argument("group {}: rank {} is not in 0..{}", name, member, world_size() - 1);
    if (std::find(group->ranks.begin(), group->ranks.end(), member.value) != group->ranks.end())
      return invalid_argument("group {}: rank {} is named twice", name, member);
    if (member.value == rank_) group->index = static_cast<int>(group->ranks.size());
    group->ranks.push_back(member.value);
  }
  if (group->index < 0) return invalid_argument("group {}: rank {} creates it but is no member", name, rank_);
  std::string identity = name;
  for (int member : group->ranks) identity += fmt::format(",{}", member);
  // Groups of equal members and name are told apart by how many such groups came before.
  for (uint64_t before = 0;; ++before) {
    group->context = fingerprint(fmt::format("{}#{}", identity, before)) | 1;
    if (std::none_of(groups_.begin(), groups_.end(), [&](const auto& g) { return g->context == group->context; }))
      break;
  }
  if (groups_.size() == kGroupsPerRank)
    return invalid_argument("group {}: rank {} is in {} groups already, the most there can be", name, rank_,
                            kGroupsPerRank);
  group->meetings = GroupMeetings(view_, group->ranks, static_cast<size_t>(group->index), group->context,
                                  static_cast<int>(groups_.size()));
  groups_.push_back(std::move(group));
  return GroupId(static_cast<int64_t>(groups_.size()) - 1);
}

// ---- issuing ----

Result<Event> SegmentCommunicator::send(RankId peer, uint64_t tag, const void* data, int64_t bytes,
                                        StreamKind /*stream*/, std::span<const Event> after) noexcept {
  return message(OperationKind::kSend, peer, tag, static_cast<std::byte*>(const_cast<void*>(data)), bytes, after);
}

Result<Event> SegmentCommunicator::recv(RankId peer, uint64_t tag, void* data, int64_t bytes, StreamKind /*stream*/,
                                        std::span<const Event> after) noexcept {
  return message(OperationKind::kReceive, peer, tag, static_cast<std::byte*>(data), bytes, after);
}

Result<Event> SegmentCommunicator::message(OperationKind kind, RankId peer, uint64_t tag, std::byte* data,
                                           int64_t bytes, std::span<const Event> after) {
  const char* verb = kind == OperationKind::kSend ? "send" : "recv";
  if (peer.value < 0 || peer.value >= world_size())
    return invalid_argument("{}: peer {} is not in 0..{}", verb, peer, world_size() - 1);
  if (bytes < 0) return invalid_argument("{} tag {}: {} bytes", verb, tag, bytes);
  SegmentOperation& operation = begin(kind);
  Transfer& transfer = operation.transfers.emplace_back();
  transfer.peer = peer.value;
  transfer.is_send = kind == OperationKind::kSend;
  transfer.tag = tag;
  transfer.data = data;
  transfer.bytes = bytes;
  return issue(operation, after);
}

Status SegmentCommunicator::check_call(const SegmentGroup& group, const CollectiveCall& call) const {
  const auto size = static_cast<int>(group.ranks.size());
  if (call.kind == CollectiveKind::kBarrier) return Status::ok();
  if (call.count < 0) return invalid_argument("{} of group {}: count {}", to_string(call.kind), group.name, call.count);
  if (call.kind == CollectiveKind::kBroadcast && (call.root < 0 || call.root >= size))
    return invalid_argument("broadcast of group {}: root {} is not in 0..{}", group.name, call.root, size - 1);
  if (call.kind == CollectiveKind::kAllToAll && call.in == call.out && call.count > 0 && size > 1)
    return invalid_argument("all_to_all of group {}: in and out must be different memory", group.name);
  return Status::ok();
}

SegmentOperation& SegmentCommunicator::begin(OperationKind kind) {
  SegmentOperation& operation = operations_.begin(next_id_++);
  operation.kind = kind;
  operation.issued = Clock::now();
  operation.step = step_;
  return operation;
}

Result<Event> SegmentCommunicator::issue(SegmentOperation& operation, std::span<const Event> after) {
  const uint64_t id = operation.id;
  Status status = check_aborted();
  for (Event event : after) {
    if (event.id >= id) status = invalid_argument("event {} was not issued by this communicator", event.id);
    if (!is_done(event.id)) operation.after.push_back(event.id);
  }
  if (!status.is_ok()) {
    operations_.end(id);
    return status;
  }
  if (operation.kind == OperationKind::kCollective)
    lanes_[operation.lane()].push_back(&operation);
  else
    waiting_messages_.push_back(&operation);
  ALTIPLANO_RETURN_IF_ERROR(advance_until_idle());
  ALTIPLANO_RETURN_IF_ERROR(hand_over(false));
  return is_done(id) ? Event{} : Event{id};
}

// ---- progress ----

bool SegmentCommunicator::may_start(const SegmentOperation& operation) const {
  return std::all_of(operation.after.begin(), operation.after.end(), [&](uint64_t id) { return is_done(id); });
}

Status SegmentCommunicator::advance_until_idle() {
  for (bool moved = true; moved;) {
    moved = false;
    ALTIPLANO_RETURN_IF_ERROR(advance(moved));
  }
  return Status::ok();
}

Status SegmentCommunicator::hand_over(bool lingers) {
  const auto is_wanted = [&](const PeerChannel& channel) {
    return channel.has_wanted_data() || (lingers && channel.has_announced_data());
  };
  auto last_movement = Clock::now();
  while (std::ranges::any_of(channels_, is_wanted)) {
    bool moved = false;
    ALTIPLANO_RETURN_IF_ERROR(advance(moved));
    if (moved) {
      last_movement = Clock::now();
    } else if (Clock::now() - last_movement > (spins() ? kPatience : kPatienceSharing)) {
      break;
    } else if (!spins()) {
      sched_yield();
    }
  }
  return Status::ok();
}

Status SegmentCommunicator::advance(bool& moved) {
  ALTIPLANO_RETURN_IF_ERROR(check_aborted());
  view_.rank(rank_).heartbeat.store(wall_milliseconds(), std::memory_order_relaxed);
  ALTIPLANO_RETURN_IF_ERROR(start_ready(moved));
  ALTIPLANO_RETURN_IF_ERROR(advance_collectives(moved));
  ALTIPLANO_RETURN_IF_ERROR(move_frames(moved));
  return finish_completed(moved);
}

Status SegmentCommunicator::start_ready(bool& moved) {
  ALTIPLANO_RETURN_IF_ERROR(start_messages(moved));
  return start_collectives(moved);
}

// A message may not overtake an earlier one of the same direction, peer and tag.
Status SegmentCommunicator::start_messages(bool& moved) {
  const auto is_held_up = [&](size_t index) {
    const SegmentOperation& operation = *waiting_messages_.at(index);
    for (size_t earlier = 0; earlier < index; ++earlier)
      if (is_same_queue(*waiting_messages_.at(earlier), operation)) return true;
    return !may_start(operation);
  };
  for (size_t i = 0; i < waiting_messages_.size();) {
    if (is_held_up(i)) {
      ++i;
      continue;
    }
    moved = true;
    ALTIPLANO_RETURN_IF_ERROR(start(*waiting_messages_.take(i)));
  }
  return Status::ok();
}

Status SegmentCommunicator::start_collectives(bool& moved) {
  for (auto& lane : lanes_) {
    if (lane.empty() || lane.front()->is_started || !may_start(*lane.front())) continue;
    moved = true;
    ALTIPLANO_RETURN_IF_ERROR(start(*lane.front()));
  }
  return Status::ok();
}

Status SegmentCommunicator::start(SegmentOperation& operation) {
  operation.is_started = true;
  return operation.kind == OperationKind::kCollective ? meet(operation) : post(operation);
}

/// Hands the operation's transfers to the channels.
Status SegmentCommunicator::post(SegmentOperation& operation) {
  operation.outstanding = static_cast<int>(operation.transfers.size());
  if (operation.transfers.empty()) completed_.push_back(&operation);
  for (Transfer& transfer : operation.transfers) {
    transfer.owner = &operation;
    PeerChannel& channel = channels_[static_cast<size_t>(transfer.peer)];
    if (transfer.is_send) {
      channel.post_send(transfer);
    } else if (auto mismatch = channel.post_receive(transfer)) {
      return size_mismatch(*mismatch);
    }
  }
  return Status::ok();
}

Status SegmentCommunicator::finish_completed(bool& moved) {
  while (!completed_.empty()) {
    moved = true;
    auto& operation = static_cast<SegmentOperation&>(*completed_.back());
    completed_.pop_back();
    if (operation.kind != OperationKind::kCollective) {
      operations_.end(operation.id);
      continue;
    }
    run_actions(operation.schedule.stages[operation.next_stage - 1], operation.call.dtype, operation.call.reduce);
    ALTIPLANO_RETURN_IF_ERROR(next_stage(operation));
  }
  return Status::ok();
}

Status SegmentCommunicator::move_frames(bool& moved) {
  for (int peer = 0; peer < world_size(); ++peer) {
    bool moved_here = false;
    PeerChannel& channel = channels_[static_cast<size_t>(peer)];
    const auto mismatch = channel.drain(moved_here);
    channel.flush(moved_here);
    if (moved_here) {
      ring(peer);
      moved = true;
    }
    if (mismatch) return size_mismatch(*mismatch);
  }
  return Status::ok();
}

// ---- waiting ----

void SegmentCommunicator::ring(int peer) {
  RankSlot& slot = view_.rank(peer);
  if (peer == rank_ || slot.sleeping.load(std::memory_order_seq_cst) == 0) return;
  if (slot.sleeping.exchange(0, std::memory_order_seq_cst) == 0) return;  // another peer rings
  slot.doorbell.fetch_add(1, std::memory_order_seq_cst);
  futex_wake_all(slot.doorbell, attachment_.scope);
}

bool SegmentCommunicator::spins() const {
  static const int cpus = num_cpus();
  return cpus >= world_size();
}

std::chrono::nanoseconds SegmentCommunicator::time_to_sleep(const Waiting& waiting) const {
  const Clock::duration left = options_.deadline - (Clock::now() - waiting.last_movement);
  return std::clamp<Clock::duration>(left, std::chrono::milliseconds(1), kLookInterval);
}

Status SegmentCommunicator::wait(Event event) noexcept {
  ALTIPLANO_RETURN_IF_ERROR(check_aborted());
  if (event.id >= next_id_) return invalid_argument("event {} was not issued by this communicator", event.id);
  const auto begin = Clock::now();
  Waiting waiting{event, begin, begin};
  RankSlot& slot = view_.rank(rank_);
  for (int idle = 0; !is_done(event.id);) {
    // Announcing sleep before looking once more: a peer either sees the announcement or is seen.
    const bool about_to_sleep = idle >= (spins() ? kSpins : 1);
    const uint32_t doorbell = slot.doorbell.load(std::memory_order_seq_cst);
    if (about_to_sleep) slot.sleeping.store(1, std::memory_order_seq_cst);
    bool moved = false;
    Status status = advance(moved);
    if (status.is_ok() && about_to_sleep && !moved && !is_done(event.id)) {
      publish_whom_we_wait_for(event);
      futex_wait(slot.doorbell, doorbell, time_to_sleep(waiting), attachment_.scope);
      status = look_for_trouble(waiting);
    }
    if (about_to_sleep) slot.sleeping.store(0, std::memory_order_seq_cst);
    ALTIPLANO_RETURN_IF_ERROR(status);
    idle = moved ? 0 : idle + 1;
    if (moved) waiting.last_movement = Clock::now();
  }
  slot.waits_for.store(0, std::memory_order_relaxed);
  return hand_over(true);
}

Result<bool> SegmentCommunicator::test(Event event) noexcept {
  if (event.id >= next_id_) return invalid_argument("event {} was not issued by this communicator", event.id);
  ALTIPLANO_RETURN_IF_ERROR(advance_until_idle());
  return is_done(event.id);
}

void SegmentCommunicator::set_step(int64_t step) noexcept {
  step_ = step;
  view_.rank(rank_).step.store(step, std::memory_order_relaxed);
}

// ---- opening ----

Result<std::unique_ptr<Communicator>> open_segment_communicator(Rendezvous& rendezvous, const CommOptions& options,
                                                                SegmentAttachment attachment) {
  const SegmentView view(attachment.memory.get());
  if (!is_initialized(view, attachment.shape))
    return invalid_argument(
        "rank {} opens a segment made for other options; comm.chunk_bytes must be equal on all ranks",
        rendezvous.rank());
  const int rank = rendezvous.rank().value;
  view.rank(rank).process.store(getpid());
  ALTIPLANO_RETURN_IF_ERROR(rendezvous.put("comm/host", rendezvous.host()));
  ALTIPLANO_RETURN_IF_ERROR(rendezvous.fence(options.deadline));
  std::vector<std::string> hosts;
  for (int peer = 0; peer < rendezvous.world_size(); ++peer) {
    ALTIPLANO_ASSIGN(std::string host, rendezvous.get(RankId(peer), "comm/host"));
    hosts.push_back(std::move(host));
  }
  return std::unique_ptr<Communicator>(new SegmentCommunicator(rank, std::move(hosts), options, std::move(attachment)));
}

}  // namespace altiplano
