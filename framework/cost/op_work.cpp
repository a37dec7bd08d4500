#include "framework/cost/op_work.hpp"

#include <algorithm>

#include "framework/sharding/rule.hpp"

namespace altiplano {

namespace {

bool has_factor(const std::vector<std::vector<int>>& operand, int factor) {
  return std::ranges::any_of(operand, [&](const auto& dim) { return std::ranges::find(dim, factor) != dim.end(); });
}

/// Of the rows, columns and inner size of one product.
struct ProductDims {
  int64_t rows = 0, columns = 0, inner = 0;
  int64_t smallest() const { return std::min({rows, columns, inner}); }
  int64_t alignment() const {
    const auto bits = static_cast<uint64_t>(rows | columns | inner);
    return static_cast<int64_t>(bits & (~bits + 1));
  }
};

/// Rows are what the first operand and the output have, columns the second and the output, the inner size what only the
/// operands have; what all three have is a batch of products. 0 where one of them is missing.
ProductDims dims_of_product(const ShardingRule& rule) {
  ProductDims product;
  const auto extend = [](int64_t& dims, int64_t size) { dims = std::max<int64_t>(1, dims) * size; };
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    const int factor = static_cast<int>(f);
    const int64_t size = rule.factors[f].size;
    const bool in_first = has_factor(rule.inputs[0], factor), in_second = has_factor(rule.inputs[1], factor);
    const bool in_output = has_factor(rule.outputs[0], factor);
    if (in_first && in_second && !in_output) extend(product.inner, size);
    if (in_first && !in_second && in_output) extend(product.rows, size);
    if (!in_first && in_second && in_output) extend(product.columns, size);
  }
  return product;
}

}  // namespace

OpWork op_work(const std::string& kind, const Attributes& attributes, std::span<const ValueType> inputs,
               std::span<const ValueType> outputs) {
  const OpDefinition& definition = OpTable::instance().get(kind);
  double flops = 0;
  if (definition.flops)
    flops = definition.flops(inputs, outputs, attributes);
  else
    for (const ValueType& out : outputs) flops += static_cast<double>(num_elements(out.shape));
  OpWork work{kind, Flops(flops), operand_bytes(inputs, outputs), inputs.empty() ? outputs[0].dtype : inputs[0].dtype};
  if (definition.inner_elements)
    work.inner_bytes = Bytes(static_cast<int64_t>(definition.inner_elements(inputs)) * size_of(inputs[0].dtype));
  if (inputs.size() != 2 || outputs.size() != 1 || flops == 0 || !is_floating(inputs[1].dtype)) return work;
  const std::string rule = definition.rule(inputs, outputs, attributes);
  // A convolution is no product of matrices: its windows are whole factors.
  if (rule.find("sum:") == std::string::npos || rule.find("whole:") != std::string::npos) return work;
  if (const auto parsed = ShardingRule::parse(rule, inputs, outputs)) {
    const ProductDims product = dims_of_product(*parsed);
    work.smallest_dim = product.smallest();
    work.alignment = work.smallest_dim > 0 ? product.alignment() : 0;
  }
  return work;
}

}  // namespace altiplano
