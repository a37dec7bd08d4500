#include "framework/api/collectives/in_place.hpp"
#include "framework/api/segment/segment_communicator.hpp"

namespace altiplano {

Result<Event> SegmentCommunicator::collective(GroupId group, const CollectiveCall& call, StreamKind stream,
                                              std::span<const Event> after) noexcept {
  if (group.value < 0 || group.index() >= groups_.size())
    return invalid_argument("{}: group {} was not created by this communicator", to_string(call.kind), group);
  SegmentGroup& members = *groups_[group.index()];
  ALTIPLANO_RETURN_IF_ERROR(check_call(members, call));
  SegmentOperation& operation = begin(OperationKind::kCollective);
  operation.group = &members;
  operation.call = call;
  operation.stream = stream;
  operation.sequence = ++members.calls;
  operation.sequence_on_lane = ++members.calls_on_lane[operation.lane()];
  return issue(operation, after);
}

Status SegmentCommunicator::meet(SegmentOperation& operation) {
  SegmentGroup& group = *operation.group;
  const CollectiveCall& call = operation.call;
  const auto num_ranks = static_cast<int>(group.ranks.size());
  const BufferName in = reachable_.name(data_in(call), bytes_in(call, num_ranks, group.index));
  BufferName out{.arena = BufferName::kEmpty};  // nobody else writes it
  if (call.kind == CollectiveKind::kAllReduce) out = reachable_.name(call.out, bytes_out(call, num_ranks));
  group.meetings.post(operation.lane(), operation.sequence_on_lane, call, in, out);
  ring_members(group);
  return Status::ok();
}

Status SegmentCommunicator::advance_collectives(bool& moved) {
  for (auto& lane : lanes_)
    if (!lane.empty() && lane.front()->is_started) ALTIPLANO_RETURN_IF_ERROR(advance_collective(*lane.front(), moved));
  return Status::ok();
}

Status SegmentCommunicator::advance_collective(SegmentOperation& operation, bool& moved) {
  if (operation.phase == CollectivePhase::kMeeting && all_have_posted(operation)) {
    moved = true;
    return run(operation);
  }
  if (operation.phase == CollectivePhase::kFinishing && all_have_finished(operation)) {
    moved = true;
    complete(operation);
  }
  return Status::ok();
}

bool SegmentCommunicator::all_have_posted(const SegmentOperation& operation) const {
  for (size_t member = 0; member < operation.group->ranks.size(); ++member)
    if (post_of(operation, member) == nullptr) return false;
  return true;
}

bool SegmentCommunicator::all_have_finished(const SegmentOperation& operation) const {
  for (size_t member = 0; member < operation.group->ranks.size(); ++member)
    if (!has_finished(operation, member)) return false;
  return true;
}

Status SegmentCommunicator::run(SegmentOperation& operation) {
  ALTIPLANO_RETURN_IF_ERROR(check_calls_agree(operation));
  SegmentGroup& group = *operation.group;
  const auto num_ranks = static_cast<int>(group.ranks.size());
  if (fits_in_post(operation.call, num_ranks)) {
    for (size_t member = 0; member < group.ranks.size(); ++member)
      group.meetings.in[member] = post_of(operation, member)->payload.data();
    run_alone(operation.call, group.index, group.meetings.in);
    complete(operation);
    return Status::ok();
  }
  if (are_reachable(operation)) return run_in_place(operation);
  operation.phase = CollectivePhase::kMessages;
  operation.schedule = collective_schedule(operation.call, num_ranks, group.index, attachment_.shape.frame_bytes);
  return next_stage(operation);
}

/// All members see the same posts, so that all decide alike.
bool SegmentCommunicator::are_reachable(const SegmentOperation& operation) const {
  for (size_t member = 0; member < operation.group->ranks.size(); ++member) {
    const MeetingPost& post = *post_of(operation, member);
    if (!name_in_post(post, false).is_reachable() || !name_in_post(post, true).is_reachable()) return false;
  }
  return true;
}

Status SegmentCommunicator::run_in_place(SegmentOperation& operation) {
  SegmentGroup& group = *operation.group;
  for (size_t member = 0; member < group.ranks.size(); ++member) {
    const MeetingPost& post = *post_of(operation, member);
    auto in = reachable_.reach(group.ranks[member], name_in_post(post, false));
    auto out = reachable_.reach(group.ranks[member], name_in_post(post, true));
    if (!in.is_ok() || !out.is_ok())
      return fail_world(StatusCode::kRuntimeFailure,
                        fmt::format("{} cannot reach memory of {} in {}: {}", who(rank_), who(group.ranks[member]),
                                    describe(operation), (in.is_ok() ? out : in).status().message()));
    group.meetings.in[member] = *in;
    group.meetings.out[member] = *out;
  }
  run_part(operation.call, group.index, group.meetings.in, group.meetings.out);
  group.meetings.finish(operation.lane(), operation.sequence_on_lane);
  ring_members(group);
  operation.phase = CollectivePhase::kFinishing;
  return Status::ok();
}

Status SegmentCommunicator::check_calls_agree(const SegmentOperation& operation) {
  const CallRecord mine = record_of(operation.call);
  for (size_t member = 0; member < operation.group->ranks.size(); ++member)
    if (const CallRecord theirs = record_of(*post_of(operation, member)); !(theirs == mine))
      return calls_differ(operation, member, theirs);
  return Status::ok();
}

Status SegmentCommunicator::next_stage(SegmentOperation& operation) {
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
    transfer.tag = operation.sequence;
    transfer.data = message.data;
    transfer.bytes = message.bytes;
  }
  ++operation.next_stage;
  return post(operation);
}

void SegmentCommunicator::complete(const SegmentOperation& operation) {
  lanes_[operation.lane()].pop_front();
  operations_.end(operation.id);
}

void SegmentCommunicator::ring_members(const SegmentGroup& group) {
  for (int member : group.ranks) ring(member);
}

}  // namespace altiplano
