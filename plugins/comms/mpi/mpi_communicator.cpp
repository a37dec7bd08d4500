#include "plugins/comms/mpi/mpi_communicator.hpp"

#include <algorithm>
#include <climits>
#include <thread>

#include "framework/base/text.hpp"
#include "framework/base/units.hpp"

namespace altiplano::mpi {
namespace {

constexpr int64_t kPiecesOfChunks = 4096;  // a message travels in pieces of so many chunks: 1 GiB by default
constexpr int64_t kMostInOneCall = INT_MAX / 2;

int64_t piece_bytes(const CommOptions& options) {
  return std::clamp<int64_t>(options.chunk_bytes * kPiecesOfChunks, 1, kMostInOneCall);
}

bool is_same_queue(const Operation& a, const Operation& b) {
  const Transfer &x = a.transfers.front(), &y = b.transfers.front();
  return a.kind == b.kind && x.peer == y.peer && x.tag == y.tag;
}

}  // namespace

MpiCommunicator::MpiCommunicator(int rank, Connection connection, const CommOptions& options)
    : rank_(rank), options_(options), messages_(std::move(connection), piece_bytes(options)) {}

MpiCommunicator::~MpiCommunicator() {
  constexpr auto kGoodbye = std::chrono::seconds(5);
  std::lock_guard lock(mpi_mutex());
  if (failure_.is_ok()) {
    for (int peer = 0; peer < world_size(); ++peer)
      if (peer != rank_) messages_.tell(peer, FrameKind::kBye, "");
    messages_.flush(kGoodbye);
  }
}

std::string MpiCommunicator::who(int rank) const {
  const auto& hosts = messages_.hosts();
  const auto& host = hosts[static_cast<size_t>(rank)];
  return fmt::format("rank {} ({}, local {})", rank, host, std::count(hosts.begin(), hosts.begin() + rank, host));
}

std::string MpiCommunicator::describe(const Operation& operation) const {
  if (operation.kind != OperationKind::kCollective) {
    const Transfer& transfer = operation.transfers.front();
    return fmt::format("{} tag {} ({})", transfer.is_send ? "send" : "recv", transfer.tag,
                       to_string(Bytes(transfer.bytes)));
  }
  const CollectiveCall& call = operation.call;
  std::string text = fmt::format("{} #{} of group {}", to_string(call.kind), operation.sequence, operation.group->name);
  if (call.kind != CollectiveKind::kBarrier)
    text += fmt::format(" ({}, {})", to_string(Bytes(call.count * size_of(call.dtype))), to_string(call.dtype));
  return text;
}

// ---- groups ----

Result<std::unique_ptr<Group>> MpiCommunicator::describe_group(std::span<const RankId> ranks,
                                                               const std::string& name) const {
  auto group = std::make_unique<Group>();
  group->name = name;
  group->index = -1;
  std::string identity = name;
  for (RankId member : ranks) {
    if (member.value < 0 || member.value >= world_size())
      return invalid_argument("group {}: rank {} is not in 0..{}", name, member, world_size() - 1);
    if (std::ranges::find(group->ranks, member.value) != group->ranks.end())
      return invalid_argument("group {}: rank {} is named twice", name, member);
    if (member.value == rank_) group->index = static_cast<int>(group->ranks.size());
    group->ranks.push_back(member.value);
    identity += fmt::format(",{}", member);
  }
  if (group->index < 0) return invalid_argument("group {}: rank {} creates it but is no member", name, rank_);
  // Groups of equal members and name are told apart by how many such groups came before.
  for (uint64_t before = 0;; ++before) {
    group->context = (fingerprint(fmt::format("{}#{}", identity, before)) | 32) & ~uint64_t{31};
    if (std::ranges::none_of(groups_, [&](const auto& g) { return g->context == group->context; })) break;
  }
  return group;
}

Result<GroupId> MpiCommunicator::create_group(std::span<const RankId> ranks, const std::string& name) noexcept try {
  ALTIPLANO_ASSIGN(auto group, describe_group(ranks, name));
  if (group->ranks.size() > 1) ALTIPLANO_RETURN_IF_ERROR(meet(*group));
  groups_.push_back(std::move(group));
  return GroupId(static_cast<int64_t>(groups_.size()) - 1);
} catch (const std::exception& e) {
  return runtime_failure("comm/mpi: {}", e.what());
}

/// MPI makes a communicator in a call that waits without a deadline; so members first find out whether all have come.
Status MpiCommunicator::meet(Group& group) {
  Event met;
  {
    std::lock_guard lock(mpi_mutex());
    Operation& operation = begin(OperationKind::kCollective);
    operation.group = &group;
    operation.call.kind = CollectiveKind::kBarrier;
    operation.schedule = collective_schedule(operation.call, static_cast<int>(group.ranks.size()), group.index, 1);
    operation.phase = Phase::kMoving;
    met = Event{operation.id};
    ALTIPLANO_RETURN_IF_ERROR(failure_);
    ALTIPLANO_RETURN_IF_ERROR(post_stage(operation));
  }
  ALTIPLANO_RETURN_IF_ERROR(wait(met).with_context(fmt::format("while making group {}", group.name)));
  std::lock_guard lock(mpi_mutex());
  constexpr uint64_t kMostTag = (1u << 30) - 1;
  const int tag = static_cast<int>((group.context >> 5) & kMostTag);
  MPI_Group world = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
  MPI_Comm_group(messages_.communicator(), &world);
  MPI_Group_incl(world, static_cast<int>(group.ranks.size()), group.ranks.data(), &members);
  const int code = MPI_Comm_create_group(messages_.communicator(), members, tag, &group.communicator);
  MPI_Group_free(&members);
  MPI_Group_free(&world);
  ALTIPLANO_RETURN_IF_ERROR(status_of(code, "create a group"));
  MPI_Comm_set_errhandler(group.communicator, MPI_ERRORS_RETURN);
  return Status::ok();
}

// ---- issuing ----

Result<Event> MpiCommunicator::send(RankId peer, uint64_t tag, const void* data, int64_t bytes, StreamKind /*stream*/,
                                    std::span<const Event> after) noexcept {
  return message(OperationKind::kSend, peer, tag, static_cast<std::byte*>(const_cast<void*>(data)), bytes, after);
}

Result<Event> MpiCommunicator::recv(RankId peer, uint64_t tag, void* data, int64_t bytes, StreamKind /*stream*/,
                                    std::span<const Event> after) noexcept {
  return message(OperationKind::kReceive, peer, tag, static_cast<std::byte*>(data), bytes, after);
}

Result<Event> MpiCommunicator::message(OperationKind kind, RankId peer, uint64_t tag, std::byte* data, int64_t bytes,
                                       std::span<const Event> after) try {
  const char* verb = kind == OperationKind::kSend ? "send" : "recv";
  if (peer.value < 0 || peer.value >= world_size())
    return invalid_argument("{}: peer {} is not in 0..{}", verb, peer, world_size() - 1);
  if (bytes < 0) return invalid_argument("{} tag {}: {} bytes", verb, tag, bytes);
  std::lock_guard lock(mpi_mutex());
  Operation& operation = begin(kind);
  operation.transfers.push_back({.peer = peer.value,
                                 .is_send = kind == OperationKind::kSend,
                                 .context = 0,
                                 .tag = tag,
                                 .data = data,
                                 .bytes = bytes});
  return issue(operation, after);
} catch (const std::exception& e) {
  return runtime_failure("comm/mpi: {}", e.what());
}

Status MpiCommunicator::check_call(const Group& group, const CollectiveCall& call) const {
  const auto size = static_cast<int>(group.ranks.size());
  if (call.kind == CollectiveKind::kBarrier) return Status::ok();
  if (call.count < 0) return invalid_argument("{} of group {}: count {}", to_string(call.kind), group.name, call.count);
  if (call.kind == CollectiveKind::kBroadcast && (call.root < 0 || call.root >= size))
    return invalid_argument("broadcast of group {}: root {} is not in 0..{}", group.name, call.root, size - 1);
  if (call.kind == CollectiveKind::kAllToAll && call.in == call.out && call.count > 0 && size > 1)
    return invalid_argument("all_to_all of group {}: in and out must be different memory", group.name);
  return Status::ok();
}

Result<Event> MpiCommunicator::collective(GroupId group, const CollectiveCall& call, StreamKind stream,
                                          std::span<const Event> after) noexcept try {
  if (group.value < 0 || group.index() >= groups_.size())
    return invalid_argument("{}: group {} was not created by this communicator", to_string(call.kind), group);
  Group& members = *groups_[group.index()];
  ALTIPLANO_RETURN_IF_ERROR(check_call(members, call));
  std::lock_guard lock(mpi_mutex());
  Operation& operation = begin(OperationKind::kCollective);
  operation.group = &members;
  operation.call = call;
  operation.stream = stream;
  operation.sequence = ++members.calls;
  operation.sequence_on_lane = ++members.calls_on_lane[operation.lane()];
  return issue(operation, after);
} catch (const std::exception& e) {
  return runtime_failure("comm/mpi: {}", e.what());
}

Operation& MpiCommunicator::begin(OperationKind kind) {
  const uint64_t id = next_id_++;
  Operation& operation = *operations_.emplace(id, std::make_unique<Operation>()).first->second;
  operation.id = id;
  operation.kind = kind;
  operation.step = step_;
  return operation;
}

Operation* MpiCommunicator::find(uint64_t id) const {
  const auto found = operations_.find(id);
  return found == operations_.end() ? nullptr : found->second.get();
}

Result<Event> MpiCommunicator::issue(Operation& operation, std::span<const Event> after) {
  const uint64_t id = operation.id;
  Status status = failure_;
  for (Event event : after) {
    if (event.id >= id) status = invalid_argument("event {} was not issued by this communicator", event.id);
    if (!is_done(event.id)) operation.after.push_back(event.id);
  }
  if (!status.is_ok()) {
    end(id);
    return status;
  }
  if (operation.kind == OperationKind::kCollective)
    lanes_[operation.lane()].push_back(&operation);
  else
    waiting_messages_.push_back(&operation);
  ALTIPLANO_RETURN_IF_ERROR(advance_until_idle());
  return is_done(id) ? Event{} : Event{id};
}

// ---- progress ----

bool MpiCommunicator::may_start(const Operation& operation) const {
  return std::ranges::all_of(operation.after, [&](uint64_t id) { return is_done(id); });
}

Status MpiCommunicator::advance_until_idle() {
  for (bool moved = true; moved;) {
    moved = false;
    ALTIPLANO_RETURN_IF_ERROR(advance(moved));
  }
  return Status::ok();
}

Status MpiCommunicator::advance(bool& moved) {
  ALTIPLANO_RETURN_IF_ERROR(failure_);
  ALTIPLANO_RETURN_IF_ERROR(start_messages(moved));
  ALTIPLANO_RETURN_IF_ERROR(start_collectives(moved));
  if (Status status = messages_.advance(moved); !status.is_ok())
    return fail_world(status.code(), fmt::format("{}; noticed by {} at step {}", status.message(), who(rank_), step_));
  ALTIPLANO_RETURN_IF_ERROR(take_notes());
  if (messages_.mismatch()) return size_mismatch(*messages_.mismatch());
  return finish_operations(moved);
}

// A message may not overtake an earlier one of the same direction, peer and tag.
Status MpiCommunicator::start_messages(bool& moved) {
  const auto is_held_up = [&](size_t index) {
    const Operation& operation = *waiting_messages_[index];
    for (size_t earlier = 0; earlier < index; ++earlier)
      if (is_same_queue(*waiting_messages_[earlier], operation)) return true;
    return !may_start(operation);
  };
  for (size_t i = 0; i < waiting_messages_.size();) {
    if (is_held_up(i)) {
      ++i;
      continue;
    }
    moved = true;
    Operation& operation = *waiting_messages_[i];
    waiting_messages_.erase(waiting_messages_.begin() + static_cast<std::ptrdiff_t>(i));
    ALTIPLANO_RETURN_IF_ERROR(start(operation));
  }
  return Status::ok();
}

Status MpiCommunicator::start_collectives(bool& moved) {
  for (auto& lane : lanes_) {
    if (lane.empty() || lane.front()->phase != Phase::kWaiting || !may_start(*lane.front())) continue;
    moved = true;
    ALTIPLANO_RETURN_IF_ERROR(start(*lane.front()));
  }
  return Status::ok();
}

Status MpiCommunicator::start(Operation& operation) {
  if (operation.kind != OperationKind::kCollective) {
    operation.phase = Phase::kMoving;
    return post(operation);
  }
  operation.group->started_on_lane[operation.lane()] = operation.sequence_on_lane;
  return options_.check_calls && operation.group->ranks.size() > 1 ? exchange_records(operation) : move(operation);
}

/// Hands the operation's transfers to MPI.
Status MpiCommunicator::post(Operation& operation) {
  operation.open = static_cast<int>(operation.transfers.size());
  for (Transfer& transfer : operation.transfers) {
    transfer.open = &operation.open;
    ALTIPLANO_RETURN_IF_ERROR(transfer.is_send ? messages_.send(transfer) : messages_.receive(transfer));
    if (messages_.mismatch()) return size_mismatch(*messages_.mismatch());
  }
  return Status::ok();
}

Status MpiCommunicator::finish_operations(bool& moved) {
  for (auto at = operations_.begin(); at != operations_.end();) {
    Operation& operation = *(at++)->second;
    if (operation.phase == Phase::kWaiting || operation.open > 0) continue;
    ALTIPLANO_ASSIGN(const Next next, finish_stage(operation));
    moved = moved || next != Next::kWaits;
    if (next != Next::kIsOver) continue;
    if (operation.kind == OperationKind::kCollective && operation.sequence > 0) lanes_[operation.lane()].pop_front();
    end(operation.id);
  }
  return Status::ok();
}

/// The transfers are done: what follows is begun.
Result<MpiCommunicator::Next> MpiCommunicator::finish_stage(Operation& operation) {
  if (operation.kind != OperationKind::kCollective) return Next::kIsOver;
  if (operation.phase == Phase::kComparing) {
    for (size_t member = 0; member < operation.records.size(); ++member)
      if (operation.records[member] != operation.records[static_cast<size_t>(operation.group->index)])
        return calls_differ(operation, member);
    ALTIPLANO_RETURN_IF_ERROR(move(operation));
    return Next::kBegan;
  }
  if (operation.native != MPI_REQUEST_NULL) {
    int is_done = 0;
    const Status status = status_of(MPI_Test(&operation.native, &is_done, MPI_STATUS_IGNORE), "collective");
    if (!status.is_ok()) return fail_world(status.code(), describe(operation) + ": " + status.message());
    return is_done != 0 ? Next::kIsOver : Next::kWaits;
  }
  if (operation.next_stage > 0)
    run_actions(operation.schedule.stages[operation.next_stage - 1], operation.call.dtype, operation.call.reduce);
  if (operation.next_stage >= operation.schedule.stages.size()) return Next::kIsOver;
  ALTIPLANO_RETURN_IF_ERROR(post_stage(operation));
  return Next::kBegan;
}

// ---- collectives ----

uint64_t MpiCommunicator::context_of(const Operation& operation, Use use) {
  return operation.group->context + (operation.sequence == 0 ? uint64_t{kMeeting} : use) * kLanes + operation.lane();
}

/// Each member tells all others what it was asked for.
Status MpiCommunicator::exchange_records(Operation& operation) {
  Group& group = *operation.group;
  operation.phase = Phase::kComparing;
  operation.records.assign(group.ranks.size(), CallRecord{});
  auto& mine = operation.records[static_cast<size_t>(group.index)];
  mine = record_of(operation.call);
  for (const bool is_send : {false, true})
    for (size_t member = 0; member < group.ranks.size(); ++member) {
      if (group.ranks[member] == rank_) continue;
      auto* record = reinterpret_cast<std::byte*>(is_send ? &mine : &operation.records[member]);
      operation.transfers.push_back({.peer = group.ranks[member],
                                     .is_send = is_send,
                                     .context = context_of(operation, kRecords),
                                     .tag = 0,
                                     .data = record,
                                     .bytes = sizeof(CallRecord)});
    }
  return post(operation);
}

Status MpiCommunicator::move(Operation& operation) {
  operation.phase = Phase::kMoving;
  if (moves_natively(operation)) return start_natively(operation);
  const Group& group = *operation.group;
  operation.schedule =
      collective_schedule(operation.call, static_cast<int>(group.ranks.size()), group.index, options_.chunk_bytes);
  return operation.schedule.stages.empty() ? Status::ok() : post_stage(operation);
}

Status MpiCommunicator::post_stage(Operation& operation) {
  const CollectiveStage& stage = operation.schedule.stages[operation.next_stage++];
  operation.transfers.clear();
  for (const CollectiveMessage& message : stage.messages)
    operation.transfers.push_back({.peer = operation.group->ranks[static_cast<size_t>(message.peer)],
                                   .is_send = message.is_send,
                                   .context = context_of(operation, kData),
                                   .tag = 0,
                                   .data = message.data,
                                   .bytes = message.bytes});
  return post(operation);
}

/// One lane has a communicator of MPI, on which calls must come in one order on all members.
bool MpiCommunicator::moves_natively(const Operation& operation) const {
  const CollectiveCall& call = operation.call;
  const auto num_ranks = static_cast<int64_t>(operation.group->ranks.size());
  if (num_ranks == 1 || operation.stream != StreamKind::kCollective) return false;
  if (call.kind == CollectiveKind::kAllReduce || call.kind == CollectiveKind::kReduceScatter) return false;
  return call.count <= kMostInOneCall / num_ranks / size_of(call.dtype);
}

Status MpiCommunicator::start_natively(Operation& operation) {
  const CollectiveCall& call = operation.call;
  const Group& group = *operation.group;
  const auto bytes = static_cast<int>(call.count * size_of(call.dtype));
  auto* out = static_cast<std::byte*>(call.out);
  const bool is_in_place = call.in == out + int64_t{bytes} * group.index;
  int code = MPI_SUCCESS;
  switch (call.kind) {
    case CollectiveKind::kAllGather:
      code = MPI_Iallgather(is_in_place ? MPI_IN_PLACE : call.in, bytes, MPI_BYTE, out, bytes, MPI_BYTE,
                            group.communicator, &operation.native);
      break;
    case CollectiveKind::kAllToAll:
      code = MPI_Ialltoall(call.in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, group.communicator, &operation.native);
      break;
    case CollectiveKind::kBroadcast:
      code = MPI_Ibcast(out, bytes, MPI_BYTE, call.root, group.communicator, &operation.native);
      break;
    default:
      code = MPI_Ibarrier(group.communicator, &operation.native);
  }
  return status_of(code, "collective");
}

// ---- waiting ----

Status MpiCommunicator::wait(Event event) noexcept try {
  constexpr int kSpins = 100;
  constexpr auto kLeastSleep = std::chrono::microseconds(10), kMostSleep = std::chrono::microseconds(500);
  auto last_movement = Clock::now(), last_look = last_movement;
  auto sleep = kLeastSleep;
  for (int idle = 0;;) {
    {
      std::lock_guard lock(mpi_mutex());
      ALTIPLANO_RETURN_IF_ERROR(failure_);
      if (event.id >= next_id_) return invalid_argument("event {} was not issued by this communicator", event.id);
      bool moved = false;
      waits_for_event_ = event.id;
      Status status = is_done(event.id) ? Status::ok() : advance(moved);
      const auto now = Clock::now();
      if (moved) last_movement = now;
      if (status.is_ok() && !is_done(event.id) && now - last_look >= kLookInterval) {
        last_look = now;
        status = check_peers_that_left(blocking(*find(event.id)));
      }
      if (status.is_ok() && !is_done(event.id) && now - last_movement >= options_.deadline)
        status = peer_stuck(blocking(*find(event.id)), now - last_movement);
      waits_for_event_ = 0;
      ALTIPLANO_RETURN_IF_ERROR(status);
      if (is_done(event.id)) return Status::ok();
      idle = moved ? 0 : idle + 1;
    }
    if (idle == 0) sleep = kLeastSleep;
    if (idle < kSpins) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(sleep);
      sleep = std::min(2 * sleep, std::chrono::microseconds(kMostSleep));
    }
  }
} catch (const std::exception& e) {
  return runtime_failure("comm/mpi: {}", e.what());
}

Result<bool> MpiCommunicator::test(Event event) noexcept try {
  std::lock_guard lock(mpi_mutex());
  if (event.id >= next_id_) return invalid_argument("event {} was not issued by this communicator", event.id);
  ALTIPLANO_RETURN_IF_ERROR(advance_until_idle());
  return is_done(event.id);
} catch (const std::exception& e) {
  return runtime_failure("comm/mpi: {}", e.what());
}

void MpiCommunicator::set_step(int64_t step) noexcept {
  step_ = step;
}

}  // namespace altiplano::mpi
