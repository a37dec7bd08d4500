// RankLowering: the blocks F, B, V and G.
#include <algorithm>
#include <deque>

#include "framework/program/rank_lowering.hpp"

namespace altiplano {

Block& RankLowering::open_block(const std::string& name, ActionKind kind, MicrobatchVariant variant) {
  Block block;
  block.id = BlockId(static_cast<int64_t>(program_.blocks.size()));
  block.name = name;
  block.kind = kind;
  block.variant = variant;
  program_.blocks.push_back(std::move(block));
  return program_.blocks.back();
}

Status RankLowering::close_block(BlockBuilder& builder, Block& block) {
  // Scratch of each kernel lives for that one instruction.
  if (context_.options.workspace) {
    for (Instruction& instruction : block.instructions) {
      auto* compute = std::get_if<ComputeInstruction>(&instruction.what);
      if (!compute) continue;
      ALTIPLANO_ASSIGN(int64_t bytes, context_.options.workspace(program_, *compute));
      if (bytes > 0)
        compute->workspace = builder.work_buffer("workspace " + instruction.label, DType::kI32, {(bytes + 3) / 4});
    }
  }
  work_bytes_ = std::max(work_bytes_, builder.finish());
  return Status::ok();
}

void RankLowering::define_parameters(BlockBuilder& builder) {
  for (const auto& [id, buffer] : parameter_buffers_)
    builder.define(id, normalized(context_.stored_on(id, program_.stage), mesh()), buffer);
}

Operand RankLowering::operand(ValueId id, BufferId buffer, const ShardingSpec& spec) const {
  const Value& value = graph_.value(id);
  int batch = context_.assignment.facts->batch_dim[id.index()];
  Box box = local_box(normalized(spec, mesh()), context_.block_shape(id), mesh(), mesh_index_);
  if (batch >= 0) {
    // In the block a replica's samples begin at its place among the replicas; another axis may split them further.
    int64_t& origin = box.origin[static_cast<size_t>(batch)];
    const int replica = mesh().coordinates(mesh_index_)[static_cast<size_t>(Axis::kData)];
    origin = program_.replica_first_sample + std::max<int64_t>(0, origin - replica * context_.plan.microbatch);
  }
  return {buffer, box.origin, value.shape, batch};
}

void RankLowering::emit_compute(BlockBuilder& builder, const Op& op, const std::vector<BufferId>& inputs,
                                const std::vector<BufferId>& outputs) {
  const Strategy& strategy = context_.assignment.strategies[op.id.index()];
  ComputeInstruction compute{op.kind, op.attributes, {}, {}, BufferId(), op.id};
  for (size_t i = 0; i < inputs.size(); ++i)
    compute.inputs.push_back(operand(op.inputs[i], inputs[i], strategy.inputs[i]));
  for (size_t i = 0; i < outputs.size(); ++i)
    compute.outputs.push_back(operand(op.outputs[i], outputs[i], strategy.outputs[i]));
  builder.emit({std::move(compute), StreamKind::kCompute, {}, op.name});
}

void RankLowering::feed_inputs(BlockBuilder& builder, bool stash) {
  for (ValueId id : context_.training.inputs) {
    const auto& users = context_.assignment.users[id.index()];
    if (std::find(users.begin(), users.end(), program_.stage) == users.end()) continue;
    const Value& value = graph_.value(id);
    ShardingSpec spec = normalized(stored(id), mesh());
    Box box = local_box(spec, context_.block_shape(id), mesh(), mesh_index_);
    BufferId buffer = stash && stash_buffers_.count(id) ? stash_buffers_[id]
                                                        : builder.work_buffer(value.name, value.dtype, box.extents);
    box.origin[0] = program_.replica_first_sample;
    builder.emit({FeedInstruction{id, buffer, box, 0}, StreamKind::kTransfer, {}, "feed " + value.name});
    builder.define(id, spec, buffer);
  }
}

void RankLowering::receive(BlockBuilder& builder, const std::vector<StageTransfer>& transfers, bool stash,
                           TagKind kind) {
  std::vector<Arrival> arrivals;
  for (const StageTransfer& transfer : transfers) {
    if (transfer.to != program_.stage) continue;
    Box whole = local_box(transfer.to_spec, transfer.shape, mesh(), mesh_index_);
    const Value& value = graph_.value(transfer.value);
    BufferId buffer = stash && stash_buffers_.count(transfer.value)
                          ? stash_buffers_[transfer.value]
                          : builder.work_buffer(value.name, transfer.dtype, whole.extents);
    post_receives(builder, transfer, kind, buffer, arrivals);
    builder.define(transfer.value, transfer.to_spec, buffer);
  }
  // All receives are posted before the first is waited for.
  for (const Arrival& arrival : arrivals) place(builder, arrival, false);
}

void RankLowering::send(BlockBuilder& builder, const std::vector<StageTransfer>& transfers, ValueId value,
                        TagKind kind) {
  for (const StageTransfer& transfer : transfers) {
    if (transfer.value != value || transfer.from != program_.stage) continue;
    send_pieces(builder, transfer, builder.version(value, transfer.from_spec, transfer.from_spec), kind);
  }
}

/// Whether this contribution is the one that assigns the accumulator in a step's first backward: the first of its
/// parameter in op order on this stage.
bool RankLowering::assigns_accumulator(ValueId contribution, MicrobatchVariant variant) const {
  if (variant != MicrobatchVariant::kFirst) return false;
  ValueId parameter = parameter_of_contribution_.at(contribution);
  for (const ParameterTraining& p : context_.training.parameters) {
    if (p.parameter != parameter) continue;
    for (ValueId id : p.contributions)
      if (context_.assignment.home[id.index()] == program_.stage &&
          graph_.value(id).producer < graph_.value(contribution).producer)
        return false;
  }
  return true;
}

void RankLowering::accumulate(BlockBuilder& builder, std::vector<Contribution>& contributions,
                              MicrobatchVariant variant) {
  std::deque<ReshardItem> items;  // stable addresses
  std::vector<ReshardItem*> pointers;
  for (const Contribution& c : contributions) {
    const Value& value = graph_.value(c.value);
    const ShardingSpec& from = context_.assignment.produced[c.value.index()];
    const ValueId parameter = parameter_of_contribution_.at(c.value);
    const DType dtype = program_.buffer(accumulators_.at(parameter)).dtype;
    items.push_back(
        {value.name, value.shape, dtype, from, accumulator_specs_.at(parameter), c.buffer, BufferId(), false});
    pointers.push_back(&items.back());
    if (dtype == value.dtype || from == items.back().to) continue;
    // Replicas' parts are summed as precisely as microbatches are.
    const Box whole = local_box(from, value.shape, mesh(), mesh_index_);
    items.back().in = builder.work_buffer(value.name, dtype, whole.extents);
    builder.copy(c.buffer, whole, items.back().in, whole, whole, false, "widen " + value.name);
  }
  builder.reshard(pointers);
  for (size_t i = 0; i < items.size(); ++i) {
    const ValueId id = contributions[i].value;
    const Box whole = local_box(items[i].to, items[i].shape, mesh(), mesh_index_);
    builder.copy(items[i].out, whole, accumulators_.at(parameter_of_contribution_.at(id)), whole, whole,
                 !assigns_accumulator(id, variant), "accumulate " + items[i].name);
  }
  contributions.clear();
}

/// Parameters that the ops do not use as they are stored, brought together into the specs of their uses.
std::vector<std::pair<ValueId, ShardingSpec>> RankLowering::gather_parameters(BlockBuilder& builder,
                                                                              std::span<const Op* const> ops) {
  std::deque<ReshardItem> items;
  std::vector<ReshardItem*> pointers;
  std::vector<std::pair<ValueId, ShardingSpec>> gathered;
  for (const Op* op : ops) {
    for (size_t i = 0; i < op->inputs.size(); ++i) {
      const Value& value = graph_.value(op->inputs[i]);
      if (value.role != Role::kParameter) continue;
      std::pair use(value.id, normalized(context_.assignment.strategies[op->id.index()].inputs[i], mesh()));
      if (builder.has(use.first, use.second) || std::ranges::find(gathered, use) != gathered.end()) continue;
      items.push_back({value.name, value.shape, value.dtype, context_.stored_on(value.id, program_.stage), use.second,
                       parameter_buffers_.at(value.id), BufferId(), false});
      pointers.push_back(&items.back());
      gathered.push_back(std::move(use));
    }
  }
  builder.reshard(pointers);
  for (size_t i = 0; i < items.size(); ++i) builder.define(gathered[i].first, gathered[i].second, items[i].out);
  return gathered;
}

/// Where an op writes: the stash or the accumulator directly where the layout is already theirs.
BufferId RankLowering::output_buffer(BlockBuilder& builder, ValueId id, bool stash, MicrobatchVariant variant) {
  const ShardingSpec& produced = context_.assignment.produced[id.index()];
  if (stash && stash_buffers_.count(id) && produced == stored(id)) return stash_buffers_[id];
  if (parameter_of_contribution_.count(id) && assigns_accumulator(id, variant)) {
    ValueId parameter = parameter_of_contribution_[id];
    if (produced == accumulator_specs_.at(parameter) &&
        program_.buffer(accumulators_.at(parameter)).dtype == graph_.value(id).dtype)
      return accumulators_.at(parameter);
  }
  const Value& value = graph_.value(id);
  return builder.work_buffer(value.name, value.dtype,
                             local_box(produced, context_.block_shape(id), mesh(), mesh_index_).extents);
}

void RankLowering::run_op(BlockBuilder& builder, const Op& op, bool stash, MicrobatchVariant variant,
                          std::vector<Contribution>& contributions) {
  const Strategy& strategy = context_.assignment.strategies[op.id.index()];
  std::vector<BufferId> inputs, outputs;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    ValueId id = op.inputs[i];
    ShardingSpec from = graph_.value(id).role == Role::kParameter ? context_.stored_on(id, program_.stage) : stored(id);
    inputs.push_back(builder.version(id, from, strategy.inputs[i]));
  }
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    ValueId id = op.outputs[i];
    outputs.push_back(output_buffer(builder, id, stash, variant));
    builder.define(id, context_.assignment.produced[id.index()], outputs.back());
  }
  emit_compute(builder, op, inputs, outputs);
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    ValueId id = op.outputs[i];
    const ShardingSpec& produced = context_.assignment.produced[id.index()];
    if (auto of = parameter_of_contribution_.find(id);
        of != parameter_of_contribution_.end() && outputs[i] != accumulators_.at(of->second))  // it wrote it there
      contributions.push_back({id, outputs[i]});
    if (!(produced == stored(id)))
      builder.version(id, produced, stored(id), stash && stash_buffers_.count(id) ? stash_buffers_[id] : BufferId());
  }
}

