#include "framework/program/rank_kinds.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace altiplano {

namespace {

using Layout = std::pair<ShardingSpec, Shape>;

/// All that lies on the stage, in every way in which it lies there, once each.
std::set<Layout> layouts_on(const LoweringContext& context, StageId stage) {
  const ShardingAssignment& assignment = context.assignment;
  const MeshShape& mesh = context.mesh(stage);
  std::set<Layout> layouts;
  auto add = [&](const ShardingSpec& spec, const Shape& shape) {
    if (ShardingSpec here = normalized(spec, mesh); !here.split_axes().is_empty())
      layouts.emplace(here.resolved(), shape);
  };
  for (const Parameter& p : context.graph.parameters()) {
    const auto& users = assignment.users[p.value.index()];
    if (assignment.home[p.value.index()] != stage && std::ranges::find(users, stage) == users.end()) continue;
    const Shape& shape = context.graph.value(p.value).shape;
    add(context.stored_on(p.value, stage), shape);
    add(context.reduced_on(p.value, stage), shape);
    add(assignment.optimizer[p.value.index()], shape);
  }
  for (const Op& op : context.graph.ops()) {
    if (assignment.stage_of_op[op.id.index()] != stage || op.phase == Phase::kUpdate) continue;
    const Strategy& strategy = assignment.strategies[op.id.index()];
    for (size_t i = 0; i < op.inputs.size(); ++i) add(strategy.inputs[i], context.block_shape(op.inputs[i]));
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      add(strategy.outputs[i], context.block_shape(op.outputs[i]));
      add(assignment.stored[op.outputs[i].index()], context.block_shape(op.outputs[i]));
    }
  }
  return layouts;
}

/// What each place sends and receives of what crosses stages, piece by piece.
void add_messages(const LoweringContext& context, StageId stage, std::vector<std::vector<int64_t>>& signatures) {
  std::map<int, size_t> place_of;
  for (size_t place = 0; place < signatures.size(); ++place)
    place_of[context.rank_at(stage, static_cast<int>(place)).value] = place;
  int64_t number = 0;
  for (const auto* list : {&context.forward, &context.backward, &context.gradients, &context.parameters})
    for (const StageTransfer& transfer : *list) {
      ++number;
      if (transfer.from != stage && transfer.to != stage) continue;
      for (const BoxTransfer& piece : transfer.pieces) {
        const int own = transfer.from == stage ? piece.source : piece.destination;
        std::vector<int64_t>& signature = signatures[place_of.at(own)];
        signature.push_back(number);
        signature.insert(signature.end(), piece.box.extents.begin(), piece.box.extents.end());
      }
    }
}

/// By place, numbered by the first place that has the signature.
std::vector<size_t> classes_of(const std::vector<std::vector<int64_t>>& signatures) {
  std::map<std::vector<int64_t>, size_t> known;
  std::vector<size_t> classes;
  for (const auto& signature : signatures) classes.push_back(known.emplace(signature, known.size()).first->second);
  return classes;
}

/// What is packed for a collective depends on the pieces of all members: of which class they are, in order.
void add_groups(const MeshShape& mesh, const std::vector<size_t>& classes,
                std::vector<std::vector<int64_t>>& signatures) {
  std::map<std::vector<size_t>, int64_t> known;
  const AxisSet all = mesh.active();
  for (AxisSet axes : {all & AxisSet{Axis::kData}, all & AxisSet{Axis::kTensor}, all}) {
    if (axes.is_empty()) continue;
    std::vector<bool> is_done(signatures.size(), false);
    for (size_t place = 0; place < signatures.size(); ++place) {
      if (is_done[place]) continue;
      const std::vector<int> members = mesh.group(static_cast<int>(place), axes);
      std::vector<size_t> of_group;
      for (int member : members) of_group.push_back(classes[static_cast<size_t>(member)]);
      const int64_t number = known.emplace(std::move(of_group), static_cast<int64_t>(known.size())).first->second;
      for (int member : members) {
        is_done[static_cast<size_t>(member)] = true;
        signatures[static_cast<size_t>(member)].push_back(number);
      }
    }
  }
}

}  // namespace

std::vector<std::vector<int>> places_by_kind(const LoweringContext& context, StageId stage) {
  const MeshShape& mesh = context.mesh(stage);
  std::vector<std::vector<int64_t>> signatures(static_cast<size_t>(mesh.num_devices()));
  for (size_t place = 0; place < signatures.size(); ++place)
    for (int coordinate : mesh.coordinates(static_cast<int>(place))) signatures[place].push_back(coordinate == 0);
  for (const auto& [spec, shape] : layouts_on(context, stage)) {
    const Box first = local_box(spec, shape, mesh, 0), last = local_box(spec, shape, mesh, mesh.num_devices() - 1);
    if (first.extents == last.extents) continue;  // pieces only ever get smaller: all are alike
    for (size_t place = 0; place < signatures.size(); ++place) {
      const Box box = local_box(spec, shape, mesh, static_cast<int>(place));
      signatures[place].insert(signatures[place].end(), box.extents.begin(), box.extents.end());
    }
  }
  add_messages(context, stage, signatures);
  add_groups(mesh, classes_of(signatures), signatures);
  const std::vector<size_t> classes = classes_of(signatures);
  std::vector<std::vector<int>> kinds;
  for (size_t place = 0; place < classes.size(); ++place) {
    if (classes[place] == kinds.size()) kinds.emplace_back();
    kinds[classes[place]].push_back(static_cast<int>(place));
  }
  return kinds;
}

}  // namespace altiplano
