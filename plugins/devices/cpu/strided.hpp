#pragma once
// One strided loop nest for everything that only moves elements: box copies, transpose, slice, pad, concat, broadcast,
// and the staging of operands for products.
#include <array>
#include <cstdint>
#include <span>

#include "framework/base/status.hpp"
#include "framework/graph/dtype.hpp"

namespace altiplano::cpu {

/// Copies extents[0] x extents[1] x ... elements; strides in elements, 0 repeats a source. Fixed size: making one
/// allocates nothing.
struct StridedCopy {
  static constexpr size_t kMaxDims = 12;
  struct Dim {
    int64_t extent, source_stride, destination_stride;
  };
  size_t num_dims = 0;
  std::array<Dim, kMaxDims> dims;
  int64_t source_offset = 0, destination_offset = 0;  ///< elements

  /// Drops dims of extent 1 and merges neighbours that are one run on both sides. False: more than kMaxDims dims.
  [[nodiscard]] bool add_dim(int64_t extent, int64_t source_stride, int64_t destination_stride);
  int64_t num_elements() const;
};

enum class StridedMode { kWrite, kAdd };

/// Runs it; dtypes may differ when both are floating, else must be equal. kAdd sums in the accumulate type of the
/// destination. Refuses dtype pairs it does not know.
Status run_strided_copy(const StridedCopy& copy, StridedMode mode, DType source_dtype, const void* source,
                        DType destination_dtype, void* destination, int threads);
bool can_copy(DType source, DType destination);

/// Row-major strides.
Shape strides_of(const Shape& extents);

}  // namespace altiplano::cpu
