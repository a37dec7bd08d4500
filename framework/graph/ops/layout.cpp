#include <algorithm>
#include <numeric>
#include <optional>

#include "framework/graph/ops/helpers.hpp"

namespace altiplano {
namespace {

using namespace ops;

// reshape
// ---------------------------------------------------------------------------------------------------------------

/// Factors of both sides of a reshape, walked from the major dims on: a dim is one factor or a product of several.
class ReshapeFactors {
 public:
  ReshapeFactors(const Shape& in, const Shape& out) : in_(in), out_(out) {}

  /// Nothing when the dims have no common factors, as in [8,3] -> [6,4].
  std::optional<std::string> rule() {
    std::vector<std::vector<std::string>> in_names(in_.size()), out_names(out_.size());
    size_t i = 0, j = 0;
    int64_t a = 0, b = 0;  // what is left of in_[i] and out_[j]; 0: not begun
    while (i < in_.size() || j < out_.size()) {
      bool in_one = i < in_.size() && a == 0 && in_[i] == 1, out_one = j < out_.size() && b == 0 && out_[j] == 1;
      if (in_one != out_one) {
        if (in_one)
          in_names[i++].push_back(add_unit());
        else
          out_names[j++].push_back(add_unit());
        continue;
      }
      if (i == in_.size() || j == out_.size()) return std::nullopt;
      if (a == 0) a = in_[i];
      if (b == 0) b = out_[j];
      int64_t factor = std::min(a, b);
      if (a % factor != 0 || b % factor != 0) return std::nullopt;
      std::string name = fmt::format("f{}", num_factors_++);
      in_names[i].push_back(name);
      out_names[j].push_back(name);
      if ((a /= factor) == 1) {
        ++i;
        a = 0;
      }
      if ((b /= factor) == 1) {
        ++j;
        b = 0;
      }
    }
    std::string whole = units_.empty() ? "" : fmt::format("  whole: {}", fmt::join(units_, ","));
    return fmt::format("{} -> {}{}  linear", side(in_names), side(out_names), whole);
  }

 private:
  /// A dim of size 1 that only one side has.
  std::string add_unit() {
    units_.push_back(fmt::format("u{}", units_.size()));
    return units_.back();
  }

  static std::string side(const std::vector<std::vector<std::string>>& names) {
    std::vector<std::string> dims;
    for (const auto& dim : names) dims.push_back(dim.size() == 1 ? dim[0] : fmt::format("({})", fmt::join(dim, " ")));
    return fmt::format("[{}]", fmt::join(dims, ","));
  }

