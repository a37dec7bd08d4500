#include "framework/runtime/batch_input.hpp"

#include <cstring>

namespace altiplano {

namespace {

using BatchParts = std::map<std::string, std::vector<int32_t> Batch::*>;

const BatchParts& batch_parts() {
  static const BatchParts parts = {{"tokens", &Batch::tokens},
                                   {"labels", &Batch::labels},
                                   {kDocumentStartInput, &Batch::document_start},
                                   {kPositionsInput, &Batch::positions}};
  return parts;
}

}  // namespace

Status check_data_for(const TrainingGraph& graph) {
  for (ValueId id : graph.inputs)
    if (const Value& input = graph.graph.value(id); !batch_parts().contains(input.name))
      return invalid_argument(
          "model.kind: model/{} takes the input '{}', {}{}, which token files do not have; it can be planned, "
          "estimated "
          "and simulated",
          graph.graph.name, input.name, to_string(input.dtype), to_string(input.shape));
  return Status::ok();
}

BatchInput::BatchInput(const BatchSource& source, const TrainingGraph& graph) : source_(source) {
  for (ValueId id : graph.inputs) {
    auto part = batch_parts().find(graph.graph.value(id).name);
    ALTIPLANO_ASSERT(part != batch_parts().end(), "data has nothing for the input {}", graph.graph.value(id).name);
    part_of_[id] = part->second;
  }
}

Status BatchInput::fill(ValueId input, const Box& box, void* destination) {
  const int64_t first = first_ + box.origin[0], count = box.extents[0];
  if (cached_ != first || batch_.count != count) {
    ALTIPLANO_RETURN_IF_ERROR(part_ == Part::kTraining ? source_.read_training(first, count, batch_)
                                                       : source_.read_validation(first, count, batch_));
    cached_ = first;
  }
  const std::vector<int32_t>& values = batch_.*part_of_.at(input);
  ALTIPLANO_ASSERT(box.num_elements() == static_cast<int64_t>(values.size()), "a box of {} values of {}",
                   box.num_elements(), values.size());
  std::memcpy(destination, values.data(), values.size() * sizeof(int32_t));
  return Status::ok();
}

}  // namespace altiplano
