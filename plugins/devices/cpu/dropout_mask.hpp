#pragma once
#include "framework/base/random.hpp"
#include "plugins/devices/cpu/kernel.hpp"

namespace altiplano::cpu {

/// Which elements dropout keeps: Philox words of the global positions, compared as random_uniform() >= p would.
struct DropoutMask {
  uint64_t stream = 0;
  double threshold = 0;  ///< p * 2^32
  float scale = 1;       ///< 1 / (1 - p)

  DropoutMask(const KernelRequest& request, double p)
      : stream(random_stream(request.seed, request.attributes.get_string("stream"))),
        threshold(p * 4294967296.0),
        scale(static_cast<float>(1.0 / (1.0 - p))) {}

  /// y = x kept and scaled, for `n` elements whose global positions start at `index`.
  template <typename T>
  void apply(uint64_t step, uint64_t index, int64_t n, const T* x, T* y) const {
    for (int64_t i = 0; i < n;) {
      const auto words = random_quad(stream, step, (index + static_cast<uint64_t>(i)) / 4);
      for (uint64_t lane = (index + static_cast<uint64_t>(i)) % 4; lane < 4 && i < n; ++lane, ++i) {
        const bool keep = static_cast<double>(words[lane]) + 0.5 >= threshold;
        y[i] = keep ? from_acc<T>(to_acc(x[i]) * scale) : T{};
      }
    }
  }
};

/// Global row-major positions of the rows (last dim) of a local box.
struct RowPositions {
  GlobalIndex global;
  Shape extents;
  explicit RowPositions(const OperandLayout& layout) : global(layout), extents(layout.extents) {}

  uint64_t of(int64_t row, int64_t batch_offset) const {
    int64_t index = global.first + batch_offset * global.batch_stride;
    for (size_t i = extents.size() - std::min<size_t>(1, extents.size()); i-- > 0;) {
      index += row % extents[i] * global.strides[i];
      row /= extents[i];
    }
    return static_cast<uint64_t>(index);
  }
};

}  // namespace altiplano::cpu
