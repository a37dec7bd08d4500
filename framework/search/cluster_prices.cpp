#include "framework/search/cluster_prices.hpp"

#include <algorithm>
#include <memory>

#include "framework/cost/collective_cost.hpp"
#include "framework/cost/compute_cost.hpp"
#include "framework/cost/op_work.hpp"

namespace altiplano {

namespace {

/// Gradients and gathered parameters share collectives of about this size (LoweringOptions::bucket_bytes).
constexpr double kBucketBytes = 32 << 20;

/// While all devices of the node work.
double among_all(const WorkTime& work, const Cluster& cluster) {
  return time_among(work, cluster.device, cluster.devices_per_node()).value;
}

double compute_price(const Cluster& cluster, const Op& op, std::span<const ValueType> inputs,
                     std::span<const ValueType> outputs) {
  return among_all(compute_cost(op_work(op.kind, op.attributes, inputs, outputs), cluster.device), cluster);
}

/// One mesh and the shapes of its process groups, found once per set of axes.
class MeshPrices {
 public:
  MeshPrices(const Cluster& cluster, const MeshShape& mesh, const std::vector<int>& devices)
      : cluster_(cluster), mesh_(mesh) {
    for (uint8_t bits = 1; bits < 1 << kAllAxes.size(); ++bits) {
      AxisSet axes;
      for (Axis axis : kAllAxes)
        if (bits >> static_cast<int>(axis) & 1) axes.insert(axis);
      if ((axes & mesh.active()) != axes) continue;
      std::vector<int> members;
      for (int member : mesh.group(0, axes)) members.push_back(devices[static_cast<size_t>(member)]);
      groups_[axes] = group_shape(cluster, members);
    }
  }

  double price(const ReshardStep& step, const Shape& shape, DType dtype, bool in_bucket) const {
    const double before = bytes(step.before, shape, dtype), after = bytes(step.after, shape, dtype);
    switch (step.kind) {
      case ReshardKind::kSlice:
        return copy(after);
      case ReshardKind::kToPartial:
        return copy(after / 2);
      case ReshardKind::kAllReduce:
        return collective(CollectiveKind::kAllReduce, before, step.axes, in_bucket);
      case ReshardKind::kReduceScatter:
        return collective(CollectiveKind::kReduceScatter, before, {step.axis}, in_bucket) +
               (step.dim > 0 ? copy(before) : 0);
      case ReshardKind::kAllGather:
        return collective(CollectiveKind::kAllGather, after, {step.axis}, in_bucket) + (step.dim > 0 ? copy(after) : 0);
      case ReshardKind::kAllToAll:
        return collective(CollectiveKind::kAllToAll, before, {step.axis}, in_bucket) + copy(before) + copy(after);
    }
    return 0;
  }

 private:
  double bytes(const ShardingSpec& spec, const Shape& shape, DType dtype) const {
    return static_cast<double>(num_elements(padded_extents(spec, shape, mesh_)) * size_of(dtype));
  }
  double copy(double read) const {
    return among_all(copy_cost(Bytes(static_cast<int64_t>(2 * read)), cluster_.device), cluster_);
  }
  /// In a bucket: its share of one of full size.
  double collective(CollectiveKind kind, double bytes, AxisSet axes, bool in_bucket) const {
    const auto group = groups_.find(axes & mesh_.active());
    if (group == groups_.end()) return 0;
    const double called = in_bucket ? std::max(bytes, kBucketBytes) : bytes;
    return collective_cost(kind, Bytes(static_cast<int64_t>(called)), group->second).time.value * bytes /
           std::max(called, 1.0);
  }

  const Cluster& cluster_;
  const MeshShape& mesh_;
  std::map<AxisSet, GroupShape> groups_;
};

}  // namespace

ShardingPrices cluster_prices(const Cluster& cluster, const std::vector<MeshShape>& meshes,
                              const std::vector<std::vector<int>>& devices) {
  auto of_mesh = std::make_shared<std::vector<MeshPrices>>();
  for (size_t m = 0; m < meshes.size(); ++m) of_mesh->emplace_back(cluster, meshes[m], devices[m]);
  ShardingPrices prices;
  prices.compute = [&cluster](const Op& op, std::span<const ValueType> inputs, std::span<const ValueType> outputs) {
    return compute_price(cluster, op, inputs, outputs);
  };
  prices.reshard = [of_mesh](size_t mesh, const ReshardStep& step, const Shape& shape, DType dtype, bool in_bucket) {
    return (*of_mesh)[mesh].price(step, shape, dtype, in_bucket);
  };
  return prices;
}

}  // namespace altiplano
