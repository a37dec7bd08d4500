#include "framework/graph/training_graph.hpp"

namespace altiplano {

Status set_precision(ModelGraph& model, DType dtype) {
  if (!is_floating(dtype))
    return invalid_argument("train.precision: {} is no floating type; there are f64, f32 and bf16", to_string(dtype));
  Graph& graph = model.graph;
  for (const Parameter& parameter : graph.parameters()) graph.value(parameter.value).dtype = dtype;
  for (ValueId input : model.inputs)
    if (is_floating(graph.value(input).dtype)) graph.value(input).dtype = dtype;
  return graph.infer_again();
}

}  // namespace altiplano
