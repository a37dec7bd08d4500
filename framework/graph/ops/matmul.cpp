#include "framework/base/text.hpp"
#include "framework/graph/ops/einsum.hpp"
#include "framework/graph/ops/helpers.hpp"

namespace altiplano {
namespace {

using namespace ops;

Result<std::map<std::string, int64_t>> letter_sizes(const Einsum& einsum, Types inputs) {
  std::map<std::string, int64_t> sizes;
  for (size_t i = 0; i < 2; ++i) {
    const auto& letters = i == 0 ? einsum.a : einsum.b;
    ALTIPLANO_RETURN_IF_ERROR(
        check_rank(inputs[i], letters.size(), i == 0 ? "the first operand" : "the second operand"));
    for (size_t d = 0; d < letters.size(); ++d) {
      auto [it, is_new] = sizes.emplace(letters[d], inputs[i].shape[d]);
      if (it->second != inputs[i].shape[d])
        return invalid_argument("equation {}: {} is {} in the first operand and {} in the second", einsum.to_string(),
                                letters[d], it->second, inputs[i].shape[d]);
    }
  }
  return sizes;
}

Inferred infer(Types inputs, const Attributes& attributes) {
  ALTIPLANO_RETURN_IF_ERROR(check_floating(inputs));
  if (inputs[0].dtype != inputs[1].dtype)
    return invalid_argument("types must be equal, got {} and {}", to_string(inputs[0].dtype),
                            to_string(inputs[1].dtype));
  ALTIPLANO_ASSIGN(Einsum einsum, Einsum::parse(attributes.get_string("equation")));
  ALTIPLANO_ASSIGN(auto sizes, letter_sizes(einsum, inputs));
  ALTIPLANO_ASSIGN(DType dtype, dtype_attribute(attributes, inputs[0].dtype));
  Shape shape;
  for (const std::string& letter : einsum.c) shape.push_back(sizes.at(letter));
  return std::vector<ValueType>{{std::move(shape), dtype}};
}

Einsum equation_of(const Attributes& attributes) {
  return Einsum::parse(attributes.get_string("equation")).value();
}

std::string rule(Types, Types, const Attributes& attributes) {
  Einsum einsum = equation_of(attributes);
  return einsum.to_string() + (einsum.summed.empty() ? "" : "  sum: " + join(einsum.summed, ","));
}

double flops(Types inputs, Types, const Attributes& attributes) {
  auto sizes = letter_sizes(equation_of(attributes), inputs);
  double product = 2;
  for (const auto& [letter, size] : *sizes) product *= static_cast<double>(size);
  return product;
}

/// dA = dC B summed over the letters A lacks, and the same for B with the operands swapped.
ValueId operand_gradient(GradientContext& context, const Einsum& einsum, size_t operand, ValueId dc) {
  size_t other = 1 - operand;
  Einsum gradient{einsum.c, other == 0 ? einsum.a : einsum.b, operand == 0 ? einsum.a : einsum.b, {}};
  Attributes attributes{{"equation", gradient.to_string()}};
  DType dtype = context.gradient_dtype(context.op().inputs[operand]);
  if (dtype != context.graph().value(dc).dtype) attributes.set("dtype", std::string(to_string(dtype)));
  return context.emit1("matmul", operand == 0 ? "a" : "b", {dc, context.op().inputs[other]}, attributes);
}

std::vector<ValueId> gradient(GradientContext& context) {
  Einsum einsum = equation_of(context.op().attributes);
  ValueId dc = context.output_gradient();
  DType dtype = context.input(0).dtype;
  if (context.graph().value(dc).dtype != dtype)
    dc = context.emit1("cast", "dc", {dc}, {{"dtype", std::string(to_string(dtype))}});
  std::vector<ValueId> gradients(2);
  for (size_t i = 0; i < 2; ++i)
    if (context.wants_input(i)) gradients[i] = operand_gradient(context, einsum, i, dc);
  return gradients;
}

}  // namespace

void add_matmul_ops(std::vector<OpDefinition>& out) {
  OpDefinition definition;
  definition.kind = "matmul";
  definition.help = "einsum of two tensors by `equation`: a, b -> c";
  definition.num_inputs = 2;
  definition.infer = infer;
  definition.rule = rule;
  definition.flops = flops;
  definition.gradient = gradient;
  out.push_back(std::move(definition));
}

}  // namespace altiplano
