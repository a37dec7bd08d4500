#include "framework/graph/ops/helpers.hpp"

namespace altiplano::ops {

Status check_floating(Types inputs) {
  for (const ValueType& type : inputs)
    if (!is_floating(type.dtype)) return invalid_argument("needs floating values, got {}", to_string(type.dtype));
  return Status::ok();
}

Status check_equal(Types inputs) {
  ALTIPLANO_RETURN_IF_ERROR(check_floating(inputs));
  for (const ValueType& type : inputs) {
    if (type.shape != inputs[0].shape)
      return invalid_argument("shapes must be equal, got {} and {}", to_string(inputs[0].shape), to_string(type.shape));
    if (type.dtype != inputs[0].dtype)
      return invalid_argument("types must be equal, got {} and {}", to_string(inputs[0].dtype), to_string(type.dtype));
  }
  return Status::ok();
}

Status check_shape(const ValueType& type, const Shape& shape, const char* what) {
  if (type.shape == shape) return Status::ok();
  return invalid_argument("{} must be {}, got {}", what, to_string(shape), to_string(type.shape));
}

Status check_rank(const ValueType& type, size_t rank, const char* what) {
  if (rank_of(type) == rank) return Status::ok();
  return invalid_argument("{} must have {} dims, got {} of shape {}", what, rank, rank_of(type), to_string(type.shape));
}

Status check_dtype(const ValueType& type, DType dtype, const char* what) {
  if (type.dtype == dtype) return Status::ok();
  return invalid_argument("{} must be {}, got {}", what, to_string(dtype), to_string(type.dtype));
}

Result<DType> dtype_attribute(const Attributes& attributes, DType otherwise) {
  if (!attributes.has("dtype")) return otherwise;
  std::string name = attributes.get_string("dtype");
  auto dtype = dtype_from_string(name);
  if (!dtype) return invalid_argument("dtype '{}' is unknown; there are f64, f32, bf16, i32, i64", name);
  return *dtype;
}

Result<int64_t> dim_attribute(const Attributes& attributes, size_t rank) {
  int64_t dim = attributes.get_int("dim", -1);
  if (dim < 0 || dim >= static_cast<int64_t>(rank))
    return invalid_argument("dim {} does not exist; the tensor has dims 0 to {}", dim, static_cast<int64_t>(rank) - 1);
  return dim;
}

std::string dims(size_t n) {
  std::vector<std::string> names;
  for (size_t i = 0; i < n; ++i) names.push_back(fmt::format("d{}", i));
  return fmt::format("{}", fmt::join(names, ","));
}

std::string operand(size_t n) {
  return "[" + dims(n) + "]";
}

std::string with_last(size_t leading, const std::string& last) {
  return leading == 0 ? "[" + last + "]" : "[" + dims(leading) + "," + last + "]";
}

std::string pointwise_rule(size_t rank, size_t num_inputs, size_t num_outputs, bool linear) {
  std::vector<std::string> inputs(num_inputs, operand(rank)), outputs(num_outputs, operand(rank));
  return fmt::format("{} -> {}{}", fmt::join(inputs, " "), fmt::join(outputs, " "), linear ? "  linear" : "");
}

OpDefinition pointwise(const std::string& kind, const std::string& help, int num_inputs, bool linear,
                       double flops_per_element) {
  OpDefinition definition;
  definition.kind = kind;
  definition.help = help;
  definition.num_inputs = num_inputs;
  definition.infer = [](Types inputs, const Attributes&) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_equal(inputs));
    return std::vector<ValueType>{inputs[0]};
  };
  definition.rule = [linear](Types inputs, Types outputs, const Attributes&) {
    return pointwise_rule(rank_of(outputs[0]), inputs.size(), 1, linear);
  };
  definition.flops = [flops_per_element](Types, Types outputs, const Attributes&) {
    return flops_per_element * static_cast<double>(num_elements(outputs[0].shape));
  };
  return definition;
}

Status check_stream(const Attributes& attributes, const char* probability) {
  double p = attributes.get_float(probability);
  if (p < 0 || p >= 1) return invalid_argument("{} is {}; a drop probability is in [0, 1)", probability, p);
  if (p > 0 && attributes.get_string("stream").empty())
    return invalid_argument("{} > 0 needs the attribute stream: the name of its random numbers", probability);
  return Status::ok();
}

std::string last_dims(size_t rank, size_t n) {
  std::vector<std::string> names;
  for (size_t i = rank - n; i < rank; ++i) names.push_back(fmt::format("d{}", i));
  return fmt::format("[{}]", fmt::join(names, ","));
}

Status check_bias(const ValueType& x, const ValueType& bias) {
  if (x.dtype != bias.dtype)
    return invalid_argument("types must be equal, got {} and {}", to_string(x.dtype), to_string(bias.dtype));
  const bool fits = !bias.shape.empty() && bias.shape.size() <= x.shape.size() &&
                    std::equal(bias.shape.rbegin(), bias.shape.rend(), x.shape.rbegin());
  if (fits) return Status::ok();
  return invalid_argument("the bias {} must match the last dims of {}", to_string(bias.shape), to_string(x.shape));
}

ValueId bias_gradient(GradientContext& context, ValueId dx, size_t bias_input) {
  if (!context.wants_input(bias_input)) return {};
  std::vector<int64_t> dims(context.input(0).shape.size() - context.input(bias_input).shape.size());
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<int64_t>(i);
  return dims.empty() ? dx : context.emit1("reduce_sum", "bias", {dx}, {{"dims", dims}});
}

}  // namespace altiplano::ops
