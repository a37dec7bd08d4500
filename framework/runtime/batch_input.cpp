#include "framework/runtime/batch_input.hpp"

#include <cstring>

namespace altiplano {

Status BatchInput::fill(ValueId input, const Box& box, void* destination) {
  int64_t first = first_ + box.origin[0], count = box.extents[0];
  auto size = static_cast<size_t>(box.num_elements());
  if (cached_ != first || cached_count_ != count) {
    token_ids_.resize(size);
    label_ids_.resize(size);
    ALTIPLANO_RETURN_IF_ERROR(part_ == Part::kTraining
                                  ? source_.training_samples(first, count, token_ids_, label_ids_)
                                  : source_.validation_samples(first, count, token_ids_, label_ids_));
    cached_ = first;
    cached_count_ = count;
  }
  std::memcpy(destination, input == tokens_ ? token_ids_.data() : label_ids_.data(), size * sizeof(int32_t));
  return Status::ok();
}

}  // namespace altiplano
