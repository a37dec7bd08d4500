#pragma once
// The cost convention of Alpa's public prototype, in which golden results of sharding problems are given: computation
// is free, collectives cost bytes and a little for each, what lies fully replicated costs 2.
#include <cmath>

#include "framework/graph/op_definition.hpp"
#include "framework/search/sharding_problem.hpp"
#include "framework/solve/solve.hpp"

namespace altiplano::test {

struct AlpaConvention {
  MeshShape mesh;
  std::map<Axis, double> beta = {};  ///< 1 where absent
  double all_gather = 0;             ///< price of any all_gather; 0: by its bytes

  double price(const ReshardStep& step, const Shape& shape, DType dtype) const {
    double cost = 0;
    for (Axis axis : kAllAxes) {
      const bool takes_part = step.kind == ReshardKind::kAllReduce ? step.axes.contains(axis) : step.axis == axis;
      if (takes_part) cost += price_along(axis, step, shape, dtype);
    }
    return cost;
  }

  /// For ops of this graph, which outlives the prices. Products use every device: none is computed twice.
  ShardingPrices prices(const Graph& graph) const {
    ShardingPrices prices;
    prices.compute = [&graph, devices = mesh.num_devices()](const Op& op, std::span<const ValueType> inputs,
                                                            std::span<const ValueType> outputs) {
      if (op.kind != "matmul") return 0.0;
      const auto& flops = OpTable::instance().get("matmul").flops;
      const double whole = flops(types_of(graph, op.inputs), types_of(graph, op.outputs), op.attributes);
      return flops(inputs, outputs, op.attributes) * devices > whole ? kForbidden : 0.0;
    };
    prices.reshard = [convention = *this](size_t, const ReshardStep& step, const Shape& shape, DType dtype, bool) {
      return convention.price(step, shape, dtype);
    };
    prices.storage = [](size_t, const Value&, const ShardingSpec& spec) { return spec.is_replicated() ? 2.0 : 0.0; };
    return prices;
  }

 private:
  double price_along(Axis axis, const ReshardStep& step, const Shape& shape, DType dtype) const {
    auto found = beta.find(axis);
    const double b = found == beta.end() ? 1 : found->second, n = mesh.degree(axis);
    auto bytes = [&](const ShardingSpec& spec) {
      return static_cast<double>(num_elements(padded_extents(spec, shape, mesh)) * size_of(dtype));
    };
    switch (step.kind) {
      case ReshardKind::kAllReduce:
      case ReshardKind::kReduceScatter:  // products end with an all_reduce there, after which slicing is free
        return std::floor(1 + b * 2 * (n - 1) / n * bytes(step.before)) + 0.01;
      case ReshardKind::kAllGather:
        return all_gather > 0 ? all_gather : std::floor(1 + b * (n - 1) / n * bytes(step.after)) + 0.1;
      case ReshardKind::kAllToAll:
        return std::floor(1 + b * (n - 1) / n * bytes(step.before) * n) + 0.1;  // gathered, then sliced
      default:
        return 0;
    }
  }
};

}  // namespace altiplano::test
