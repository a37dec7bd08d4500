#include "framework/sharding/reshard.hpp"

#include <algorithm>
#include <map>
#include <queue>

#include "framework/base/text.hpp"

namespace altiplano {

const char* to_string(ReshardKind kind) {
  switch (kind) {
    case ReshardKind::kSlice:
      return "slice";
    case ReshardKind::kAllGather:
      return "all_gather";
    case ReshardKind::kAllReduce:
      return "all_reduce";
    case ReshardKind::kReduceScatter:
      return "reduce_scatter";
    case ReshardKind::kAllToAll:
      return "all_to_all";
    case ReshardKind::kToPartial:
      return "to_partial";
  }
  return "?";
}

static std::string axes_text(AxisSet axes) {
  std::vector<std::string> names;
  for (Axis axis : kAllAxes)
    if (axes.contains(axis)) names.emplace_back(to_string(axis));
  return "{" + join(names, ", ") + "}";
}

std::string ReshardStep::to_string() const {
  std::string text = fmt::format("{} {}", altiplano::to_string(kind), axes_text(axes));
  if (kind == ReshardKind::kAllToAll)
    text += fmt::format(" dim {} -> {}", from_dim, dim);
  else if (dim >= 0)
    text += fmt::format(" dim {}", dim);
  return text;
}

namespace {

// Per step on top of the bytes: prefers fewer messages among equals, and local steps over none-needed ones.
constexpr double kMessageCost = 1.0, kLocalCost = 0.01;

class StepGenerator {
 public:
  StepGenerator(const ShardingSpec& target, const Shape& shape, const MeshShape& mesh)
      : target_(target), shape_(shape), mesh_(mesh) {}

  std::vector<ReshardStep> steps_from(const ShardingSpec& spec) {
    steps_.clear();
    before_ = spec;
    elements_ = static_cast<double>(num_elements(padded_extents(spec, shape_, mesh_)));
    gathers_and_moves();
    reductions();
    for (Axis axis : kAllAxes)
      if (mesh_.degree(axis) > 1 && !spec.split_axes().contains(axis) && !spec.partial.contains(axis))
        local_steps(axis);
    return std::move(steps_);
  }

 private:
  void gathers_and_moves() {
    for (size_t d = 0; d < before_.dims.size(); ++d) {
      if (before_.dims[d].empty()) continue;
      Axis axis = before_.dims[d].back();
      double n = mesh_.degree(axis);
      ShardingSpec without = before_;
      without.dims[d].pop_back();
      add(ReshardKind::kAllGather, {axis}, axis, d, -1, without, elements_ * (n - 1));
      for (size_t to = 0; to < before_.dims.size(); ++to) {
        if (to == d || !wants(axis, to)) continue;
        ShardingSpec moved = without;
        moved.dims[to].push_back(axis);
        add(ReshardKind::kAllToAll, {axis}, axis, to, static_cast<int>(d), moved, elements_ * (n - 1) / n);
      }
    }
  }

  void reductions() {
    AxisSet reducible = before_.partial - target_.partial;
    if (reducible.is_empty()) return;
    AxisSet unsplit = reducible - target_.split_axes();
    for (AxisSet axes : {reducible, unsplit}) {
      if (axes.is_empty()) continue;
      double n = 1;
      for (Axis axis : kAllAxes)
        if (axes.contains(axis)) n *= mesh_.degree(axis);
      ShardingSpec reduced = before_;
      reduced.partial = before_.partial - axes;
      add(ReshardKind::kAllReduce, axes, Axis::kData, static_cast<size_t>(-1), -1, reduced,
          2 * elements_ * (n - 1) / n);
    }
    for (Axis axis : kAllAxes) {
      if (!reducible.contains(axis)) continue;
      double n = mesh_.degree(axis);
      for (size_t d = 0; d < before_.dims.size(); ++d) {
        if (!wants(axis, d)) continue;
        ShardingSpec scattered = before_;
        scattered.partial.erase(axis);
        scattered.dims[d].push_back(axis);
        add(ReshardKind::kReduceScatter, {axis}, axis, d, -1, scattered, elements_ * (n - 1) / n);
      }
    }
  }

