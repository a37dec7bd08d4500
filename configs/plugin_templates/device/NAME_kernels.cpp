#include "@name@_kernels.hpp"

#include <cstring>

namespace @name@_plugin {

using namespace altiplano;

namespace {

using Function = void (*)(const KernelCall& call, const Attributes& attributes, int64_t n);

const float* input(const KernelCall& call, size_t i) {
  return static_cast<const float*>(call.inputs[i]);
}
float* output(const KernelCall& call) {
  return static_cast<float*>(call.outputs[0]);
}

void add(const KernelCall& call, const Attributes&, int64_t n) {
  for (int64_t i = 0; i < n; ++i) output(call)[i] = input(call, 0)[i] + input(call, 1)[i];
}
void multiply(const KernelCall& call, const Attributes&, int64_t n) {
  for (int64_t i = 0; i < n; ++i) output(call)[i] = input(call, 0)[i] * input(call, 1)[i];
}
void scale(const KernelCall& call, const Attributes& attributes, int64_t n) {
  const auto factor = static_cast<float>(attributes.get_float("factor"));
  for (int64_t i = 0; i < n; ++i) output(call)[i] = input(call, 0)[i] * factor;
}
void reshape(const KernelCall& call, const Attributes&, int64_t n) {
  std::memcpy(output(call), input(call, 0), static_cast<size_t>(n) * sizeof(float));
}

struct Entry {
  const char* kind;
  Function function;
};
constexpr Entry kTable[] = {{"add", add}, {"multiply", multiply}, {"scale", scale}, {"reshape", reshape}};

class TableKernel final : public Kernel {
 public:
  TableKernel(Function function, const KernelRequest& request)
      : function_(function), attributes_(request.attributes), n_(num_elements(request.outputs[0].extents)) {}
  Status run(const KernelCall& call) noexcept override {
    function_(call, attributes_, n_);
    return Status::ok();
  }

 private:
  Function function_;
  Attributes attributes_;
  int64_t n_;
};

bool is_f32(const KernelRequest& request) {
  for (const auto* operands : {&request.inputs, &request.outputs})
    for (const OperandLayout& operand : *operands)
      if (operand.dtype != DType::kF32) return false;
  return true;
}

/// Offset of coordinate `at` (global) in a buffer that holds `box`.
int64_t offset_in(const Box& box, const std::vector<int64_t>& at) {
  int64_t offset = 0;
  for (size_t d = 0; d < at.size(); ++d) offset = offset * box.extents[d] + at[d] - box.origin[d];
  return offset;
}

/// To the next coordinate of the part, row-major; false after the last.
bool advance(const Box& part, std::vector<int64_t>& at) {
  for (size_t d = at.size(); d-- > 0;) {
    if (++at[d] < part.origin[d] + part.extents[d]) return true;
    at[d] = part.origin[d];
  }
  return false;
}

template <typename T>
void copy_elements(const BoxCopy& boxes, const void* source, void* destination, bool add) {
  std::vector<int64_t> at = boxes.part.origin;
  do {
    T& to = static_cast<T*>(destination)[offset_in(boxes.destination, at)];
    const T& from = static_cast<const T*>(source)[offset_in(boxes.source, at)];
    to = add ? static_cast<T>(to + from) : from;
  } while (advance(boxes.part, at));
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_kernel(const KernelRequest& request) {
  for (const Entry& entry : kTable)
    if (entry.kind == request.kind && is_f32(request))
      return std::unique_ptr<Kernel>(std::make_unique<TableKernel>(entry.function, request));
  const DType dtype = request.outputs.empty() ? DType::kF32 : request.outputs[0].dtype;
  return invalid_argument("device/@name@: no kernel of {} in {}", request.kind, to_string(dtype));
}

Status copy_box(const BoxCopy& boxes, DType dtype, const void* source, void* destination, bool add) {
  if (boxes.part.is_empty()) return Status::ok();
  if (!boxes.source.contains(boxes.part) || !boxes.destination.contains(boxes.part))
    return invalid_argument("device/@name@: copy of {} from {} to {}: the part is not inside both",
                            boxes.part.to_string(), boxes.source.to_string(), boxes.destination.to_string());
  switch (dtype) {
    case DType::kF32:
      return copy_elements<float>(boxes, source, destination, add), Status::ok();
    case DType::kF64:
      return copy_elements<double>(boxes, source, destination, add), Status::ok();
    case DType::kI32:
      return copy_elements<int32_t>(boxes, source, destination, add), Status::ok();
    case DType::kI64:
      return copy_elements<int64_t>(boxes, source, destination, add), Status::ok();
    default:
      return invalid_argument("device/@name@: copies no {}", to_string(dtype));
  }
}

}  // namespace @name@_plugin
