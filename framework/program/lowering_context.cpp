#include "framework/program/lowering_context.hpp"

#include <algorithm>
#include <set>

namespace altiplano {

LoweringContext::LoweringContext(const TrainingGraph& training_graph, const Plan& p, const Timetable& t,
                                 const Binding& b, ShardingAssignment a, const LoweringOptions& o)
    : training(training_graph),
      graph(training_graph.graph),
      plan(p),
      timetable(t),
      binding(b),
      assignment(std::move(a)),
      options(o) {
  find_groups();
  find_stashed();
  find_transfers();
}

RankId LoweringContext::rank_at(StageId stage, int mesh_index) const {
  return binding.rank_of_slot[plan.stages[stage.index()].slots[static_cast<size_t>(mesh_index)].index()];
}

Shape LoweringContext::block_shape(ValueId id) const {
  Shape shape = graph.value(id).shape;
  int batch = assignment.facts->batch_dim[id.index()];
  if (batch >= 0) shape[static_cast<size_t>(batch)] = plan.microbatch * plan.data_degree();
  return shape;
}

ShardingSpec LoweringContext::stored_on(ValueId parameter, StageId stage) const {
  return parameter_storage(assignment.parameter[parameter.index()], graph.value(parameter).shape, mesh(stage),
                           plan.stages[stage.index()].zero);
}

ShardingSpec LoweringContext::reduced_on(ValueId parameter, StageId stage) const {
  return optimizer_storage(assignment.parameter[parameter.index()], graph.value(parameter).shape, mesh(stage),
                           plan.stages[stage.index()].zero);
}

std::vector<StageId> LoweringContext::contributing_stages(const ParameterTraining& parameter) const {
  std::set<StageId> stages;
  for (ValueId id : parameter.contributions) stages.insert(assignment.home[id.index()]);
  return {stages.begin(), stages.end()};
}

GroupId LoweringContext::find_group(const std::vector<RankId>& ranks) const {
  const auto found = group_of_.find(ranks);
  ALTIPLANO_ASSERT(found != group_of_.end(), "no process group of these {} ranks", ranks.size());
  return found->second;
}

namespace {

/// Coordinate 0 along all of these axes.
bool is_first_of_group(const MeshShape& mesh, int index, AxisSet axes) {
  const auto coordinates = mesh.coordinates(index);
  return std::ranges::all_of(
      kAllAxes, [&](Axis axis) { return !axes.contains(axis) || coordinates[static_cast<size_t>(axis)] == 0; });
}

}  // namespace

void LoweringContext::find_groups() {
  auto add = [&](const std::string& name, std::vector<RankId> ranks) {
    const GroupId id(static_cast<int64_t>(groups.size()));
    if (group_of_.emplace(ranks, id).second) groups.push_back({id, name, std::move(ranks)});
  };
  std::vector<RankId> world;
  for (int r = 0; r < plan.num_slots(); ++r) world.emplace_back(r);
  add("world", world);
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const MeshShape& m = plan.stages[s].mesh;
    std::vector<std::pair<std::string, AxisSet>> sets = {
        {"data", {Axis::kData}}, {"tensor", {Axis::kTensor}}, {"data+tensor", {Axis::kData, Axis::kTensor}}};
    for (const auto& [name, axes] : sets) {
      int number = 0;
      for (int index = 0; index < m.num_devices(); ++index) {
        if (!is_first_of_group(m, index, axes)) continue;
        std::vector<int> members = m.group(index, axes);
        if (members.size() < 2) continue;
        std::vector<RankId> ranks;
        for (int member : members) ranks.push_back(rank_at(StageId(static_cast<int64_t>(s)), member));
        add(fmt::format("{}.{}/{}", plan.stages[s].name, name, number++), std::move(ranks));
      }
    }
  }
}

void LoweringContext::find_stashed() {
  stashed_.assign(plan.stages.size(), std::vector<bool>(graph.values().size(), false));
  for (const Op& op : graph.ops()) {
    if (op.phase != Phase::kBackward) continue;
    for (ValueId id : op.inputs) {
      const Value& value = graph.value(id);
      bool is_forward =
          value.producer.is_valid() ? graph.op(value.producer).phase == Phase::kForward : value.role == Role::kInput;
      if (is_forward) stashed_[assignment.stage_of_op[op.id.index()].index()][id.index()] = true;
    }
  }
}

StageTransfer LoweringContext::make_transfer(ValueId value, StageId from, ShardingSpec from_spec, StageId to,
                                             ShardingSpec to_spec, const Shape& shape, DType dtype) {
  std::vector<HeldBox> sources, destinations;
  for (int i = 0; i < mesh(from).num_devices(); ++i)
    sources.push_back({rank_at(from, i).value, local_box(from_spec, shape, mesh(from), i)});
  for (int i = 0; i < mesh(to).num_devices(); ++i)
    destinations.push_back({rank_at(to, i).value, local_box(to_spec, shape, mesh(to), i)});
  StageTransfer transfer{
      value,    from, to, std::move(from_spec), std::move(to_spec), shape, dtype, plan_transfer(sources, destinations),
      next_tag_};
  next_tag_ += transfer.pieces.size();
  return transfer;
}

void LoweringContext::find_transfers() {
  for (const Value& value : graph.values()) {
    if (!value.producer.is_valid() || graph.op(value.producer).phase == Phase::kUpdate) continue;
    StageId home = assignment.home[value.id.index()];
    for (StageId user : assignment.users[value.id.index()]) {
      if (user == home) continue;
      const ShardingSpec& spec = assignment.stored[value.id.index()];
      auto& list = graph.op(value.producer).phase == Phase::kForward ? forward : backward;
      list.push_back(
          make_transfer(value.id, home, spec, user, normalized(spec, mesh(user)), block_shape(value.id), value.dtype));
    }
  }
  for (const ParameterTraining& p : training.parameters) {
    StageId home = assignment.home[p.parameter.index()];
    const Value& parameter = graph.value(p.parameter);
    for (StageId stage : contributing_stages(p))
      if (stage != home)
        gradients.push_back(make_transfer(p.parameter, stage, reduced_on(p.parameter, stage), home,
                                          assignment.optimizer[p.parameter.index()], parameter.shape,
                                          graph.value(p.gradient).dtype));
    for (StageId stage : assignment.users[p.parameter.index()])
      if (stage != home)
        parameters.push_back(make_transfer(p.parameter, home, stored_on(p.parameter, home), stage,
                                           stored_on(p.parameter, stage), parameter.shape, parameter.dtype));
  }
}

}  // namespace altiplano
