#include <algorithm>

#include "framework/graph/ops/helpers.hpp"

namespace altiplano {
namespace {

using namespace ops;

/// Attribute `dims` of a tensor of this rank: increasing, not empty.
Status check_dims(const std::vector<int64_t>& dims, size_t rank) {
  if (dims.empty()) return invalid_argument("dims is empty; name at least one");
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] < 0 || dims[i] >= static_cast<int64_t>(rank) || (i > 0 && dims[i] <= dims[i - 1]))
      return invalid_argument("dims [{}] must be increasing dims of a tensor with {} dims", fmt::join(dims, ","), rank);
  return Status::ok();
}

bool contains(const std::vector<int64_t>& dims, size_t dim) {
  return std::count(dims.begin(), dims.end(), static_cast<int64_t>(dim)) > 0;
}

std::vector<std::string> factor_names(size_t rank, const std::vector<int64_t>& dims, bool inside) {
  std::vector<std::string> names;
  for (size_t i = 0; i < rank; ++i)
    if (contains(dims, i) == inside) names.push_back(fmt::format("d{}", i));
  return names;
}

Inferred infer_reduce(Types inputs, const Attributes& attributes) {
  ALTIPLANO_RETURN_IF_ERROR(check_floating(inputs));
  auto dims = attributes.get_ints("dims");
  ALTIPLANO_RETURN_IF_ERROR(check_dims(dims, rank_of(inputs[0])));
  ALTIPLANO_ASSIGN(DType dtype, dtype_attribute(attributes, acc(inputs[0])));
  Shape shape;
  for (size_t i = 0; i < rank_of(inputs[0]); ++i)
    if (!contains(dims, i)) shape.push_back(inputs[0].shape[i]);
  return std::vector<ValueType>{{std::move(shape), dtype}};
}

OpDefinition reduce(const std::string& kind, const std::string& help, const std::string& clause) {
  OpDefinition definition;
  definition.kind = kind;
  definition.help = help;
  definition.infer = infer_reduce;
  definition.rule = [clause](Types inputs, Types, const Attributes& attributes) {
    size_t rank = rank_of(inputs[0]);
    auto dims = attributes.get_ints("dims");
    return fmt::format("{} -> [{}]  {}: {}", operand(rank), fmt::join(factor_names(rank, dims, false), ","), clause,
                       fmt::join(factor_names(rank, dims, true), ","));
  };
  definition.flops = [](Types inputs, Types, const Attributes&) {
    return static_cast<double>(num_elements(inputs[0].shape));
  };
  return definition;
}

std::vector<ValueId> reduce_sum_gradient(GradientContext& context) {
  const Value input = context.input(0);
  auto dims = context.op().attributes.get_ints("dims");
  std::vector<int64_t> sizes;
  for (int64_t dim : dims) sizes.push_back(input.shape[static_cast<size_t>(dim)]);
  Attributes attributes{{"dims", dims}, {"sizes", sizes}};
  DType dtype = context.gradient_dtype(input.id);
  if (dtype != context.graph().value(context.output_gradient()).dtype)
    attributes.set("dtype", std::string(to_string(dtype)));
  return {context.emit1("broadcast_to", "x", {context.output_gradient()}, attributes)};
}

OpDefinition reduce_sum() {
  OpDefinition definition = reduce("reduce_sum", "sum over `dims`, which are removed: x -> y", "sum");
  definition.gradient = reduce_sum_gradient;
  return definition;
}

OpDefinition reduce_max() {
  return reduce("reduce_max", "maximum over `dims`, which are removed: x -> y", "max");
}

Inferred infer_broadcast(Types inputs, const Attributes& attributes) {
  ALTIPLANO_RETURN_IF_ERROR(check_floating(inputs));
  auto dims = attributes.get_ints("dims"), sizes = attributes.get_ints("sizes");
  if (dims.size() != sizes.size()) return invalid_argument("{} dims but {} sizes", dims.size(), sizes.size());
  ALTIPLANO_RETURN_IF_ERROR(check_dims(dims, rank_of(inputs[0]) + dims.size()));
  ALTIPLANO_ASSIGN(DType dtype, dtype_attribute(attributes, inputs[0].dtype));
  Shape shape = inputs[0].shape;
  for (size_t i = 0; i < dims.size(); ++i) shape.insert(shape.begin() + dims[i], sizes[i]);
  return std::vector<ValueType>{{std::move(shape), dtype}};
}

OpDefinition broadcast_to() {
  OpDefinition definition;
  definition.kind = "broadcast_to";
  definition.help = "repeats along inserted `dims` of `sizes`: x -> y";
  definition.infer = infer_broadcast;
  definition.rule = [](Types, Types outputs, const Attributes& attributes) {
    size_t rank = rank_of(outputs[0]);
    return fmt::format("[{}] -> {}", fmt::join(factor_names(rank, attributes.get_ints("dims"), false), ","),
                       operand(rank));
  };
  definition.gradient = [](GradientContext& context) {
    Attributes attributes{{"dims", context.op().attributes.get_ints("dims")}};
    attributes.set("dtype", std::string(to_string(context.gradient_dtype(context.op().inputs[0]))));
    return std::vector<ValueId>{context.emit1("reduce_sum", "x", {context.output_gradient()}, attributes)};
  };
  return definition;
}

OpDefinition sum_squares() {
  OpDefinition definition;
  definition.kind = "sum_squares";
  definition.help = "sum of squares in f64: x -> []";
  definition.infer = [](Types inputs, const Attributes&) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_floating(inputs));
    return std::vector<ValueType>{{{}, DType::kF64}};
  };
  definition.rule = [](Types inputs, Types, const Attributes&) {
    size_t rank = rank_of(inputs[0]);
    return rank == 0 ? std::string("[] -> []") : fmt::format("{} -> []  sum: {}", operand(rank), dims(rank));
  };
  definition.flops = [](Types inputs, Types, const Attributes&) {
    return 2.0 * static_cast<double>(num_elements(inputs[0].shape));
  };
  return definition;
}

}  // namespace

void add_reduction_ops(std::vector<OpDefinition>& out) {
  for (auto* make : {reduce_sum, reduce_max, broadcast_to, sum_squares}) out.push_back(make());
}

}  // namespace altiplano
