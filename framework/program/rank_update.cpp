// RankLowering: the block U. Gradients to the optimizer's layout, totals and the step's decision, optimizer, parameters
// back to their layout.
#include <algorithm>
#include <deque>

#include "framework/program/rank_lowering.hpp"

namespace altiplano {

/// Stages that use a parameter away from its home reduce their gradient among themselves and send it home, where it is
/// added in stage order.
void RankLowering::exchange_tied_gradients(BlockBuilder& builder, std::map<ValueId, BufferId>& reduced) {
  for (const StageTransfer& transfer : context_.gradients) {
    if (transfer.from == program_.stage) send_pieces(builder, transfer, reduced.at(transfer.value), TagKind::kTied);
    if (transfer.to != program_.stage) continue;
    if (!reduced.count(transfer.value)) {
      std::string name = graph_.value(transfer.value).name + ".gradient";
      Box whole = local_box(transfer.to_spec, transfer.shape, mesh(), mesh_index_);
      reduced[transfer.value] = builder.work_buffer(name, transfer.dtype, whole.extents);
      builder.emit({FillInstruction{reduced[transfer.value]}, StreamKind::kCompute, {}, "clear " + name});
    }
    std::vector<Arrival> arrivals;
    post_receives(builder, transfer, TagKind::kTied, reduced.at(transfer.value), arrivals);
    for (const Arrival& arrival : arrivals) place(builder, arrival, true);
  }
}

void RankLowering::write_update() {
  Block& block = open_block("U", ActionKind::kUpdate, MicrobatchVariant::kAny);
  BlockBuilder builder(context_, program_, mesh_index_, block);
  define_parameters(builder);

  std::deque<ReshardItem> items;  // stable addresses
  std::vector<ReshardItem*> pointers;
  for (const ParameterTraining& p : context_.training.parameters) {
    if (!accumulators_.count(p.parameter)) continue;
    const Value& gradient = graph_.value(p.gradient);
    items.push_back({graph_.value(p.parameter).name + ".gradient", gradient.shape, gradient.dtype,
                     accumulator_specs_[p.parameter], context_.reduced_on(p.parameter, program_.stage),
                     accumulators_[p.parameter], BufferId(), true});
    pointers.push_back(&items.back());
  }
  // In the accumulators' order, so that buckets are side by side. By id, not by offset: empty blocks share an offset,
  // and all ranks need one order.
  std::sort(pointers.begin(), pointers.end(), [](const ReshardItem* a, const ReshardItem* b) { return a->in < b->in; });
  builder.reshard(pointers);
  std::map<ValueId, BufferId> reduced;
  size_t next = 0;
  for (const ParameterTraining& p : context_.training.parameters)
    if (accumulators_.count(p.parameter)) reduced[p.parameter] = items[next++].out;
  exchange_tied_gradients(builder, reduced);

  for (const ParameterTraining& p : context_.training.parameters) {
    if (context_.assignment.home[p.parameter.index()] != program_.stage) continue;
    builder.define(p.gradient, normalized(stored(p.gradient), mesh()), reduced.at(p.parameter));
    const Op& norm = graph_.op(graph_.value(p.norm_squared).producer);
    BufferId out = builder.work_buffer(graph_.value(p.norm_squared).name, DType::kF64, {});
    emit_compute(builder, norm, {reduced.at(p.parameter)}, {out});
    builder.define(p.norm_squared, stored(p.norm_squared), out);
    add_totals(builder, p.norm_squared, Total::kNormSquared);
  }
  reduce_totals(builder);
  update_parameters(builder, reduced);
  send_tied_parameters(builder);
  Status status = close_block(builder, block);
  if (status_.is_ok()) status_ = status;
}

void RankLowering::update_parameters(BlockBuilder& builder, const std::map<ValueId, BufferId>& reduced) {
  std::deque<ReshardItem> gathers;
  std::vector<ReshardItem*> pointers;
  for (const ParameterTraining& p : context_.training.parameters) {
    if (context_.assignment.home[p.parameter.index()] != program_.stage) continue;
    const Value& parameter = graph_.value(p.parameter);
    ShardingSpec spec = normalized(context_.assignment.optimizer[p.parameter.index()], mesh());
    ShardingSpec storage = normalized(context_.stored_on(p.parameter, program_.stage), mesh());
    std::map<ValueId, BufferId> at;
    at[p.gradient] = reduced.at(p.parameter);
    for (ValueId state : p.states) at[state] = state_buffers_.at(state);
    for (OpId id : p.update_ops) {
      const Op& op = graph_.op(id);
      const auto& aliases = OpTable::instance().get(op.kind).aliases;
      std::vector<BufferId> inputs, outputs;
      for (ValueId input : op.inputs) {
        if (input == p.parameter && !at.count(input)) at[input] = builder.version(input, storage, spec);
        inputs.push_back(at.at(input));
      }
      for (size_t i = 0; i < op.outputs.size(); ++i) {
        const Value& value = graph_.value(op.outputs[i]);
        bool is_final = op.outputs[i] == p.updated && spec == storage;
        BufferId buffer;
        if (i < aliases.size() && aliases[i] >= 0)
          buffer = inputs[static_cast<size_t>(aliases[i])];
        else if (is_final)
          buffer = parameter_buffers_.at(p.parameter);
        else
          buffer =
              builder.work_buffer(value.name, value.dtype, local_box(spec, value.shape, mesh(), mesh_index_).extents);
        outputs.push_back(buffer);
        at[op.outputs[i]] = buffer;
      }
      emit_compute(builder, op, inputs, outputs);
    }
    if (at.at(p.updated) == parameter_buffers_.at(p.parameter)) continue;
    gathers.push_back({parameter.name, parameter.shape, parameter.dtype, spec, storage, at.at(p.updated),
                       parameter_buffers_.at(p.parameter), false});
    pointers.push_back(&gathers.back());
  }
  builder.reshard(pointers);
}

/// Home sends the new parameter to the stages that hold copies, bit by bit the same.
void RankLowering::send_tied_parameters(BlockBuilder& builder) {
  for (const StageTransfer& transfer : context_.parameters) {
    if (transfer.from == program_.stage)
      send_pieces(builder, transfer, parameter_buffers_.at(transfer.value), TagKind::kTied);
    if (transfer.to != program_.stage) continue;
    std::vector<Arrival> arrivals;
    post_receives(builder, transfer, TagKind::kTied, parameter_buffers_.at(transfer.value), arrivals);
    for (const Arrival& arrival : arrivals) place(builder, arrival, false);
  }
}

}  // namespace altiplano
