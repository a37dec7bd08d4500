// Family layout: reshape, transpose, slice, pad, concat. Each is a strided copy.
#include "plugins/devices/cpu/kernel.hpp"
#include "plugins/devices/cpu/strided.hpp"

namespace altiplano::cpu {
namespace {

void run_or_die(const StridedCopy& copy, DType dtype, const void* source, void* destination, int threads) {
  const Status status = run_strided_copy(copy, StridedMode::kWrite, dtype, source, dtype, destination, threads);
  ALTIPLANO_ASSERT(status.is_ok(), "{}", status.to_string());
}

/// Copies `extents` between two row-major tensors of these shapes.
Result<StridedCopy> part_copy(const Shape& extents, const Shape& source, const Shape& destination) {
  StridedCopy copy;
  const Shape from = strides_of(source), to = strides_of(destination);
  for (size_t i = 0; i < extents.size(); ++i) {
    if (!copy.add_dim(extents[i], from[i], to[i]))
      return invalid_argument("device/cpu: more than {} dims", StridedCopy::kMaxDims);
  }
  return copy;
}

Result<size_t> checked_dim(const KernelRequest& request) {
  const int64_t dim = request.attributes.get_int("dim");
  const size_t rank = request.outputs[0].extents.size();
  if (dim < 0 || dim >= static_cast<int64_t>(rank)) {
    return invalid_argument("device/cpu: {} along dim {} of {} dims", request.kind, dim, rank);
  }
  return static_cast<size_t>(dim);
}

/// All extents but that of `dim` must be equal.
Status check_others(const KernelRequest& request, const Shape& a, const Shape& b, size_t dim) {
  bool fits = a.size() == b.size();
  for (size_t i = 0; fits && i < a.size(); ++i) fits = i == dim || a[i] == b[i];
  if (fits) return Status::ok();
  return invalid_argument("device/cpu: {} of {} into {} along dim {}: the other extents differ", request.kind,
                          to_string(a), to_string(b), dim);
}

}  // namespace

ALTIPLANO_CPU_KERNEL(reshape) {
  const OperandLayout &x = request.inputs[0], &y = request.outputs[0];
  const int64_t n = num_elements(x.extents);
  if (x.dtype != y.dtype) return refuse_dtype(request, "one dtype");
  if (n != num_elements(y.extents)) {
    return invalid_argument("device/cpu: reshape of {} to {}: {} and {} elements", to_string(x.extents),
                            to_string(y.extents), n, num_elements(y.extents));
  }
  ALTIPLANO_ASSIGN(const StridedCopy copy, part_copy({n}, {n}, {n}));
  return kernel_of([copy, dtype = x.dtype, threads = context.threads](const KernelCall& call) {
    run_or_die(copy, dtype, call.inputs[0], call.outputs[0], threads);
  });
}

ALTIPLANO_CPU_KERNEL(transpose) {
  const OperandLayout &x = request.inputs[0], &y = request.outputs[0];
  const auto permutation = request.attributes.get_ints("permutation");
  if (x.dtype != y.dtype) return refuse_dtype(request, "one dtype");
  const size_t rank = x.extents.size();
  if (permutation.size() != rank || y.extents.size() != rank) {
    return invalid_argument("device/cpu: transpose of {} by {}", to_string(x.extents), to_string(permutation));
  }
  const Shape from = strides_of(x.extents), to = strides_of(y.extents);
  StridedCopy copy;
  for (size_t i = 0; i < rank; ++i) {
    const auto source = static_cast<size_t>(permutation[i]);
    if (source >= rank || x.extents[source] != y.extents[i] || !copy.add_dim(y.extents[i], from[source], to[i])) {
      return invalid_argument("device/cpu: transpose of {} by {} to {}", to_string(x.extents), to_string(permutation),
                              to_string(y.extents));
    }
  }
  return kernel_of([copy, dtype = x.dtype, threads = context.threads](const KernelCall& call) {
    run_or_die(copy, dtype, call.inputs[0], call.outputs[0], threads);
  });
}

ALTIPLANO_CPU_KERNEL(slice) {
  const OperandLayout &x = request.inputs[0], &y = request.outputs[0];
  ALTIPLANO_ASSIGN(const size_t dim, checked_dim(request));
  ALTIPLANO_RETURN_IF_ERROR(check_others(request, x.extents, y.extents, dim));
  if (x.dtype != y.dtype) return refuse_dtype(request, "one dtype");
  const int64_t start = request.attributes.get_int("start");
  if (start < 0 || start + y.extents[dim] > x.extents[dim]) {
    return invalid_argument("device/cpu: slice {} + {} of extent {} (that dim must be whole)", start, y.extents[dim],
                            x.extents[dim]);
  }
  ALTIPLANO_ASSIGN(StridedCopy copy, part_copy(y.extents, x.extents, y.extents));
  copy.source_offset = start * strides_of(x.extents)[dim];
  return kernel_of([copy, dtype = x.dtype, threads = context.threads](const KernelCall& call) {
    run_or_die(copy, dtype, call.inputs[0], call.outputs[0], threads);
  });
}

ALTIPLANO_CPU_KERNEL(pad) {
  const OperandLayout &x = request.inputs[0], &y = request.outputs[0];
  ALTIPLANO_ASSIGN(const size_t dim, checked_dim(request));
  ALTIPLANO_RETURN_IF_ERROR(check_others(request, x.extents, y.extents, dim));
  if (x.dtype != y.dtype) return refuse_dtype(request, "one dtype");
  const int64_t before = request.attributes.get_int("before");
  if (before < 0 || before + x.extents[dim] > y.extents[dim]) {
    return invalid_argument("device/cpu: pad of extent {} with {} before in {}", x.extents[dim], before,
                            y.extents[dim]);
  }
  ALTIPLANO_ASSIGN(StridedCopy copy, part_copy(x.extents, x.extents, y.extents));
  copy.destination_offset = before * strides_of(y.extents)[dim];
  const int64_t bytes = num_elements(y.extents) * size_of(y.dtype);
  return kernel_of([copy, bytes, dtype = x.dtype, threads = context.threads](const KernelCall& call) {
    char* to = output<char>(call);
    parallel_ranges(threads, bytes, 1 << 18,
                    [&](int64_t begin, int64_t end) { std::fill(to + begin, to + end, char{0}); });
    run_or_die(copy, dtype, call.inputs[0], to, threads);
  });
}

ALTIPLANO_CPU_KERNEL(concat) {
  const OperandLayout& y = request.outputs[0];
  ALTIPLANO_ASSIGN(const size_t dim, checked_dim(request));
  std::vector<StridedCopy> copies;
  int64_t at = 0;
  for (const OperandLayout& x : request.inputs) {
    ALTIPLANO_RETURN_IF_ERROR(check_others(request, x.extents, y.extents, dim));
    if (x.dtype != y.dtype) return refuse_dtype(request, "one dtype");
    ALTIPLANO_ASSIGN(StridedCopy copy, part_copy(x.extents, x.extents, y.extents));
    copy.destination_offset = at * strides_of(y.extents)[dim];
    copies.push_back(copy);
    at += x.extents[dim];
  }
  if (at != y.extents[dim])
    return invalid_argument("device/cpu: concat of extents that sum to {} into {}", at, y.extents[dim]);
  return kernel_of([copies, dtype = y.dtype, threads = context.threads](const KernelCall& call) {
    for (size_t i = 0; i < copies.size(); ++i) run_or_die(copies[i], dtype, call.inputs[i], call.outputs[0], threads);
  });
}

}  // namespace altiplano::cpu
