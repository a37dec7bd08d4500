#pragma once
// BatchInput: the model's inputs from a BatchSource, told apart by their names (framework/graph/training_graph.hpp).
#include <map>

#include "framework/graph/training_graph.hpp"
#include "framework/runtime/data/batch_source.hpp"
#include "framework/runtime/executor.hpp"

namespace altiplano {

/// Refuses a model that wants what token files do not have.
Status check_data_for(const TrainingGraph& graph);

class BatchInput : public InputSource {
 public:
  enum class Part : uint8_t { kTraining, kValidation };
  /// `source` must outlive it. An input of another name than tokens, labels, document_start and positions is a bug.
  BatchInput(const BatchSource& source, const TrainingGraph& graph);
  /// Sample 0 of the coming step (or validation batch) is sample `first` of the run (of the validation part).
  void start(Part part, int64_t first) {
    part_ = part;
    first_ = first;
    cached_ = -1;
  }
  Status fill(ValueId input, const Box& box, void* destination) override;

 private:
  const BatchSource& source_;
  std::map<ValueId, std::vector<int32_t> Batch::*> part_of_;
  Part part_ = Part::kTraining;
  int64_t first_ = 0, cached_ = -1;
  Batch batch_;  ///< what was read last: all inputs of one box of samples
};

}  // namespace altiplano