  const Shape &in_, &out_;
  int num_factors_ = 0;
  std::vector<std::string> units_;
};

Inferred infer_reshape(Types inputs, const Attributes& attributes) {
  Shape shape = attributes.get_ints("shape");
  for (int64_t extent : shape)
    if (extent < 1) return invalid_argument("shape {} has an extent below 1", to_string(shape));
  if (num_elements(shape) != num_elements(inputs[0].shape))
    return invalid_argument("{} has {} elements, {} has {}", to_string(inputs[0].shape), num_elements(inputs[0].shape),
                            to_string(shape), num_elements(shape));
  if (!ReshapeFactors(inputs[0].shape, shape).rule())
    return invalid_argument("{} and {} have no common factors; dims may be split and merged only, reshape in two steps",
                            to_string(inputs[0].shape), to_string(shape));
  return std::vector<ValueType>{{std::move(shape), inputs[0].dtype}};
}

double no_flops(Types, Types, const Attributes&) {
  return 0;
}

OpDefinition layout_op(const std::string& kind, const std::string& help) {
  OpDefinition definition;
  definition.kind = kind;
  definition.help = help;
  definition.flops = no_flops;
  definition.is_layout = true;
  return definition;
}

OpDefinition reshape() {
  OpDefinition definition = layout_op("reshape", "the same elements in another `shape`: x -> y");
  definition.infer = infer_reshape;
  definition.rule = [](Types inputs, Types outputs, const Attributes&) {
    return *ReshapeFactors(inputs[0].shape, outputs[0].shape).rule();
  };
  definition.gradient = [](GradientContext& context) {
    return std::vector<ValueId>{
        context.emit1("reshape", "x", {context.output_gradient()}, {{"shape", context.input(0).shape}})};
  };
  return definition;
}

// transpose
// -------------------------------------------------------------------------------------------------------------

Inferred infer_transpose(Types inputs, const Attributes& attributes) {
  auto permutation = attributes.get_ints("permutation"), sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> identity(rank_of(inputs[0]));
  std::iota(identity.begin(), identity.end(), 0);
  if (sorted != identity)
    return invalid_argument("permutation [{}] must hold each dim of {} once", fmt::join(permutation, ","),
                            to_string(inputs[0].shape));
  Shape shape;
  for (int64_t dim : permutation) shape.push_back(inputs[0].shape[static_cast<size_t>(dim)]);
  return std::vector<ValueType>{{std::move(shape), inputs[0].dtype}};
}

OpDefinition transpose() {
  OpDefinition definition = layout_op("transpose", "dims in the order of `permutation`: x -> y");
  definition.infer = infer_transpose;
  definition.rule = [](Types inputs, Types, const Attributes& attributes) {
    std::vector<std::string> out;
    for (int64_t dim : attributes.get_ints("permutation")) out.push_back(fmt::format("d{}", dim));
    return fmt::format("{} -> [{}]  linear", operand(rank_of(inputs[0])), fmt::join(out, ","));
  };
  definition.gradient = [](GradientContext& context) {
    auto permutation = context.op().attributes.get_ints("permutation");
    std::vector<int64_t> inverse(permutation.size());
    for (size_t i = 0; i < permutation.size(); ++i)
      inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
    return std::vector<ValueId>{
        context.emit1("transpose", "x", {context.output_gradient()}, {{"permutation", inverse}})};
  };
  return definition;
}

// slice, pad, concat: `dim` has another factor in every operand, none of which may be split
// -------------------------------

/// "[d0,i0,d2]": the dims of one operand with its own factor for `dim`.
std::string with_own_factor(size_t rank, int64_t dim, const std::string& name) {
  std::vector<std::string> names;
  for (size_t i = 0; i < rank; ++i) names.push_back(static_cast<int64_t>(i) == dim ? name : fmt::format("d{}", i));
  return fmt::format("[{}]", fmt::join(names, ","));
}

std::string along_dim_rule(Types inputs, Types outputs, const Attributes& attributes) {
  int64_t dim = attributes.get_int("dim");
  std::vector<std::string> operands, factors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    factors.push_back(fmt::format("i{}", i));
    operands.push_back(with_own_factor(rank_of(inputs[i]), dim, factors.back()));
  }
  factors.push_back("o");
  return fmt::format("{} -> {}  whole: {}  linear", fmt::join(operands, " "),
                     with_own_factor(rank_of(outputs[0]), dim, "o"), fmt::join(factors, ","));
}

Inferred infer_slice(Types inputs, const Attributes& attributes) {
  ALTIPLANO_ASSIGN(int64_t dim, dim_attribute(attributes, rank_of(inputs[0])));
  int64_t start = attributes.get_int("start"), length = attributes.get_int("length"),
          extent = inputs[0].shape[static_cast<size_t>(dim)];
  if (start < 0 || length < 1 || start + length > extent)
    return invalid_argument("[{}, {}) is no part of dim {} of extent {}", start, start + length, dim, extent);
  ValueType out = inputs[0];
  out.shape[static_cast<size_t>(dim)] = length;
  return std::vector<ValueType>{std::move(out)};
}

OpDefinition slice() {
  OpDefinition definition = layout_op("slice", "elements [start, start+length) of `dim`: x -> y");
  definition.infer = infer_slice;
  definition.rule = along_dim_rule;
  definition.gradient = [](GradientContext& context) {
    const Attributes& attributes = context.op().attributes;
    int64_t dim = attributes.get_int("dim"), start = attributes.get_int("start");
    int64_t after = context.input(0).shape[static_cast<size_t>(dim)] - start - attributes.get_int("length");
    return std::vector<ValueId>{
        context.emit1("pad", "x", {context.output_gradient()}, {{"dim", dim}, {"before", start}, {"after", after}})};
  };
  return definition;
}

Inferred infer_pad(Types inputs, const Attributes& attributes) {
  ALTIPLANO_ASSIGN(int64_t dim, dim_attribute(attributes, rank_of(inputs[0])));
  int64_t before = attributes.get_int("before"), after = attributes.get_int("after");
  if (before < 0 || after < 0) return invalid_argument("before {} and after {} must not be negative", before, after);
  ValueType out = inputs[0];
  out.shape[static_cast<size_t>(dim)] += before + after;
  return std::vector<ValueType>{std::move(out)};
}

OpDefinition pad() {
  OpDefinition definition = layout_op("pad", "zeros before and after along `dim`: x -> y");
  definition.infer = infer_pad;
  definition.rule = along_dim_rule;
  definition.gradient = [](GradientContext& context) {
    const Attributes& attributes = context.op().attributes;
    int64_t dim = attributes.get_int("dim");
    return std::vector<ValueId>{context.emit1("slice", "x", {context.output_gradient()},
                                              {{"dim", dim},
                                               {"start", attributes.get_int("before")},
                                               {"length", context.input(0).shape[static_cast<size_t>(dim)]}})};
  };
  return definition;
}

Inferred infer_concat(Types inputs, const Attributes& attributes) {
  ALTIPLANO_ASSIGN(int64_t dim, dim_attribute(attributes, rank_of(inputs[0])));
  auto at = static_cast<size_t>(dim);
  ValueType out = inputs[0];
  out.shape[at] = 0;
  for (const ValueType& input : inputs) {
    Shape expected = inputs[0].shape;
    if (rank_of(input) == expected.size()) expected[at] = input.shape[at];
    ALTIPLANO_RETURN_IF_ERROR(check_shape(input, expected, fmt::format("each input (but for dim {})", dim).c_str()));
    ALTIPLANO_RETURN_IF_ERROR(check_dtype(input, inputs[0].dtype, "each input"));
    out.shape[at] += input.shape[at];
  }
  return std::vector<ValueType>{std::move(out)};
}

OpDefinition concat() {
  OpDefinition definition = layout_op("concat", "inputs one after the other along `dim`: x0, x1, ... -> y");
  definition.is_layout = false;  // a view of one parameter it is not
  definition.num_inputs = -1;
  definition.infer = infer_concat;
  definition.rule = along_dim_rule;
  definition.gradient = [](GradientContext& context) {
    int64_t dim = context.op().attributes.get_int("dim"), start = 0;
    std::vector<ValueId> gradients(context.op().inputs.size());
    for (size_t i = 0; i < gradients.size(); ++i) {
      int64_t length = context.input(i).shape[static_cast<size_t>(dim)];
      if (context.wants_input(i))
        gradients[i] = context.emit1("slice", fmt::format("x{}", i), {context.output_gradient()},
                                     {{"dim", dim}, {"start", start}, {"length", length}});
      start += length;
    }
    return gradients;
  };
  return definition;
}

// fill
// ------------------------------------------------------------------------------------------------------------------

OpDefinition fill() {
  OpDefinition definition;
  definition.kind = "fill";
  definition.help = "a constant of `shape`, `dtype` and `value`: -> y";
  definition.num_inputs = 0;
  definition.infer = [](Types, const Attributes& attributes) -> Inferred {
    ALTIPLANO_ASSIGN(DType dtype, dtype_attribute(attributes, DType::kF32));
    return std::vector<ValueType>{{attributes.get_ints("shape"), dtype}};
  };
  definition.rule = [](Types, Types outputs, const Attributes&) {
    return fmt::format("-> {}", operand(rank_of(outputs[0])));
  };
  definition.flops = no_flops;
  return definition;
}

}  // namespace

void add_layout_ops(std::vector<OpDefinition>& out) {
  for (auto* make : {reshape, transpose, slice, pad, concat, fill}) out.push_back(make());
}

}  // namespace altiplano
