#include "framework/graph/ops/helpers.hpp"

namespace altiplano {
namespace {

using namespace ops;

Status check_ids(const ValueType& ids) {
  ALTIPLANO_RETURN_IF_ERROR(check_rank(ids, 2, "the ids [b,s]"));
  return check_dtype(ids, DType::kI32, "the ids");
}

OpDefinition embedding() {
  OpDefinition definition;
  definition.kind = "embedding";
  definition.help = "rows of a table: table [v,d], ids [b,s] -> [b,s,d]";
  definition.num_inputs = 2;
  definition.infer = [](Types inputs, const Attributes&) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_rank(inputs[0], 2, "the table [v,d]"));
    ALTIPLANO_RETURN_IF_ERROR(check_floating(inputs.first(1)));
    ALTIPLANO_RETURN_IF_ERROR(check_ids(inputs[1]));
    return std::vector<ValueType>{{{inputs[1].shape[0], inputs[1].shape[1], inputs[0].shape[1]}, inputs[0].dtype}};
  };
  definition.rule = [](Types, Types, const Attributes&) -> std::string { return "[v,d] [b,s] -> [b,s,d]  sum: v"; };
  definition.flops = [](Types, Types, const Attributes&) { return 0.0; };
  definition.gradient = [](GradientContext& context) {
    Attributes attributes{{"rows", context.input(0).shape[0]}};
    return std::vector<ValueId>{
        context.emit1("embedding_grad", "table", {context.output_gradient(), context.op().inputs[1]}, attributes),
        ValueId()};
  };
  return definition;
}

OpDefinition embedding_grad() {
  OpDefinition definition;
  definition.kind = "embedding_grad";
  definition.help = "sum of gradients per row: dy [b,s,d], ids [b,s] -> dtable [rows,d]";
  definition.num_inputs = 2;
  definition.infer = [](Types inputs, const Attributes& attributes) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_rank(inputs[0], 3, "dy [b,s,d]"));
    ALTIPLANO_RETURN_IF_ERROR(check_floating(inputs.first(1)));
    ALTIPLANO_RETURN_IF_ERROR(check_ids(inputs[1]));
    ALTIPLANO_RETURN_IF_ERROR(check_shape(inputs[1], {inputs[0].shape[0], inputs[0].shape[1]}, "the ids"));
    int64_t rows = attributes.get_int("rows");
    if (rows < 1) return invalid_argument("rows is {}; a table has at least one row", rows);
    return std::vector<ValueType>{{{rows, inputs[0].shape[2]}, acc(inputs[0])}};
  };
  definition.rule = [](Types, Types, const Attributes&) -> std::string { return "[b,s,d] [b,s] -> [v,d]  sum: b,s"; };
  definition.flops = [](Types inputs, Types, const Attributes&) {
    return static_cast<double>(num_elements(inputs[0].shape));
  };
  return definition;
}

}  // namespace

void add_embedding_ops(std::vector<OpDefinition>& out) {
  out.push_back(embedding());
  out.push_back(embedding_grad());
}

}  // namespace altiplano
