#include "framework/api/collectives/in_place.hpp"
#include "framework/api/engine/engine.hpp"

namespace altiplano {
namespace {

constexpr uint64_t kOfRecords = uint64_t{1} << 63;

/// Between members, of one call and of no other that may run at the same time.
uint64_t tag_of(const CommOperation& operation) {
  return operation.sequence_on_lane * kLanes + operation.lane();
}

/// What a member showed for this call; nullptr: nothing yet.
const MeetingPost* post_of(const CommOperation& operation, size_t member) {
  return operation.group->meetings.post_of(member, operation.lane(), operation.sequence_on_lane);
}

}  // namespace

Status Engine::begin_collective(CommOperation& operation) {
  if (operation.group->meets_in_segment) {
    meet(operation);
    return Status::ok();
  }
  if (options_.check_calls && operation.group->size() > 1) return exchange_records(operation);
  return start_messages_of(operation);
}

// ---- among ranks that share a segment ----

void Engine::meet(CommOperation& operation) {
  CommGroup& group = *operation.group;
  const CollectiveCall& call = operation.call;
  const ReachableMemory& memory = segment_->memory();
  const BufferName in = memory.name(data_in(call), bytes_in(call, group.size(), group.index()));
  BufferName out{.arena = BufferName::kEmpty};  // nobody else writes it
  if (call.kind == CollectiveKind::kAllReduce) out = memory.name(call.out, bytes_out(call, group.size()));
  group.meetings.post(operation.lane(), operation.sequence_on_lane, call, in, out);
  segment_->ring_members(group);
}

Status Engine::advance_collectives(bool& moved) {
  for (auto& lane : lanes_)
    if (!lane.empty() && lane.front()->is_started) ALTIPLANO_RETURN_IF_ERROR(advance_collective(*lane.front(), moved));
  return Status::ok();
}

bool Engine::is_in_meeting(const CommOperation& operation) const {
  return operation.group->meets_in_segment &&
         (operation.phase == CollectivePhase::kMeeting || operation.phase == CollectivePhase::kFinishing);
}

bool Engine::is_here(const CommOperation& operation, size_t member) const {
  if (operation.phase == CollectivePhase::kMeeting) return post_of(operation, member) != nullptr;
  return operation.group->meetings.has_finished(member, operation.lane(), operation.sequence_on_lane);
}

bool Engine::are_all_here(const CommOperation& operation) const {
  for (size_t member = 0; member < operation.group->ranks.size(); ++member)
    if (!is_here(operation, member)) return false;
  return true;
}

Status Engine::advance_collective(CommOperation& operation, bool& moved) {
  if (!is_in_meeting(operation) || !are_all_here(operation)) return Status::ok();
  moved = true;
  if (operation.phase == CollectivePhase::kMeeting) return run(operation);
  complete(operation);
  return Status::ok();
}

Status Engine::run(CommOperation& operation) {
  const CallRecord mine = record_of(operation.call);
  CommGroup& group = *operation.group;
  for (size_t member = 0; member < group.ranks.size(); ++member)
    if (const CallRecord theirs = record_of(*post_of(operation, member)); !(theirs == mine))
      return calls_differ(operation, member, theirs);
  if (fits_in_post(operation.call, group.size())) {
    for (size_t member = 0; member < group.ranks.size(); ++member)
      group.meetings.in[member] = post_of(operation, member)->payload.data();
    run_alone(operation.call, group.index(), group.meetings.in);
    complete(operation);
    return Status::ok();
  }
  return are_reachable(operation) ? run_in_place(operation) : start_messages_of(operation);
}

/// All members see the same posts, so that all decide alike.
bool Engine::are_reachable(const CommOperation& operation) const {
  for (size_t member = 0; member < operation.group->ranks.size(); ++member) {
    const MeetingPost& post = *post_of(operation, member);
    if (!name_in_post(post, false).is_reachable() || !name_in_post(post, true).is_reachable()) return false;
  }
  return true;
}

Status Engine::run_in_place(CommOperation& operation) {
  CommGroup& group = *operation.group;
  for (size_t member = 0; member < group.ranks.size(); ++member) {
    const MeetingPost& post = *post_of(operation, member);
    auto in = segment_->reach(group.ranks[member], name_in_post(post, false));
    auto out = segment_->reach(group.ranks[member], name_in_post(post, true));
    if (!in.is_ok() || !out.is_ok())
      return fail_world(StatusCode::kRuntimeFailure,
                        fmt::format("{} cannot reach memory of {} in {}: {}", who(rank_), who(group.ranks[member]),
                                    altiplano::describe(operation), (in.is_ok() ? out : in).status().message()));
    group.meetings.in[member] = *in;
    group.meetings.out[member] = *out;
  }
  run_part(operation.call, group.index(), group.meetings.in, group.meetings.out);
  group.meetings.finish(operation.lane(), operation.sequence_on_lane);
  segment_->ring_members(group);
  operation.phase = CollectivePhase::kFinishing;
  return Status::ok();
}

// ---- by messages ----

/// Each member tells all others what it was asked for.
Status Engine::exchange_records(CommOperation& operation) {
  const CommGroup& group = *operation.group;
  operation.phase = CollectivePhase::kComparing;
  operation.records.assign(group.ranks.size(), CallRecord{});
  CallRecord& mine = operation.records[static_cast<size_t>(group.index())];
  mine = record_of(operation.call);
  for (size_t member = 0; member < group.ranks.size(); ++member) {
    if (group.ranks[member] == rank_) continue;
    for (const bool is_send : {false, true}) {
      Transfer& transfer = operation.transfers.emplace_back();
      transfer.peer = group.ranks[member];
      transfer.is_send = is_send;
      transfer.context = group.context;
      transfer.tag = tag_of(operation) | kOfRecords;
      transfer.data = reinterpret_cast<std::byte*>(is_send ? &mine : &operation.records[member]);
      transfer.bytes = sizeof(CallRecord);
    }
  }
  return post(operation);
}

Status Engine::start_messages_of(CommOperation& operation) {
  const CommGroup& group = *operation.group;
  operation.phase = CollectivePhase::kMessages;
  const bool is_inside = group.meets_in_segment;  // there sums have the same bits in place and by messages
  operation.schedule =
      collective_schedule(operation.call, group.shape, is_inside ? segment_->piece_bytes() : options_.chunk_bytes,
                          is_inside ? MessageAlgorithm::kDirect : options_.algorithm, options_.two_level);
  return next_stage(operation);
}

/// What follows is begun.
Status Engine::transfers_done(CommOperation& operation) {
  if (operation.phase != CollectivePhase::kComparing) {
    run_actions(operation.schedule.stages[operation.next_stage - 1], operation.call.dtype, operation.call.reduce);
    return next_stage(operation);
  }
  const CallRecord mine = record_of(operation.call);
  for (size_t member = 0; member < operation.records.size(); ++member)
    if (operation.records[member] != mine) return calls_differ(operation, member, operation.records[member]);
  return start_messages_of(operation);
}

Status Engine::next_stage(CommOperation& operation) {
  operation.transfers.clear();
  if (operation.next_stage == operation.schedule.stages.size()) {
    complete(operation);
    return Status::ok();
  }
  for (const CollectiveMessage& message : operation.schedule.stages[operation.next_stage].messages) {
    Transfer& transfer = operation.transfers.emplace_back();
    transfer.peer = operation.group->ranks[static_cast<size_t>(message.peer)];
    transfer.is_send = message.is_send;
    transfer.context = operation.group->context;
    transfer.tag = tag_of(operation);
    transfer.data = message.data;
    transfer.bytes = message.bytes;
  }
  ++operation.next_stage;
  return post(operation);
}

void Engine::complete(const CommOperation& operation) {
  lanes_[operation.lane()].pop_front();
  operations_.end(operation.id);
}

}  // namespace altiplano
