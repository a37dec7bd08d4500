#pragma once
// What attention and its gradient share: shapes, views of one head as f32, products of blocks of query rows.
//
// One (batch, head) pair is one unit of work of one thread. Query rows are taken in blocks, against all keys that the
// block's last row may see: the whole matrix of scores never exists, and with a causal mask hardly more than half of it
// is computed. f32 heads are read and written where they lie; others are widened to f32 once per head.
#include <optional>

#include "plugins/devices/cpu/dropout_mask.hpp"
#include "plugins/devices/cpu/kernel.hpp"

namespace altiplano::cpu {

/// Long enough for products at full speed, short enough that little above the causal diagonal is computed.
constexpr int64_t kQueryRows = 64;

struct AttentionShape {
  int64_t batch = 0, queries = 0, keys = 0, heads = 0, width = 0;  ///< local b, s, t, h, k
  int64_t query_origin = 0, key_origin = 0;
  float scale = 1;
  bool causal = true;
  std::optional<DropoutMask> dropout;
  // Global [b,h,s,t] position of the local (0,0,0,0), and strides.
  int64_t first = 0, batch_stride = 0, head_stride = 0, query_stride = 0;
  bool batch_moves = false;
  int document_start = -1;  ///< the input that says where each query's document starts; -1: none
  bool packed = false;      ///< q, k and v (and their gradients) lie side by side in one tensor [b,s,3,h,k]

  /// From the request's first inputs (q, k, v or qkv), and document starts if it has more than `num_inputs` (of which
  /// two less are needed where q, k and v are one); refuses wrong shapes.
  static Result<AttentionShape> from(const KernelRequest& request, size_t num_inputs);
  /// Number of the input that is `input` where q, k and v are three.
  size_t number(size_t input) const { return packed ? input - 2 : input; }

  /// Elements from one row of a head to the next: of q, k and v, and of the output.
  int64_t qkv_stride() const { return (packed ? 3 : 1) * heads * width; }
  int64_t row_stride() const { return heads * width; }
  int64_t qkv_offset(int64_t b, int64_t h, int64_t rows) const { return b * rows * qkv_stride() + h * width; }
  int64_t offset(int64_t b, int64_t h, int64_t rows) const { return b * rows * row_stride() + h * width; }
  /// The first head of q (0), k (1) or v (2), of inputs or of outputs.
  template <typename T, typename Pointers>
  T* part(const Pointers& pointers, size_t i) const {
    return packed ? static_cast<T*>(pointers[0]) + static_cast<int64_t>(i) * heads * width
                  : static_cast<T*>(pointers[i]);
  }
  /// How many of the local keys the local query s may see.
  int64_t visible(int64_t s) const {
    return causal ? std::clamp<int64_t>(query_origin + s + 1 - key_origin, 0, keys) : keys;
  }
  /// The first local key that the local query s of sample b sees; at most its last one.
  int64_t first_visible(const KernelCall& call, int64_t b, int64_t s) const {
    if (document_start < 0) return 0;
    const int64_t start = input<int32_t>(call, static_cast<size_t>(document_start))[b * queries + s];
    return std::clamp<int64_t>(start - key_origin, 0, std::max<int64_t>(0, visible(s) - 1));
  }
  /// The smallest of the rows s, s + 1, ... s + rows - 1.
  int64_t first_visible_of_block(const KernelCall& call, int64_t b, int64_t s, int64_t rows) const {
    int64_t first = first_visible(call, b, s);
    for (int64_t r = 1; r < rows; ++r) first = std::min(first, first_visible(call, b, s + r));
    return first;
  }
  uint64_t mask_index(int64_t b, int64_t h, int64_t s, int64_t batch_offset) const {
    return static_cast<uint64_t>(first + (b + (batch_moves ? batch_offset : 0)) * batch_stride + h * head_stride +
                                 s * query_stride);
  }
};

/// A matrix of f32 whose rows lie `stride` elements apart.
struct Rows32 {
  float* data = nullptr;
  int64_t stride = 0;
  Rows32 from(int64_t row) const { return {data + row * stride, stride}; }
};

/// One head of a tensor as f32: where it lies, or widened into `scratch` (rows x width).
template <typename T>
Rows32 widen_head(int64_t rows, int64_t width, const T* head, int64_t stride, float* scratch) {
  if constexpr (std::is_same_v<T, float>) {
    return {const_cast<float*>(head), stride};
  } else {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < width; ++i) scratch[r * width + i] = to_acc(head[r * stride + i]);
    return {scratch, width};
  }
}

/// Where a head's result is computed: in place for f32, else in `scratch`, from which narrow_head brings it.
template <typename T>
Rows32 result_head(int64_t width, T* head, int64_t stride, float* scratch) {
  if constexpr (std::is_same_v<T, float>) return {head, stride};
  return {scratch, width};
}
template <typename T>
void narrow_head(int64_t rows, int64_t width, const Rows32& from, T* head, int64_t stride) {
  if constexpr (!std::is_same_v<T, float>) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < width; ++i) head[r * stride + i] = from_acc<T>(from.data[r * from.stride + i]);
  }
}
/// Floats of scratch that one head of `rows` rows needs.
template <typename T>
int64_t head_scratch(int64_t rows, int64_t width) {
  return std::is_same_v<T, float> ? 0 : rows * width;
}

enum class Transposed : bool { kNo, kYes };
/// c[m,n] = alpha op(a) op(b) + beta c by the calling thread alone. Empty products leave c alone.
void multiply(Transposed a_is, Transposed b_is, int64_t m, int64_t n, int64_t k, float alpha, const Rows32& a,
              const Rows32& b, float beta, const Rows32& c);
/// c[m,n] = a[m,k] b[k,n]; zeros where nothing is summed.
void multiply_or_clear(int64_t m, int64_t n, int64_t k, const Rows32& a, const Rows32& b, const Rows32& c);
/// The calling thread's products use one thread; before the first of them.
void multiply_alone();

/// A kernel that runs body(call, b, h, scratch) for each head, heads shared out among threads; Scratch: what one thread
/// carves from its part of the workspace.
template <typename T, typename Scratch, typename Body>
Result<std::unique_ptr<Kernel>> kernel_over_heads(const AttentionShape& a, int threads, Body body) {
  const int64_t scratch = round_up_64(Scratch::template floats<T>(a) * static_cast<int64_t>(sizeof(float)));
  return kernel_of(
      [a, scratch, threads, body](const KernelCall& call) {
        parallel_parts(threads, a.batch * a.heads, [&](int part, int64_t begin, int64_t end) {
          auto* at = reinterpret_cast<float*>(static_cast<char*>(call.workspace) + part * scratch);
          const Scratch mine = Scratch::template carve<T>(a, at);
          multiply_alone();
          for (int64_t i = begin; i < end; ++i) body(a, call, i / a.heads, i % a.heads, mine);
        });
      },
      scratch * threads, fmt::format("blocks of {} rows", kQueryRows));
}

}  // namespace altiplano::cpu