/// The stage's ops of one phase, layer by layer: what a layer reads of parameters that are not stored as they are used
/// is gathered once for all its ops and let go after the last; what it adds to gradients is reduced together.
void RankLowering::run_layers(BlockBuilder& builder, Phase phase, bool stash, MicrobatchVariant variant,
                              const std::vector<StageTransfer>& transfers, TagKind tag) {
  std::vector<const Op*> ops;
  for (const Op& op : graph_.ops())
    if (op.phase == phase && context_.assignment.stage_of_op[op.id.index()] == program_.stage) ops.push_back(&op);
  std::vector<Contribution> contributions;
  for (auto first = ops.begin(); first != ops.end();) {
    const auto end = std::find_if(first, ops.end(), [&](const Op* op) { return op->layer != (*first)->layer; });
    const auto gathered = gather_parameters(builder, {first, end});
    for (; first != end; ++first) {
      run_op(builder, **first, stash, variant, contributions);
      for (ValueId id : (*first)->outputs) send(builder, transfers, id, tag);
      if (!reduces_at_once()) accumulate(builder, contributions, variant);
    }
    accumulate(builder, contributions, variant);
    for (const auto& [parameter, spec] : gathered) builder.forget(parameter, spec);
  }
}

void RankLowering::add_totals(BlockBuilder& builder, ValueId scalar, Total total) {
  if (context_.assignment.home[scalar.index()] != program_.stage) return;
  const ShardingSpec& spec = stored(scalar);
  if (!is_first_along(spec)) return;
  BufferId buffer = builder.version(scalar, spec, spec);
  Box element{{static_cast<int64_t>(total)}, {1}};
  builder.copy(buffer, element, totals_, Box::whole({kNumTotals}), element, true, "total " + graph_.value(scalar).name);
}

