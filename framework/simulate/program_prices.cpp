#include "framework/simulate/program_prices.hpp"

namespace altiplano {

OpWork work_of(const Program& program, const ComputeInstruction& compute) {
  std::vector<ValueType> inputs, outputs;
  for (const Operand& o : compute.inputs)
    inputs.push_back({program.buffer(o.buffer).extents, program.buffer(o.buffer).dtype});
  for (const Operand& o : compute.outputs)
    outputs.push_back({program.buffer(o.buffer).extents, program.buffer(o.buffer).dtype});
  return op_work(compute.kind, compute.attributes, inputs, outputs);
}

Bytes bytes_of(const Program& program, const CopyInstruction& copy) {
  return Bytes(2 * copy.boxes.part.num_elements() * size_of(program.buffer(copy.source).dtype));
}

Bytes bytes_of(const Program& program, const CollectiveInstruction& call) {
  int64_t bytes = call.count * size_of(program.buffer(call.in).dtype);
  if (call.kind != CollectiveKind::kAllReduce && call.kind != CollectiveKind::kBroadcast)
    bytes *= static_cast<int64_t>(program.groups[call.group.index()].ranks.size());
  return Bytes(bytes);
}

WorkTime work_time(const Program& program, const Instruction& instruction, const Cluster& cluster) {
  if (const auto* compute = std::get_if<ComputeInstruction>(&instruction.what))
    return compute_cost(work_of(program, *compute), cluster.device);
  if (const auto* copy = std::get_if<CopyInstruction>(&instruction.what))
    return copy_cost(bytes_of(program, *copy), cluster.device);
  return {};
}

const GroupShape& GroupShapes::of(const ProcessGroup& group) {
  const auto known = known_.find(group.id);
  if (known != known_.end()) return known->second;
  return known_.emplace(group.id, group_shape(cluster_, devices_of(group))).first->second;
}

Seconds collective_time(const Program& program, const CollectiveInstruction& call, GroupShapes& shapes) {
  return collective_cost(call.kind, bytes_of(program, call), shapes.of(program.groups[call.group.index()])).time;
}

std::vector<int> devices_of(const ProcessGroup& group) {
  std::vector<int> devices;
  for (RankId rank : group.ranks) devices.push_back(rank.value);
  return devices;
}

Seconds message_time(const Program& program, const SendInstruction& send, const Cluster& cluster) {
  return transfer_cost(Bytes(program.buffer(send.buffer).bytes), cluster, program.rank.value, send.peer.value);
}

}  // namespace altiplano
