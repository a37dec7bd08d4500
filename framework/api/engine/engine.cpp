#include "framework/api/engine/engine.hpp"

#include <algorithm>

#include "framework/base/text.hpp"

namespace altiplano {
namespace {

Status check_call(const CommGroup& group, const CollectiveCall& call) {
  if (call.kind == CollectiveKind::kBarrier) return Status::ok();
  if (call.count < 0) return invalid_argument("{} of group {}: count {}", to_string(call.kind), group.name, call.count);
  if (call.kind == CollectiveKind::kBroadcast && (call.root < 0 || call.root >= group.size()))
    return invalid_argument("broadcast of group {}: root {} is not in 0..{}", group.name, call.root, group.size() - 1);
  if (call.kind == CollectiveKind::kAllToAll && call.in == call.out && call.count > 0 && group.size() > 1)
    return invalid_argument("all_to_all of group {}: in and out must be different memory", group.name);
  return Status::ok();
}

/// Members by their host, numbered in the order in which hosts come up.
std::vector<int> numbers_of_hosts(const std::vector<int>& ranks, const std::vector<std::string>& hosts) {
  std::vector<std::string> seen;
  std::vector<int> numbers;
  for (int rank : ranks) {
    const std::string& host = hosts[static_cast<size_t>(rank)];
    const auto found = std::find(seen.begin(), seen.end(), host);
    numbers.push_back(static_cast<int>(found - seen.begin()));
    if (found == seen.end()) seen.push_back(host);
  }
  return numbers;
}

}  // namespace

Engine::Engine(int rank, std::vector<std::string> hosts, const CommOptions& options, std::mutex* mutex)
    : rank_(rank), hosts_(std::move(hosts)), options_(options), mutex_(mutex) {}

void* Engine::allocate_registered(int64_t bytes) noexcept {
  return segment_ ? segment_->memory().allocate(bytes) : nullptr;
}

void Engine::free_registered(void* memory) noexcept {
  if (segment_) segment_->memory().free(memory);
}

Result<std::unique_ptr<CommGroup>> Engine::describe_group(std::span<const RankId> ranks,
                                                          const std::string& name) const {
  auto group = std::make_unique<CommGroup>();
  group->name = name;
  group->shape.index = -1;
  std::string identity = name;
  for (RankId member : ranks) {
    if (member.value < 0 || member.value >= world_size())
      return invalid_argument("group {}: rank {} is not in 0..{}", name, member, world_size() - 1);
    if (std::find(group->ranks.begin(), group->ranks.end(), member.value) != group->ranks.end())
      return invalid_argument("group {}: rank {} is named twice", name, member);
    if (member.value == rank_) group->shape.index = group->size();
    group->ranks.push_back(member.value);
    identity += fmt::format(",{}", member);
  }
  if (group->index() < 0) return invalid_argument("group {}: rank {} creates it but is no member", name, rank_);
  group->shape.num_ranks = group->size();
  group->shape.host_of = numbers_of_hosts(group->ranks, hosts_);
  // Groups of equal members and name are told apart by how many such groups came before.
  for (uint64_t before = 0;; ++before) {
    group->context = fingerprint(fmt::format("{}#{}", identity, before)) | 1;
    if (std::none_of(groups_.begin(), groups_.end(), [&](const auto& g) { return g->context == group->context; }))
      break;
  }
  return group;
}

Result<GroupId> Engine::create_group(std::span<const RankId> ranks, const std::string& name) noexcept {
  const auto held = lock();
  ALTIPLANO_ASSIGN(auto group, describe_group(ranks, name));
  if (segment_) ALTIPLANO_RETURN_IF_ERROR(segment_->attach(*group));
  groups_.push_back(std::move(group));
  return GroupId(static_cast<int64_t>(groups_.size()) - 1);
}

// ---- issuing ----

Result<Event> Engine::send(RankId peer, uint64_t tag, const void* data, int64_t bytes, StreamKind /*stream*/,
                           std::span<const Event> after) noexcept {
  return message(OperationKind::kSend, peer, tag, static_cast<std::byte*>(const_cast<void*>(data)), bytes, after);
}

Result<Event> Engine::recv(RankId peer, uint64_t tag, void* data, int64_t bytes, StreamKind /*stream*/,
                           std::span<const Event> after) noexcept {
  return message(OperationKind::kReceive, peer, tag, static_cast<std::byte*>(data), bytes, after);
}

Result<Event> Engine::message(OperationKind kind, RankId peer, uint64_t tag, std::byte* data, int64_t bytes,
                              std::span<const Event> after) {
  const char* verb = kind == OperationKind::kSend ? "send" : "recv";
  if (peer.value < 0 || peer.value >= world_size())
    return invalid_argument("{}: peer {} is not in 0..{}", verb, peer, world_size() - 1);
  if (bytes < 0) return invalid_argument("{} tag {}: {} bytes", verb, tag, bytes);
  const auto held = lock();
  CommOperation& operation = begin(kind);
  Transfer& transfer = operation.transfers.emplace_back();
  transfer.peer = peer.value;
  transfer.is_send = kind == OperationKind::kSend;
  transfer.tag = tag;
  transfer.data = data;
  transfer.bytes = bytes;
  return issue(operation, after);
}

Result<Event> Engine::collective(GroupId group, const CollectiveCall& call, StreamKind stream,
                                 std::span<const Event> after) noexcept {
  if (group.value < 0 || group.index() >= groups_.size())
    return invalid_argument("{}: group {} was not created by this communicator", to_string(call.kind), group);
  CommGroup& members = *groups_[group.index()];
  ALTIPLANO_RETURN_IF_ERROR(check_call(members, call));
  const auto held = lock();
  CommOperation& operation = begin(OperationKind::kCollective);
  operation.group = &members;
  operation.call = call;
  operation.stream = stream;
  operation.sequence = ++members.calls;
  operation.sequence_on_lane = ++members.calls_on_lane[operation.lane()];
  return issue(operation, after);
}

CommOperation& Engine::begin(OperationKind kind) {
  CommOperation& operation = operations_.begin(next_id_++);
  operation.kind = kind;
  operation.step = step_;
  return operation;
}

Result<Event> Engine::issue(CommOperation& operation, std::span<const Event> after) {
  const uint64_t id = operation.id;
  Status status = check_failed();
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

Status Engine::check_event(Event event) const {
  if (event.id < next_id_) return Status::ok();
  return invalid_argument("event {} was not issued by this communicator", event.id);
}

Result<bool> Engine::test(Event event) noexcept {
  const auto held = lock();
  ALTIPLANO_RETURN_IF_ERROR(check_event(event));
  ALTIPLANO_RETURN_IF_ERROR(advance_until_idle());
  return is_done(event.id);
}

// ---- progress ----

bool Engine::may_start(const CommOperation& operation) const {
  return std::all_of(operation.after.begin(), operation.after.end(), [&](uint64_t id) { return is_done(id); });
}

Status Engine::advance_until_idle() {
  for (bool moved = true; moved;) {
    moved = false;
    ALTIPLANO_RETURN_IF_ERROR(advance(moved));
  }
  return Status::ok();
}

Status Engine::advance(bool& moved) {
  ALTIPLANO_RETURN_IF_ERROR(check_failed());
  show_life();
  ALTIPLANO_RETURN_IF_ERROR(start_messages(moved));
  ALTIPLANO_RETURN_IF_ERROR(start_collectives(moved));
  ALTIPLANO_RETURN_IF_ERROR(advance_collectives(moved));
  if (segment_) ALTIPLANO_RETURN_IF_ERROR(check(segment_->move(moved)));
  ALTIPLANO_RETURN_IF_ERROR(move_outside(moved));
  return finish_completed(moved);
}

// A message may not overtake an earlier one of the same direction, peer and tag.
Status Engine::start_messages(bool& moved) {
  const auto is_held_up = [&](size_t index) {
    const CommOperation& operation = *waiting_messages_.at(index);
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

Status Engine::start_collectives(bool& moved) {
  for (auto& lane : lanes_) {
    if (lane.empty() || lane.front()->is_started || !may_start(*lane.front())) continue;
    moved = true;
    ALTIPLANO_RETURN_IF_ERROR(start(*lane.front()));
  }
  return Status::ok();
}

Status Engine::start(CommOperation& operation) {
  operation.is_started = true;
  return operation.kind == OperationKind::kCollective ? begin_collective(operation) : post(operation);
}

/// Hands the operation's transfers to their carriers.
Status Engine::post(CommOperation& operation) {
  operation.outstanding = static_cast<int>(operation.transfers.size());
  if (operation.transfers.empty()) completed_.push_back(&operation);
  for (Transfer& transfer : operation.transfers) {
    transfer.owner = &operation;
    if (segment_ && segment_->has(transfer.peer))
      ALTIPLANO_RETURN_IF_ERROR(check(segment_->post(transfer)));
    else
      ALTIPLANO_RETURN_IF_ERROR(post_outside(transfer));
  }
  return Status::ok();
}

Status Engine::post_outside(Transfer& transfer) {
  return runtime_failure("{} has no way to {}", who(rank_), who(transfer.peer));
}

Status Engine::finish_completed(bool& moved) {
  while (!completed_.empty()) {
    moved = true;
    auto& operation = static_cast<CommOperation&>(*completed_.back());
    completed_.pop_back();
    if (operation.kind == OperationKind::kCollective)
      ALTIPLANO_RETURN_IF_ERROR(transfers_done(operation));
    else
      operations_.end(operation.id);
  }
  return Status::ok();
}

}  // namespace altiplano
