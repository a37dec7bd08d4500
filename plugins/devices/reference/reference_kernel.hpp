#pragma once
// What the families of reference kernels share. A maker prepares a kernel for fixed local boxes; what it returns runs
// many times and allocates nothing. Arithmetic is in double; values are rounded when stored.
#include <array>
#include <functional>
#include <map>
#include <string>

#include "framework/api/device.hpp"
#include "framework/base/random.hpp"

namespace altiplano::reference {

/// A prepared kernel: what runs, and the scratch it wants.
struct Form {
  std::function<void(const KernelCall&)> run;
  int64_t workspace_bytes = 0;
};
using Maker = Form (*)(const KernelRequest&);

/// Makers of one kind by the type of its first floating operand (of layout ops: of input 0).
struct Makers {
  Maker f32 = nullptr, f64 = nullptr, i32 = nullptr, i64 = nullptr;
  bool mixes_types = false;  ///< floating operands may have different types
};
using Table = std::map<std::string, Makers>;

void add_attention_kernels(Table& table);
void add_batch_norm_kernels(Table& table);
void add_convolution_kernels(Table& table);
void add_embedding_kernels(Table& table);
void add_expert_kernels(Table& table);
void add_layout_kernels(Table& table);
void add_loss_kernels(Table& table);
void add_matmul_kernels(Table& table);
void add_normalization_kernels(Table& table);
void add_optimizer_kernels(Table& table);
void add_pointwise_kernels(Table& table);
void add_reduction_kernels(Table& table);

/// Refuses unknown kinds, types it has no loops for and tensors of more than kMaxRank dims.
Result<std::unique_ptr<Kernel>> make_reference_kernel(const KernelRequest& request);

template <typename T>
const T* input(const KernelCall& call, size_t i) {
  return static_cast<const T*>(call.inputs[i]);
}
template <typename T>
T* output(const KernelCall& call, size_t i) {
  return static_cast<T*>(call.outputs[i]);
}

inline constexpr size_t kMaxRank = 10;
using Index = std::array<int64_t, kMaxRank>;

/// Row-major strides of extents.
Index strides_of(const std::vector<int64_t>& extents);
/// Product of all extents but the last.
int64_t num_rows(const std::vector<int64_t>& extents);
/// Global coordinate of the operand's first element along `dim` in this call.
int64_t origin_of(const OperandLayout& layout, size_t dim, const KernelCall& call);
/// Stores a double as an element of a floating type.
void store(DType dtype, void* data, int64_t index, double value);

/// Walks the row-major indices of a box and keeps N offsets that advance by their own strides.
template <size_t N>
class Walk {
 public:
  Walk(const std::vector<int64_t>& extents, const std::array<Index, N>& strides)
      : rank_(extents.size()), strides_(strides) {
    for (size_t d = 0; d < rank_; ++d) {
      extents_[d] = extents[d];
      if (extents[d] == 0) done_ = true;
    }
  }
  bool done() const { return done_; }
  int64_t offset(size_t k) const { return offsets_[k]; }
  void next() {
    for (size_t d = rank_; d-- > 0;) {
      for (size_t k = 0; k < N; ++k) offsets_[k] += strides_[k][d];
      if (++index_[d] < extents_[d]) return;
      for (size_t k = 0; k < N; ++k) offsets_[k] -= strides_[k][d] * extents_[d];
      index_[d] = 0;
    }
    done_ = true;
  }
  /// Back to the first index.
  void restart() {
    index_ = {};
    offsets_ = {};
    done_ = false;
    for (size_t d = 0; d < rank_; ++d) done_ = done_ || extents_[d] == 0;
  }

 private:
  size_t rank_;
  Index extents_{}, index_{};
  std::array<Index, N> strides_;
  std::array<int64_t, N> offsets_{};
  bool done_ = false;
};

/// Random drops of one op: pure in (seed, stream, step, global index).
class Dropper {
 public:
  Dropper(const KernelRequest& request, const std::string& probability)
      : p_(request.attributes.get_float(probability)),
        stream_(random_stream(request.seed, request.attributes.get_string("stream"))) {}
  /// 1/(1-p) if the element is kept, 0 if not; 1 when not training.
  double factor(const KernelCall& call, int64_t global_index) const {
    if (p_ == 0 || !call.step->training) return 1;
    bool keep =
        random_uniform(stream_, static_cast<uint64_t>(call.step->step), static_cast<uint64_t>(global_index)) >= p_;
    return keep ? 1 / (1 - p_) : 0;
  }

 private:
  double p_;
  uint64_t stream_;
};

}  // namespace altiplano::reference
