#include "framework/program/block_builder.hpp"

#include <algorithm>

#include "framework/program/arena.hpp"

namespace altiplano {

BlockBuilder::BlockBuilder(const LoweringContext& context, Program& program, int mesh_index, Block& block)
    : context_(context),
      program_(program),
      mesh_(context.mesh(program.stage)),
      mesh_index_(mesh_index),
      block_(block),
      first_buffer_(program.buffers.size()) {}

BufferId BlockBuilder::work_buffer(const std::string& name, DType dtype, const std::vector<int64_t>& extents) {
  Buffer buffer;
  buffer.id = BufferId(static_cast<int64_t>(program_.buffers.size()));
  buffer.name = name;
  buffer.arena = Arena::kWork;
  buffer.dtype = dtype;
  buffer.extents = extents;
  buffer.bytes = num_elements(extents) * size_of(dtype);
  buffer.block = block_.id;
  program_.buffers.push_back(buffer);
  return buffer.id;
}

int BlockBuilder::emit(Instruction instruction) {
  int index = static_cast<int>(block_.instructions.size());
  for_each_buffer(instruction, [&](BufferId buffer, bool) {
    auto it = pending_.find(buffer);
    if (it == pending_.end()) return;
    int waited_for = it->second;
    instruction.after.push_back(waited_for);
    std::erase_if(pending_, [&](const auto& entry) { return entry.second == waited_for; });
  });
  std::sort(instruction.after.begin(), instruction.after.end());
  instruction.after.erase(std::unique(instruction.after.begin(), instruction.after.end()), instruction.after.end());
  bool is_asynchronous = std::holds_alternative<CollectiveInstruction>(instruction.what) ||
                         std::holds_alternative<RecvInstruction>(instruction.what);
  if (is_asynchronous) for_each_buffer(instruction, [&](BufferId buffer, bool) { pending_[buffer] = index; });
  block_.instructions.push_back(std::move(instruction));
  return index;
}

int BlockBuilder::copy(BufferId source, const Box& source_box, BufferId destination, const Box& destination_box,
                       const Box& part, bool add, const std::string& label, int64_t source_offset,
                       int64_t destination_offset) {
  CopyInstruction what{source, destination,   {source_box, destination_box, part},
                       add,    source_offset, destination_offset};
  return emit({what, StreamKind::kCompute, {}, label});
}

BufferId BlockBuilder::version(ValueId value, const ShardingSpec& stored, const ShardingSpec& spec, BufferId out) {
  ShardingSpec wanted = normalized(spec, mesh_);
  auto it = versions_.find({value, wanted});
  if (it != versions_.end() && (!out.is_valid() || out == it->second)) return it->second;
  auto source = versions_.find({value, normalized(stored, mesh_)});
  const Value& v = context_.graph.value(value);
  ALTIPLANO_ASSERT(source != versions_.end(), "block {} has no {} in {}", block_.name, v.name, stored.to_string());
  ReshardItem item{v.name, context_.block_shape(value), v.dtype, source->first.second, wanted, source->second, out,
                   false};
  reshard({&item});
  versions_[{value, wanted}] = item.out;
  return item.out;
}

int64_t BlockBuilder::finish() {
  std::vector<LiveRange> ranges(program_.buffers.size() - first_buffer_);
  std::vector<bool> seen(ranges.size(), false);
  auto touch = [&](BufferId id, int at) {
    if (id.index() < first_buffer_) return;
    LiveRange& range = ranges[id.index() - first_buffer_];
    range.first = seen[id.index() - first_buffer_] ? std::min(range.first, at) : at;
    range.last = std::max(range.last, at);
    seen[id.index() - first_buffer_] = true;
  };
  for (size_t i = 0; i < block_.instructions.size(); ++i) {
    const Instruction& instruction = block_.instructions[i];
    for_each_buffer(instruction, [&](BufferId id, bool) { touch(id, static_cast<int>(i)); });
    // What an asynchronous instruction touches lives until somebody waited for it.
    for (int before : instruction.after)
      for_each_buffer(block_.instructions[static_cast<size_t>(before)],
                      [&](BufferId id, bool) { touch(id, static_cast<int>(i)); });
  }
  for (const auto& [buffer, index] : pending_)
    for_each_buffer(block_.instructions[static_cast<size_t>(index)],
                    [&](BufferId id, bool) { touch(id, static_cast<int>(block_.instructions.size()) - 1); });
  for (size_t i = 0; i < ranges.size(); ++i) {
    const Buffer& buffer = program_.buffers[first_buffer_ + i];
    ranges[i].bytes = buffer.arena == Arena::kWork ? buffer.bytes : 0;  // buckets lie in the persistent arena
  }
  int64_t bytes = assign_offsets(ranges);
  for (size_t i = 0; i < ranges.size(); ++i) {
    Buffer& buffer = program_.buffers[first_buffer_ + i];
    if (buffer.arena != Arena::kWork) continue;
    buffer.offset = ranges[i].offset;
    buffer.first_use = ranges[i].first;
    buffer.last_use = ranges[i].last;
  }
  return bytes;
}

}  // namespace altiplano
