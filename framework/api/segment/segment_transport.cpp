#include "framework/api/segment/segment_transport.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "framework/api/segment/segment_communicator.hpp"
#include "framework/base/text.hpp"

namespace altiplano {
namespace {

constexpr int kSpins = 200;  // idle rounds before sleeping, a few microseconds

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
      view_(attachment_.memory.get()) {
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
  auto operation = std::make_unique<SegmentOperation>();
  operation->kind = kind;
  Transfer& transfer = operation->transfers.emplace_back();
  transfer.peer = peer.value;
  transfer.is_send = kind == OperationKind::kSend;
  transfer.tag = tag;
  transfer.data = data;
  transfer.bytes = bytes;
  return issue(std::move(operation), after);
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

Result<Event> SegmentCommunicator::collective(GroupId group, const CollectiveCall& call, StreamKind stream,
                                              std::span<const Event> after) noexcept {
  if (group.value < 0 || group.index() >= groups_.size())
    return invalid_argument("{}: group {} was not created by this communicator", to_string(call.kind), group);
  SegmentGroup& members = *groups_[group.index()];
  ALTIPLANO_RETURN_IF_ERROR(check_call(members, call));
  auto operation = std::make_unique<SegmentOperation>();
  operation->kind = OperationKind::kCollective;
  operation->group = &members;
  operation->call = call;
  operation->stream = stream;
  operation->sequence = ++members.calls;
  return issue(std::move(operation), after);
}

Result<Event> SegmentCommunicator::issue(std::unique_ptr<SegmentOperation> operation, std::span<const Event> after) {
  ALTIPLANO_RETURN_IF_ERROR(check_aborted());
  SegmentOperation* op = operation.get();
  op->id = next_id_++;
  op->issued = Clock::now();
  op->step = step_;
  for (Event event : after) {
    if (event.id >= op->id) return invalid_argument("event {} was not issued by this communicator", event.id);
    if (!is_done(event.id)) op->after.push_back(event.id);
  }
  operations_.emplace(op->id, std::move(operation));
  const uint64_t id = op->id;
  if (op->kind == OperationKind::kCollective)
    lanes_[static_cast<size_t>(op->stream)].push_back(op);
  else
    waiting_messages_.push_back(op);
  ALTIPLANO_RETURN_IF_ERROR(advance_until_idle());
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

Status SegmentCommunicator::advance(bool& moved) {
  ALTIPLANO_RETURN_IF_ERROR(check_aborted());
  view_.rank(rank_).heartbeat.store(wall_milliseconds(), std::memory_order_relaxed);
  ALTIPLANO_RETURN_IF_ERROR(start_ready(moved));
  ALTIPLANO_RETURN_IF_ERROR(move_frames(moved));
  return finish_completed(moved);
}

Status SegmentCommunicator::start_ready(bool& moved) {
  ALTIPLANO_RETURN_IF_ERROR(start_messages(moved));
  return start_collectives(moved);
}

// A message may not overtake an earlier one of the same direction, peer and tag.
Status SegmentCommunicator::start_messages(bool& moved) {
  if (waiting_messages_.empty()) return Status::ok();
  std::set<std::tuple<OperationKind, int, uint64_t>> blocked;
  std::vector<SegmentOperation*> ready, still_waiting;
  for (SegmentOperation* operation : waiting_messages_) {
    const Transfer& transfer = operation->transfers.front();
    const std::tuple key(operation->kind, transfer.peer, transfer.tag);
    if (!blocked.contains(key) && may_start(*operation)) {
      ready.push_back(operation);
    } else {
      blocked.insert(key);
      still_waiting.push_back(operation);
    }
  }
  waiting_messages_ = std::move(still_waiting);
  for (SegmentOperation* operation : ready) {
    moved = true;
    ALTIPLANO_RETURN_IF_ERROR(start(*operation));
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
  if (operation.kind != OperationKind::kCollective) return post(operation);
  const SegmentGroup& group = *operation.group;
  operation.schedule = collective_schedule(operation.call, static_cast<int>(group.ranks.size()), group.index,
                                           attachment_.shape.frame_bytes);
  if (!options_.check_calls) return next_stage(operation);
  post_record_exchange(operation);
  return post(operation);
}

void SegmentCommunicator::post_record_exchange(SegmentOperation& operation) {
  const SegmentGroup& group = *operation.group;
  operation.records.assign(group.ranks.size(), record_of(operation));
  for (size_t i = 0; i < group.ranks.size(); ++i) {
    if (static_cast<int>(i) == group.index) continue;
    for (bool is_send : {true, false}) {
      Transfer& transfer = operation.transfers.emplace_back();
      transfer.peer = group.ranks[i];
      transfer.is_send = is_send;
      transfer.context = group.context;
      transfer.tag = operation.sequence;
      transfer.data = reinterpret_cast<std::byte*>(&operation.records[is_send ? static_cast<size_t>(group.index) : i]);
      transfer.bytes = sizeof(CallRecord);
    }
  }
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

Status SegmentCommunicator::next_stage(SegmentOperation& operation) {
  operation.transfers.clear();
  if (operation.next_stage < operation.schedule.stages.size()) {
    for (const CollectiveMessage& message : operation.schedule.stages[operation.next_stage].messages) {
      Transfer& transfer = operation.transfers.emplace_back();
      transfer.peer = operation.group->ranks[static_cast<size_t>(message.peer)];
      transfer.is_send = message.is_send;
      transfer.context = operation.group->context;
      transfer.tag = operation.sequence;
      transfer.data = message.data;
      transfer.bytes = message.bytes;
    }
    ++operation.next_stage;
    return post(operation);
  }
  lanes_[static_cast<size_t>(operation.stream)].pop_front();
  operations_.erase(operation.id);
  return Status::ok();
}

Status SegmentCommunicator::finish_completed(bool& moved) {
  while (!completed_.empty()) {
    moved = true;
    auto& operation = static_cast<SegmentOperation&>(*completed_.back());
    completed_.pop_back();
    if (operation.kind != OperationKind::kCollective) {
      operations_.erase(operation.id);
      continue;
    }
    if (operation.next_stage == 0)
      ALTIPLANO_RETURN_IF_ERROR(check_records(operation));
    else
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
  if (peer == rank_ || slot.sleeping.exchange(0, std::memory_order_seq_cst) == 0) return;
  slot.doorbell.fetch_add(1, std::memory_order_seq_cst);
  futex_wake_all(slot.doorbell, attachment_.scope);
}

bool SegmentCommunicator::spins() const {
  static const int cpus = num_cpus();
  return cpus >= world_size();
}

void SegmentCommunicator::publish_whom_we_wait_for(Event event) {
  const auto missing = missing_peers(blocking(*operations_.at(event.id)));
  view_.rank(rank_).waits_for.store(missing.empty() ? 0 : missing.front() + 1, std::memory_order_relaxed);
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
  return Status::ok();
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
