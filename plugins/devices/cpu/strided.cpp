#include "plugins/devices/cpu/strided.hpp"

#include <cstring>

#include "plugins/devices/cpu/kernel.hpp"

namespace altiplano::cpu {

bool StridedCopy::add_dim(int64_t extent, int64_t source_stride, int64_t destination_stride) {
  if (extent == 1) return true;
  if (num_dims > 0) {
    Dim& last = dims[num_dims - 1];
    if (last.source_stride == source_stride * extent && last.destination_stride == destination_stride * extent) {
      last = {last.extent * extent, source_stride, destination_stride};
      return true;
    }
  }
  if (num_dims == kMaxDims) return false;
  dims[num_dims++] = {extent, source_stride, destination_stride};
  return true;
}

int64_t StridedCopy::num_elements() const {
  int64_t n = 1;
  for (size_t i = 0; i < num_dims; ++i) n *= dims[i].extent;
  return n;
}

Shape strides_of(const Shape& extents) {
  Shape strides(extents.size(), 1);
  for (size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * extents[i];
  return strides;
}

namespace {

/// The innermost run, one function per kind of stride so that the common ones vectorize.
template <typename S, typename D, bool kAdding>
ALTIPLANO_CLONES void run_line(int64_t n, const S* source, int64_t source_stride, D* destination,
                               int64_t destination_stride) {
  const auto value = [&](int64_t from, int64_t to) {
    if constexpr (kAdding) {
      return from_acc<D>(to_acc(destination[to]) + to_acc(source[from]));
    } else {
      return from_acc<D>(to_acc(source[from]));
    }
  };
  if (source_stride == 1 && destination_stride == 1) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) destination[i] = value(i, i);
  } else {
    for (int64_t i = 0; i < n; ++i)
      destination[i * destination_stride] = value(i * source_stride, i * destination_stride);
  }
}

/// Same type, written: bits are moved, whatever they mean.
template <typename T>
void move_line(int64_t n, const T* source, int64_t source_stride, T* destination, int64_t destination_stride) {
  if (source_stride == 1 && destination_stride == 1) {
    std::memcpy(destination, source, static_cast<size_t>(n) * sizeof(T));
  } else {
    for (int64_t i = 0; i < n; ++i) destination[i * destination_stride] = source[i * source_stride];
  }
}

template <typename T>
void add_integer_line(int64_t n, const T* source, int64_t source_stride, T* destination, int64_t destination_stride) {
  for (int64_t i = 0; i < n; ++i) destination[i * destination_stride] += source[i * source_stride];
}

/// Walks the outer dims begin..end (flattened) with an odometer; `line` does the innermost dim.
template <typename S, typename D, typename Line>
void walk(const StridedCopy& copy, const S* source, D* destination, int64_t begin, int64_t end, Line line) {
  const size_t outer = copy.num_dims - 1;
  std::array<int64_t, StridedCopy::kMaxDims> at{};
  int64_t rest = begin;
  for (size_t i = outer; i-- > 0;) {
    at[i] = rest % copy.dims[i].extent;
    rest /= copy.dims[i].extent;
    source += at[i] * copy.dims[i].source_stride;
    destination += at[i] * copy.dims[i].destination_stride;
  }
  const auto& inner = copy.dims[outer];
  for (int64_t k = begin; k < end; ++k) {
    line(inner.extent, source, inner.source_stride, destination, inner.destination_stride);
    for (size_t i = outer; i-- > 0;) {
      source += copy.dims[i].source_stride;
      destination += copy.dims[i].destination_stride;
      if (++at[i] < copy.dims[i].extent) break;
      source -= copy.dims[i].extent * copy.dims[i].source_stride;
      destination -= copy.dims[i].extent * copy.dims[i].destination_stride;
      at[i] = 0;
    }
  }
}

template <typename S, typename D, typename Line>
Status run_lines(const StridedCopy& copy, const void* from, void* to, int threads, Line line) {
  const S* source = static_cast<const S*>(from) + copy.source_offset;
  D* destination = static_cast<D*>(to) + copy.destination_offset;
  if (copy.num_elements() == 0) return Status::ok();
  if (copy.num_dims == 0) return line(1, source, 1, destination, 1), Status::ok();
  if (copy.num_dims == 1) {
    const auto& dim = copy.dims[0];
    parallel_ranges(threads, dim.extent, row_grain(1), [&](int64_t begin, int64_t end) {
      line(end - begin, source + begin * dim.source_stride, dim.source_stride,
           destination + begin * dim.destination_stride, dim.destination_stride);
    });
    return Status::ok();
  }
  const int64_t inner = copy.dims[copy.num_dims - 1].extent;
  parallel_ranges(threads, copy.num_elements() / inner, row_grain(inner),
                  [&](int64_t begin, int64_t end) { walk(copy, source, destination, begin, end, line); });
  return Status::ok();
}

template <typename S, typename D>
Status run_floating(const StridedCopy& copy, StridedMode mode, const void* source, void* destination, int threads) {
  if (mode == StridedMode::kAdd) return run_lines<S, D>(copy, source, destination, threads, run_line<S, D, true>);
  return run_lines<S, D>(copy, source, destination, threads, run_line<S, D, false>);
}

template <typename S>
Status run_floating_from(const StridedCopy& copy, StridedMode mode, const void* source, DType to, void* destination,
                         int threads) {
  if (to == DType::kF32) return run_floating<S, float>(copy, mode, source, destination, threads);
  if (to == DType::kF64) return run_floating<S, double>(copy, mode, source, destination, threads);
  return run_floating<S, BFloat16>(copy, mode, source, destination, threads);
}

}  // namespace

bool can_copy(DType source, DType destination) {
  return source == destination || (is_floating(source) && is_floating(destination));
}

Status run_strided_copy(const StridedCopy& copy, StridedMode mode, DType source_dtype, const void* source,
                        DType destination_dtype, void* destination, int threads) {
  if (!can_copy(source_dtype, destination_dtype)) {
    return invalid_argument("device/cpu cannot copy {} to {}: both must be floating or the same",
                            to_string(source_dtype), to_string(destination_dtype));
  }
  if (source_dtype == destination_dtype && mode == StridedMode::kWrite) {
    switch (size_of(source_dtype)) {
      case 2:
        return run_lines<uint16_t, uint16_t>(copy, source, destination, threads, move_line<uint16_t>);
      case 4:
        return run_lines<uint32_t, uint32_t>(copy, source, destination, threads, move_line<uint32_t>);
      default:
        return run_lines<uint64_t, uint64_t>(copy, source, destination, threads, move_line<uint64_t>);
    }
  }
  switch (source_dtype) {
    case DType::kI32:
      return run_lines<int32_t, int32_t>(copy, source, destination, threads, add_integer_line<int32_t>);
    case DType::kI64:
      return run_lines<int64_t, int64_t>(copy, source, destination, threads, add_integer_line<int64_t>);
    case DType::kF32:
      return run_floating_from<float>(copy, mode, source, destination_dtype, destination, threads);
    case DType::kF64:
      return run_floating_from<double>(copy, mode, source, destination_dtype, destination, threads);
    default:
      return run_floating_from<BFloat16>(copy, mode, source, destination_dtype, destination, threads);
  }
}

}  // namespace altiplano::cpu
