#include "framework/cost/op_work.hpp"

namespace altiplano {

OpWork op_work(const std::string& kind, const Attributes& attributes, std::span<const ValueType> inputs,
               std::span<const ValueType> outputs) {
  const OpDefinition& definition = OpTable::instance().get(kind);
  double flops = 0;
  if (definition.flops)
    flops = definition.flops(inputs, outputs, attributes);
  else
    for (const ValueType& out : outputs) flops += static_cast<double>(num_elements(out.shape));
  const DType dtype = inputs.empty() ? outputs[0].dtype : inputs[0].dtype;
  return {Flops(flops), operand_bytes(inputs, outputs), dtype};
}

}  // namespace altiplano
