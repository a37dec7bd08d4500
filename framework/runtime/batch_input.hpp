#pragma once
// BatchInput: the model's inputs from a BatchSource. Inputs are tokens and labels, in this order.
#include <vector>

#include "framework/runtime/data/batch_source.hpp"
#include "framework/runtime/executor.hpp"

namespace altiplano {

class BatchInput : public InputSource {
 public:
  enum class Part : uint8_t { kTraining, kValidation };
  BatchInput(const BatchSource& source, ValueId tokens) : source_(source), tokens_(tokens) {}
  /// Sample 0 of the coming step (or validation batch) is sample `first` of the run (of the validation part).
  void start(Part part, int64_t first) {
    part_ = part;
    first_ = first;
    cached_ = -1;
  }
  Status fill(ValueId input, const Box& box, void* destination) override;

 private:
  const BatchSource& source_;
  ValueId tokens_;
  Part part_ = Part::kTraining;
  int64_t first_ = 0, cached_ = -1, cached_count_ = 0;
  std::vector<int32_t> token_ids_, label_ids_;
};

}  // namespace altiplano
