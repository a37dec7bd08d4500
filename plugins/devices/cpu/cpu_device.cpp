#include "plugins/devices/cpu/cpu_device.hpp"

#include <cstdlib>
#include <cstring>

#include "plugins/devices/cpu/cpu_host.hpp"
#include "plugins/devices/cpu/strided.hpp"

namespace altiplano::cpu {

namespace {

DeviceInfo describe(const DeviceOptions& options) {
  DeviceInfo info;
  info.threads = threads_of_rank(options.threads, options.ranks_on_host);
  info.name = "cpu (" + instruction_sets() + ", " + library_text() + ")";
  info.hardware = processor_name();
  info.memory = Bytes(host_memory_bytes() / std::max(1, options.ranks_on_host));
  info.dtypes = {DType::kF32, DType::kBF16};
  if (!has_bf16_products()) info.widened = {DType::kBF16};
  info.is_host_memory = true;
  return info;
}

}  // namespace

CpuDevice::CpuDevice(const DeviceOptions& options) : info_(describe(options)), memory_("device/cpu", info_.memory) {
  context_.threads = info_.threads;
  omp_set_num_threads(info_.threads);  // this thread's setting; oneDNN reads it
  context_.engine = dnnl::engine(dnnl::engine::kind::cpu, 0);
  context_.stream = dnnl::stream(context_.engine);
}

Result<void*> CpuDevice::allocate(int64_t bytes) noexcept try {
  return memory_.allocate(bytes);
} catch (const std::exception& error) {
  return runtime_failure("device/cpu: allocate: {}", error.what());
}

Status CpuDevice::adopt(void* memory, int64_t bytes) noexcept try {
  return memory_.adopt(memory, bytes);
} catch (const std::exception& error) {
  return runtime_failure("device/cpu: adopt: {}", error.what());
}

namespace {

Status check_layout(const KernelRequest& request, const OperandLayout& operand, const char* side, size_t i) {
  const size_t rank = operand.extents.size();
  const auto negative = [](int64_t x) { return x < 0; };
  if (operand.origin.size() != rank || operand.global.size() != rank || operand.batch_dim >= static_cast<int>(rank) ||
      std::any_of(operand.extents.begin(), operand.extents.end(), negative)) {
    return invalid_argument(
        "device/cpu: {} {} of {}: extents {}, origin {}, global {}, batch_dim {} do not fit together", side, i,
        request.kind, to_string(operand.extents), to_string(operand.origin), to_string(operand.global),
        operand.batch_dim);
  }
  return Status::ok();
}

Status check_request(const KernelRequest& request, const KernelEntry* entry) {
  if (entry == nullptr) return invalid_argument("device/cpu has no kernel for op kind '{}'", request.kind);
  const size_t inputs = request.inputs.size(), outputs = request.outputs.size();
  const bool inputs_fit = entry->num_inputs < 0 ? inputs >= 1 : inputs == static_cast<size_t>(entry->num_inputs);
  if (!inputs_fit || outputs != static_cast<size_t>(entry->num_outputs)) {
    return invalid_argument(
        "device/cpu: {} got {} inputs and {} outputs, needs {} and {}", request.kind, inputs, outputs,
        entry->num_inputs < 0 ? std::string("at least 1") : std::to_string(entry->num_inputs), entry->num_outputs);
  }
  for (size_t i = 0; i < inputs; ++i) ALTIPLANO_RETURN_IF_ERROR(check_layout(request, request.inputs[i], "input", i));
  for (size_t i = 0; i < outputs; ++i)
    ALTIPLANO_RETURN_IF_ERROR(check_layout(request, request.outputs[i], "output", i));
  return Status::ok();
}

}  // namespace

Result<KernelForms> CpuDevice::forms(const KernelRequest& request) noexcept try {
  if (request.kind != "matmul") return KernelForms{};
  ALTIPLANO_RETURN_IF_ERROR(check_request(request, find_kernel_entry(request.kind)));
  omp_set_num_threads(info_.threads);
  return product_forms(request, context_);
} catch (const std::exception& error) {
  return runtime_failure("device/cpu: the forms of {}: {}", request.kind, error.what());
}

Result<std::unique_ptr<Kernel>> CpuDevice::make_kernel(const KernelRequest& request) noexcept try {
  const KernelEntry* entry = find_kernel_entry(request.kind);
  ALTIPLANO_RETURN_IF_ERROR(check_request(request, entry));
  if (!request.form.empty() && request.kind != "matmul")
    return invalid_argument("device/cpu has no {} in the form '{}': it has one form only", request.kind, request.form);
  omp_set_num_threads(info_.threads);
  return entry->make(request, context_);
} catch (const std::exception& error) {
  return runtime_failure("device/cpu: making {}: {}", request.kind, error.what());
}

Status CpuDevice::copy(const BoxCopy& boxes, DType dtype, const void* source, void* destination, bool add) noexcept
    try {
  const Box& part = boxes.part;
  if (part.is_empty()) return Status::ok();
  if (!boxes.source.contains(part) || !boxes.destination.contains(part)) {
    return invalid_argument("device/cpu: copy of {} from {} to {}: the part is not inside both", part.to_string(),
                            boxes.source.to_string(), boxes.destination.to_string());
  }
  StridedCopy strided;
  int64_t source_stride = 1, destination_stride = 1;
  std::array<StridedCopy::Dim, StridedCopy::kMaxDims> dims;
  const size_t rank = part.extents.size();
  if (rank > dims.size()) return invalid_argument("device/cpu: copy of {} dims, at most {}", rank, dims.size());
  for (size_t i = rank; i-- > 0;) {
    dims[i] = {part.extents[i], source_stride, destination_stride};
    strided.source_offset += (part.origin[i] - boxes.source.origin[i]) * source_stride;
    strided.destination_offset += (part.origin[i] - boxes.destination.origin[i]) * destination_stride;
    source_stride *= boxes.source.extents[i];
    destination_stride *= boxes.destination.extents[i];
  }
  for (size_t i = 0; i < rank; ++i) {
    const bool fits = strided.add_dim(dims[i].extent, dims[i].source_stride, dims[i].destination_stride);
    ALTIPLANO_ASSERT(fits, "rank was checked");
  }
  return run_strided_copy(strided, add ? StridedMode::kAdd : StridedMode::kWrite, dtype, source, dtype, destination,
                          info_.threads);
} catch (const std::exception& error) {
  return runtime_failure("device/cpu: copy: {}", error.what());
}

Status CpuDevice::fill_zero(void* memory, int64_t bytes) noexcept {
  parallel_ranges(info_.threads, bytes, 1 << 20, [&](int64_t begin, int64_t end) {
    std::memset(static_cast<char*>(memory) + begin, 0, static_cast<size_t>(end - begin));
  });
  return Status::ok();
}

Status CpuDevice::copy_from_host(void* destination, const void* source, int64_t bytes) noexcept {
  if (bytes > 0) std::memcpy(destination, source, static_cast<size_t>(bytes));
  return Status::ok();
}

Status CpuDevice::copy_to_host(void* destination, const void* source, int64_t bytes) noexcept {
  return copy_from_host(destination, source, bytes);
}

}  // namespace altiplano::cpu
