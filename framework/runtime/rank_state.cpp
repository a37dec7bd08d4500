#include "framework/runtime/rank_state.hpp"

namespace altiplano {

namespace {

const char* role_word(TensorRole role) {
  switch (role) {
    case TensorRole::kParameter:
      return "parameter";
    case TensorRole::kMaster:
      return "master";
    case TensorRole::kOptimizerState:
      return "optimizer_state";
    default:
      return "other";
  }
}

bool is_saved(const PersistentTensor& tensor) {
  return tensor.role == TensorRole::kParameter || tensor.role == TensorRole::kMaster ||
         tensor.role == TensorRole::kOptimizerState;
}

Status restore_where(Executor& executor, const Checkpoint& checkpoint, const std::function<bool(TensorRole)>& wanted) {
  std::vector<TensorTarget> targets;
  std::vector<std::vector<char>> memory;
  std::vector<const PersistentTensor*> tensors;
  for (const PersistentTensor& tensor : executor.program().tensors)
    if (wanted(tensor.role)) tensors.push_back(&tensor);
  const bool is_host_memory = executor.device().info().is_host_memory;
  memory.reserve(tensors.size());
  for (const PersistentTensor* tensor : tensors) {
    const Buffer& buffer = executor.program().buffer(tensor->buffer);
    void* data = executor.data(*tensor);
    if (!is_host_memory) data = memory.emplace_back(static_cast<size_t>(buffer.bytes)).data();
    targets.push_back({tensor->name, buffer.dtype, tensor->global, tensor->box, data});
  }
  ALTIPLANO_RETURN_IF_ERROR(checkpoint.restore(targets));
  for (size_t i = 0; i < memory.size(); ++i)
    if (!memory[i].empty())
      ALTIPLANO_RETURN_IF_ERROR(executor.device().copy_from_host(executor.data(*tensors[i]), memory[i].data(),
                                                                 static_cast<int64_t>(memory[i].size())));
  return Status::ok();
}

}  // namespace

Result<SavedState> SavedState::take(Executor& executor) {
  SavedState state;
  const bool is_host_memory = executor.device().info().is_host_memory;
  for (const PersistentTensor& tensor : executor.program().tensors) {
    if (!is_saved(tensor) || !tensor.is_owner) continue;
    const Buffer& buffer = executor.program().buffer(tensor.buffer);
    const void* data = executor.data(tensor);
    if (!is_host_memory) {
      std::vector<char>& copy = state.memory_.emplace_back(static_cast<size_t>(buffer.bytes));
      if (buffer.bytes > 0) ALTIPLANO_RETURN_IF_ERROR(executor.device().copy_to_host(copy.data(), data, buffer.bytes));
      data = copy.data();
    }
    state.parts_.push_back({tensor.name, buffer.dtype, tensor.global, tensor.box, data, role_word(tensor.role)});
  }
  return state;
}

Status restore_state(Executor& executor, const Checkpoint& checkpoint) {
  return restore_where(executor, checkpoint,
                       [](TensorRole role) { return role != TensorRole::kGradient && role != TensorRole::kTotals; });
}

Status restore_parameters(Executor& executor, const Checkpoint& checkpoint) {
  return restore_where(executor, checkpoint, [](TensorRole role) {
    return role == TensorRole::kParameter || role == TensorRole::kParameterCopy;
  });
}

}  // namespace altiplano