void RankLowering::write_forward(ActionKind kind) {
  bool is_training = kind == ActionKind::kForward;
  Block& block = open_block(is_training ? "F" : "V", kind, MicrobatchVariant::kAny);
  BlockBuilder builder(context_, program_, mesh_index_, block);
  TagKind tag = is_training ? TagKind::kForward : TagKind::kValidate;
  define_parameters(builder);
  feed_inputs(builder, is_training);
  receive(builder, context_.forward, is_training, tag);
  run_layers(builder, Phase::kForward, is_training, MicrobatchVariant::kAny, context_.forward, tag);
  add_totals(builder, context_.training.loss_sum, Total::kLossSum);
  add_totals(builder, context_.training.token_count, Total::kTokenCount);
  if (!is_training && context_.options.fetch_logits &&
      context_.assignment.home[context_.training.logits.index()] == program_.stage) {
    ValueId logits = context_.training.logits;
    BufferId whole =
        builder.version(logits, stored(logits), ShardingSpec::replicated(graph_.value(logits).shape.size()));
    builder.emit({FetchInstruction{whole, FetchKind::kLogits}, StreamKind::kTransfer, {}, "fetch logits"});
  }
  Status status = close_block(builder, block);
  if (status_.is_ok()) status_ = status;
}

void RankLowering::write_backward(MicrobatchVariant variant) {
  Block& block = open_block(fmt::format("B.{}", to_string(variant)), ActionKind::kBackward, variant);
  BlockBuilder builder(context_, program_, mesh_index_, block);
  define_parameters(builder);
  for (const auto& [id, buffer] : stash_buffers_) builder.define(id, normalized(stored(id), mesh()), buffer);
  receive(builder, context_.backward, false, TagKind::kBackward);
  run_layers(builder, Phase::kBackward, false, variant, context_.backward, TagKind::kBackward);
  Status status = close_block(builder, block);
  if (status_.is_ok()) status_ = status;
}

/// Totals of all ranks, summed, to every host; the accumulating buffer starts again from zero.
void RankLowering::reduce_totals(BlockBuilder& builder) {
  BufferId sum = builder.work_buffer("totals of all ranks", DType::kF64, {kNumTotals});
  CollectiveInstruction what{CollectiveKind::kAllReduce, ReduceKind::kSum, GroupId(0), totals_, sum, kNumTotals};
  builder.emit({what, StreamKind::kCollective, {}, "all_reduce totals"});
  builder.emit({FillInstruction{totals_}, StreamKind::kCompute, {}, "clear totals"});
  builder.emit({FetchInstruction{sum, FetchKind::kTotals}, StreamKind::kTransfer, {}, "fetch totals"});
}

void RankLowering::write_reduce() {
  Block& block = open_block("G", ActionKind::kReduce, MicrobatchVariant::kAny);
  BlockBuilder builder(context_, program_, mesh_index_, block);
  reduce_totals(builder);
  Status status = close_block(builder, block);
  if (status_.is_ok()) status_ = status;
}

}  // namespace altiplano
