#include "framework/runtime/not_finite.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include "framework/kernels/bfloat16.hpp"

namespace altiplano {

namespace {

bool all_finite(DType dtype, const char* data, int64_t count) {
  const auto all = [&](auto element) {
    for (int64_t i = 0; i < count; ++i)
      if (!std::isfinite(element(i))) return false;
    return true;
  };
  switch (dtype) {
    case DType::kF64:
      return all([&](int64_t i) { return reinterpret_cast<const double*>(data)[i]; });
    case DType::kF32:
      return all([&](int64_t i) { return reinterpret_cast<const float*>(data)[i]; });
    case DType::kBF16:
      return all([&](int64_t i) { return float_from_bfloat16({reinterpret_cast<const uint16_t*>(data)[i]}); });
    case DType::kI32:
    case DType::kI64:
      return true;
  }
  return true;
}

const char* phase_text(ActionKind action) {
  switch (action) {
    case ActionKind::kForward:
    case ActionKind::kValidate:
      return "forward";
    case ActionKind::kBackward:
    case ActionKind::kBackwardWeight:
      return "backward";
    case ActionKind::kRecompute:
      return "recompute";
    case ActionKind::kReduce:
    case ActionKind::kUpdate:
      return "update";
  }
  return "";
}

bool is_of_a_microbatch(ActionKind action) {
  return action != ActionKind::kUpdate && action != ActionKind::kReduce;
}

/// What a rank sends to the others: fixed size, no pointers.
struct Packed {
  int64_t kind, action, rank, microbatch, first_sample, num_samples;
  char operation[160], host[64];
};
static_assert(sizeof(Packed) % sizeof(int64_t) == 0);

void put(const std::string& text, std::span<char> field) {
  std::copy_n(text.begin(), std::min(text.size(), field.size() - 1), field.begin());
}

Packed pack(const NotFinite& it) {
  Packed packed{};
  packed.kind = static_cast<int64_t>(it.kind);
  packed.action = static_cast<int64_t>(it.action);
  packed.rank = it.rank;
  packed.microbatch = it.microbatch;
  packed.first_sample = it.first_sample;
  packed.num_samples = it.num_samples;
  put(it.operation, packed.operation);
  put(it.host, packed.host);
  return packed;
}

NotFinite unpack(const Packed& packed) {
  return {static_cast<NotFinite::Kind>(packed.kind),
          static_cast<ActionKind>(packed.action),
          packed.rank,
          packed.microbatch,
          packed.first_sample,
          packed.num_samples,
          packed.operation,
          packed.host};
}

bool comes_before(const Packed& a, const Packed& b) {
  const auto key = [](const Packed& p) {
    const bool is_none = p.kind == static_cast<int64_t>(NotFinite::Kind::kNone);
    return std::tuple(is_none, p.microbatch < 0, p.microbatch, p.action, p.rank);
  };
  return key(a) < key(b);
}

}  // namespace

std::string NotFinite::to_string() const {
  if (kind == Kind::kNone)
    return "computed again it is finite: a fault that passed, perhaps of a processor or of memory";
  std::string text = fmt::format("rank {} ({})", rank, host);
  if (microbatch >= 0)
    text += fmt::format(", microbatch {} (samples {} to {} of the run)", microbatch, first_sample,
                        first_sample + num_samples - 1);
  if (kind == Kind::kParameter) return text + ", parameter " + operation;
  return text + fmt::format(", {} of {}", phase_text(action), operation);
}

Result<bool> NotFiniteSearch::is_finite(const Operand& operand, const void* memory) {
  const Buffer& buffer = program_.buffer(operand.buffer);
  if (memory == nullptr || buffer.bytes == 0) return true;
  host_.resize(static_cast<size_t>(buffer.bytes));
  ALTIPLANO_RETURN_IF_ERROR(device_.copy_to_host(host_.data(), memory, buffer.bytes));
  return all_finite(buffer.dtype, host_.data(), num_elements(buffer.extents));
}

Status NotFiniteSearch::before(const ComputeInstruction& what, std::span<const void* const> inputs) {
  inputs_are_finite_ = true;
  parameter_.clear();
  if (first_.kind != NotFinite::Kind::kNone) return Status::ok();
  for (size_t i = 0; i < inputs.size(); ++i) {
    ALTIPLANO_ASSIGN(const bool finite, is_finite(what.inputs[i], inputs[i]));
    if (finite) continue;
    inputs_are_finite_ = false;
    const auto tensor = std::ranges::find_if(program_.tensors, [&](const PersistentTensor& t) {
      const bool is_weight = t.role == TensorRole::kParameter || t.role == TensorRole::kParameterCopy;
      return is_weight && t.buffer == what.inputs[i].buffer;
    });
    if (tensor != program_.tensors.end()) parameter_ = tensor->name;
  }
  return Status::ok();
}

Status NotFiniteSearch::after(const ComputeInstruction& what, std::span<void* const> outputs, const Action& action,
                              const std::string& label) {
  if (first_.kind != NotFinite::Kind::kNone) return Status::ok();
  if (!parameter_.empty()) found(NotFinite::Kind::kParameter, action, parameter_);
  if (!inputs_are_finite_) return Status::ok();
  for (size_t i = 0; i < outputs.size(); ++i) {
    ALTIPLANO_ASSIGN(const bool finite, is_finite(what.outputs[i], outputs[i]));
    if (finite) continue;
    found(NotFinite::Kind::kComputed, action, label);
    break;
  }
  return Status::ok();
}

void NotFiniteSearch::found(NotFinite::Kind kind, const Action& action, const std::string& operation) {
  first_.kind = kind;
  first_.action = action.kind;
  first_.rank = program_.rank.value;
  first_.operation = operation;
  if (!is_of_a_microbatch(action.kind)) return;
  first_.microbatch = action.microbatch;
  first_.num_samples = program_.microbatch_samples;
  first_.first_sample = program_.replica_first_sample + action.microbatch * program_.microbatch_samples;
}

Result<NotFinite> first_not_finite(Communicator& communicator, GroupId world, const NotFinite& mine) {
  const Packed packed = pack(mine);
  std::vector<Packed> all(static_cast<size_t>(communicator.world_size()));
  CollectiveCall call{CollectiveKind::kAllGather,
                      ReduceKind::kSum,
                      DType::kI64,
                      &packed,
                      all.data(),
                      static_cast<int64_t>(sizeof(Packed) / sizeof(int64_t)),
                      0};
  ALTIPLANO_ASSIGN(const Event event, communicator.collective(world, call, StreamKind::kCollective, {}));
  ALTIPLANO_RETURN_IF_ERROR(communicator.wait(event));
  return unpack(*std::ranges::min_element(all, comes_before));
}

}  // namespace altiplano