  void local_steps(Axis axis) {
    for (size_t d = 0; d < before_.dims.size(); ++d) {
      if (!wants(axis, d)) continue;
      ShardingSpec sliced = before_;
      sliced.dims[d].push_back(axis);
      add(ReshardKind::kSlice, {axis}, axis, d, -1, sliced, 0);
    }
    if (target_.partial.contains(axis)) {
      ShardingSpec partial = before_;
      partial.partial.insert(axis);
      partial.partial_kind = target_.partial_kind;
      add(ReshardKind::kToPartial, {axis}, axis, static_cast<size_t>(-1), -1, partial, 0);
    }
  }

  bool wants(Axis axis, size_t dim) const {
    return std::find(target_.dims[dim].begin(), target_.dims[dim].end(), axis) != target_.dims[dim].end();
  }

  void add(ReshardKind kind, AxisSet axes, Axis axis, size_t dim, int from_dim, ShardingSpec after, double wire) {
    if (after.partial.is_empty()) after.partial_kind = PartialKind::kSum;
    steps_.push_back({kind, axis, axes, static_cast<int>(dim), from_dim, before_, std::move(after), wire});
  }

  const ShardingSpec& target_;
  const Shape& shape_;
  const MeshShape& mesh_;
  ShardingSpec before_;
  double elements_ = 0;
  std::vector<ReshardStep> steps_;
};

struct Node {
  double cost = 0;
  int64_t order = 0;  // insertion order: ties are the same on every rank
  ShardingSpec spec;
  bool operator>(const Node& other) const { return std::tie(cost, order) > std::tie(other.cost, other.order); }
};

std::vector<ReshardStep> walk_back(const std::map<ShardingSpec, ReshardStep>& reached_by, const ShardingSpec& from,
                                   const ShardingSpec& to) {
  std::vector<ReshardStep> path;
  for (ShardingSpec at = to; !(at == from);) {
    const ReshardStep& step = reached_by.at(at);
    path.push_back(step);
    at = step.before;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace

Result<std::vector<ReshardStep>> reshard_path(const ShardingSpec& from, const ShardingSpec& to, const Shape& shape,
                                              const MeshShape& mesh) {
  ALTIPLANO_RETURN_IF_ERROR(check_spec(from, shape));
  ALTIPLANO_RETURN_IF_ERROR(check_spec(to, shape));
  ShardingSpec start = normalized(from, mesh), goal = normalized(to, mesh);
  if (start == goal) return std::vector<ReshardStep>{};
  if (!start.partial.is_empty() && !goal.partial.is_empty() && start.partial_kind != goal.partial_kind)
    return invalid_argument("no reshard from {} to {}: a partial sum is no partial max", from.to_string(),
                            to.to_string());

  StepGenerator generator(goal, shape, mesh);
  std::priority_queue<Node, std::vector<Node>, std::greater<>> open;
  std::map<ShardingSpec, double> best = {{start, 0.0}};
  std::map<ShardingSpec, ReshardStep> reached_by;
  int64_t order = 0;
  open.push({0.0, order++, start});
  while (!open.empty()) {
    Node node = open.top();
    open.pop();
    if (node.spec == goal) return walk_back(reached_by, start, goal);
    if (node.cost > best.at(node.spec)) continue;
    for (ReshardStep& step : generator.steps_from(node.spec)) {
      double cost = node.cost + step.wire_elements + (step.wire_elements > 0 ? kMessageCost : kLocalCost);
      auto it = best.find(step.after);
      if (it != best.end() && it->second <= cost) continue;
      best[step.after] = cost;
      open.push({cost, order++, step.after});
      reached_by.insert_or_assign(step.after, std::move(step));
    }
  }
  return invalid_argument("no reshard path from {} to {}", from.to_string(), to.to_string());
}

double reshard_wire_elements(const std::vector<ReshardStep>& path) {
  double total = 0;
  for (const ReshardStep& step : path) total += step.wire_elements;
  return total;
}

}  // namespace altiplano
