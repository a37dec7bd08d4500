#include "framework/program/rank_lowering.hpp"

#include <algorithm>
#include <set>

#include "framework/program/arena.hpp"

namespace altiplano {

RankLowering::RankLowering(const LoweringContext& context, StageId stage, int mesh_index)
    : context_(context), graph_(context.graph), mesh_index_(mesh_index), rank_(context.rank_at(stage, mesh_index)) {
  program_.rank = rank_;
  program_.stage = stage;
  program_.groups = context.groups;
  program_.microbatch_samples = context.plan.microbatch;
  int replica = mesh().coordinates(mesh_index)[static_cast<size_t>(Axis::kData)];
  program_.replica_first_sample = replica * context.plan.microbatch * context.plan.num_microbatches;
  for (const ParameterTraining& p : context.training.parameters)
    for (ValueId id : p.contributions) parameter_of_contribution_[id] = p.parameter;
}

Result<Program> RankLowering::run() {
  make_parameters();
  make_accumulators();
  make_optimizer_state();
  make_send_buffers();
  make_stash();
  write_forward(ActionKind::kForward);
  write_backward(MicrobatchVariant::kFirst);
  if (context_.plan.num_microbatches > 1) write_backward(MicrobatchVariant::kLater);
  write_update();
  write_forward(ActionKind::kValidate);
  write_reduce();
  program_.work_bytes = work_bytes_;
  fill_step();
  if (!status_.is_ok()) return status_;
  return std::move(program_);
}

bool RankLowering::is_first_along(const ShardingSpec& spec) const {
  // One replica counts: coordinate 0 along every axis over which the value is the same everywhere.
  auto coordinates = mesh().coordinates(mesh_index_);
  for (Axis axis : kAllAxes)
    if (!spec.split_axes().contains(axis) && !spec.partial.contains(axis) &&
        coordinates[static_cast<size_t>(axis)] != 0)
      return false;
  return true;
}

// ---- persistent memory ----

BufferId RankLowering::persistent(const std::string& name, DType dtype, const std::vector<int64_t>& extents) {
  Buffer buffer;
  buffer.id = BufferId(static_cast<int64_t>(program_.buffers.size()));
  buffer.name = name;
  buffer.arena = Arena::kPersistent;
  buffer.dtype = dtype;
  buffer.extents = extents;
  buffer.bytes = num_elements(extents) * size_of(dtype);
  buffer.offset = program_.persistent_bytes;
  program_.persistent_bytes += align_up(buffer.bytes);
  program_.buffers.push_back(buffer);
  return buffer.id;
}

void RankLowering::add_tensor(const std::string& name, TensorRole role, BufferId buffer, const Shape& global,
                              const ShardingSpec& spec, bool is_home, Initializer init) {
  program_.tensors.push_back({name, role, buffer, global, local_box(spec, global, mesh(), mesh_index_),
                              is_home && is_first_along(spec), init});
}

void RankLowering::make_parameters() {
  for (const Parameter& p : graph_.parameters()) {
    const auto& users = context_.assignment.users[p.value.index()];
    StageId home = context_.assignment.home[p.value.index()];
    bool is_home = home == program_.stage;
    if (!is_home && std::find(users.begin(), users.end(), program_.stage) == users.end()) continue;
    const Value& value = graph_.value(p.value);
    ShardingSpec spec = context_.stored_on(p.value, program_.stage);
    BufferId buffer = persistent(value.name, value.dtype, local_box(spec, value.shape, mesh(), mesh_index_).extents);
    parameter_buffers_[p.value] = buffer;
    add_tensor(value.name, is_home ? TensorRole::kParameter : TensorRole::kParameterCopy, buffer, value.shape, spec,
               is_home, p.init);
  }
}

/// Contributions add up as they are produced and are reduced once a step; from ZeRO stage 2 on each is reduced at once.
ShardingSpec RankLowering::accumulator_spec(const ParameterTraining& training, ValueId contribution) const {
  return reduces_at_once() ? context_.reduced_on(training.parameter, program_.stage)
                           : context_.assignment.produced[contribution.index()];
}

void RankLowering::make_accumulators() {
  // Those that are reduced over the same axes lie side by side: one bucket.
  struct Entry {
    std::string key;
    const ParameterTraining* training;
    ValueId parameter, contribution;
    DType dtype;
  };
  std::vector<Entry> entries;
  for (const ParameterTraining& p : context_.training.parameters) {
    for (ValueId id : p.contributions) {
      if (context_.assignment.home[id.index()] != program_.stage) continue;
      const AxisSet partial = accumulator_spec(p, id).partial;
      std::string key;
      for (Axis axis : kAllAxes) key += partial.contains(axis) ? '1' : '0';
      entries.push_back({key, &p, p.parameter, id, graph_.value(p.gradient).dtype});
      break;
    }
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
  int bucket = -1;
  std::string bucket_key = "none";
  for (const Entry& entry : entries) {
    if (entry.key != bucket_key) ++bucket;
    bucket_key = entry.key;
    const Value& value = graph_.value(entry.parameter);
    const ShardingSpec spec = accumulator_spec(*entry.training, entry.contribution);
    BufferId buffer =
        persistent(value.name + ".gradient", entry.dtype, local_box(spec, value.shape, mesh(), mesh_index_).extents);
    program_.buffers[buffer.index()].bucket = bucket;
    accumulators_[entry.parameter] = buffer;
    accumulator_specs_[entry.parameter] = spec;
    add_tensor(value.name + ".gradient", TensorRole::kGradient, buffer, value.shape, spec.resolved(), false);
  }
  totals_ = persistent("totals", DType::kF64, {kNumTotals});
  add_tensor("totals", TensorRole::kTotals, totals_, {kNumTotals}, ShardingSpec::replicated(1), false);
}

void RankLowering::make_optimizer_state() {
  for (const ParameterTraining& p : context_.training.parameters) {
    if (context_.assignment.home[p.parameter.index()] != program_.stage) continue;
    const ShardingSpec& spec = context_.assignment.optimizer[p.parameter.index()];
    for (ValueId id : p.states) {
      const Value& state = graph_.value(id);
      BufferId buffer = persistent(state.name, state.dtype, local_box(spec, state.shape, mesh(), mesh_index_).extents);
      state_buffers_[id] = buffer;
      bool is_master = state.name == graph_.value(p.parameter).name + ".master";
      add_tensor(state.name, is_master ? TensorRole::kMaster : TensorRole::kOptimizerState, buffer, state.shape, spec,
                 true, is_master ? graph_.find_parameter(p.parameter)->init : Initializer{});
    }
  }
}

void RankLowering::make_stash() {
  std::set<ValueId> present;  // forward values that exist on this stage
  for (ValueId id : context_.training.inputs) present.insert(id);
  for (const Op& op : graph_.ops())
    if (op.phase == Phase::kForward && context_.assignment.stage_of_op[op.id.index()] == program_.stage)
      present.insert(op.outputs.begin(), op.outputs.end());
  for (const StageTransfer& transfer : context_.forward)
    if (transfer.to == program_.stage) present.insert(transfer.value);
  for (ValueId id : present) {
    if (!context_.is_needed_by_backward(id, program_.stage)) continue;
    const Value& value = graph_.value(id);
    Buffer buffer;
    buffer.id = BufferId(static_cast<int64_t>(program_.buffers.size()));
    buffer.name = value.name;
    buffer.arena = Arena::kStash;
    buffer.dtype = value.dtype;
    buffer.extents = local_box(normalized(stored(id), mesh()), context_.block_shape(id), mesh(), mesh_index_).extents;
    buffer.bytes = num_elements(buffer.extents) * size_of(buffer.dtype);
    buffer.offset = program_.stash_slot_bytes;
    program_.stash_slot_bytes += align_up(buffer.bytes);
    program_.buffers.push_back(buffer);
    stash_buffers_[id] = buffer.id;
  }
}

// ---- timetable ----

void RankLowering::fill_step() {
  auto block_of = [&](ActionKind kind, MicrobatchVariant variant) {
    for (const Block& block : program_.blocks)
      if (block.kind == kind && block.variant == variant) return block.id;
    ALTIPLANO_ASSERT(false, "no block {} {}", letter_of(kind), to_string(variant));
  };
  std::vector<int> free_slots;
  std::map<int, int> slot_of;
  bool is_first = true;
  for (const Action& action : context_.timetable.workers[program_.stage.index()]) {
    if (action.kind == ActionKind::kForward) {
      if (free_slots.empty()) free_slots.push_back(program_.num_stash_slots++);
      auto lowest = std::min_element(free_slots.begin(), free_slots.end());
      slot_of[action.microbatch] = *lowest;
      free_slots.erase(lowest);
      program_.step.push_back(
          {action, block_of(ActionKind::kForward, MicrobatchVariant::kAny), slot_of[action.microbatch]});
    } else {
      program_.step.push_back(
          {action, block_of(ActionKind::kBackward, is_first ? MicrobatchVariant::kFirst : MicrobatchVariant::kLater),
           slot_of[action.microbatch]});
      free_slots.push_back(slot_of[action.microbatch]);
      is_first = false;
    }
  }
  program_.step.push_back({{ActionKind::kUpdate, 0, 0}, block_of(ActionKind::kUpdate, MicrobatchVariant::kAny), -1});
  for (int m = 0; m < context_.plan.num_microbatches; ++m)
    program_.validation.push_back(
        {{ActionKind::kValidate, m, 0}, block_of(ActionKind::kValidate, MicrobatchVariant::kAny), -1});
  program_.validation.push_back(
      {{ActionKind::kReduce, 0, 0}, block_of(ActionKind::kReduce, MicrobatchVariant::kAny), -1});
}

}  // namespace altiplano
