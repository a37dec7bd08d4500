#pragma once
// What the op families share: checks that name shapes, factor names for rule strings, small records.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "framework/graph/op_definition.hpp"

namespace altiplano::ops {

using Types = std::span<const ValueType>;
using Inferred = Result<std::vector<ValueType>>;

inline DType acc(const ValueType& type) {
  return accumulate_dtype(type.dtype);
}
inline bool operator==(const ValueType& a, const ValueType& b) {
  return a.shape == b.shape && a.dtype == b.dtype;
}
inline size_t rank_of(const ValueType& type) {
  return type.shape.size();
}

Status check_floating(Types inputs);
/// All inputs of the same floating type and shape.
Status check_equal(Types inputs);
Status check_shape(const ValueType& type, const Shape& shape, const char* what);
Status check_rank(const ValueType& type, size_t rank, const char* what);
Status check_dtype(const ValueType& type, DType dtype, const char* what);
/// Attribute `dtype` if there is one, else `otherwise`; refuses an unknown name.
Result<DType> dtype_attribute(const Attributes& attributes, DType otherwise);
/// Attribute `dim` of a tensor of this rank.
Result<int64_t> dim_attribute(const Attributes& attributes, size_t rank);

/// "d0,d1,d2" for n = 3.
std::string dims(size_t n);
/// "[d0,d1]".
std::string operand(size_t n);
/// "[d0,d1,e]": n leading dims and the last one by name.
std::string with_last(size_t leading, const std::string& last);

/// "[d1,d2]": the last `n` dims of a tensor of `rank`.
std::string last_dims(size_t rank, size_t n);

/// The bias has the type of x and matches its last dims.
Status check_bias(const ValueType& x, const ValueType& bias);
/// What reaches the bias (input `bias_input`) of an op: dx summed over the dims of input 0 that the bias does not have.
ValueId bias_gradient(GradientContext& context, ValueId dx, size_t bias_input);

/// Rule of an op whose operands all have the rank of input 0 and split alike.
std::string pointwise_rule(size_t rank, size_t num_inputs, size_t num_outputs, bool linear);

/// An elementwise op of `num_inputs` equal floating tensors.
OpDefinition pointwise(const std::string& kind, const std::string& help, int num_inputs, bool linear,
                       double flops_per_element);

/// The attribute `stream` of a random op, refused when missing.
Status check_stream(const Attributes& attributes, const char* probability);

}  // namespace altiplano::ops
