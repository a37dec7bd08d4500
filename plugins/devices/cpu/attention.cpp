// attention forward: o = dropout(softmax(scale q k^T + mask)) v and the log-sum-exp of the scaled scores.
#include <cmath>

#include "framework/kernels/pointwise.hpp"
#include "plugins/devices/cpu/attention_block.hpp"
#include "plugins/devices/cpu/attention_tiles.hpp"

namespace altiplano::cpu {
namespace {

/// scores[0..n) become probabilities, zeros up to `end`; returns their log-sum-exp. No visible key: all 0 and -inf.
ALTIPLANO_CLONES float softmax_visible(int64_t n, int64_t end, float* scores) {
  float highest = -HUGE_VALF;
#pragma omp simd reduction(max : highest)
  for (int64_t t = 0; t < n; ++t) highest = scores[t] > highest ? scores[t] : highest;
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t t = 0; t < n; ++t) {
    scores[t] = exp_at_most_one(scores[t] - highest);
    sum += scores[t];
  }
  const float scale = 1.0f / sum;
#pragma omp simd
  for (int64_t t = 0; t < n; ++t) scores[t] *= scale;
  std::fill(scores + n, scores + end, 0.0f);
  return n == 0 ? -HUGE_VALF : highest + std::log(sum);
}

/// Scratch of one thread, carved from the workspace.
struct Scratch {
  float *queries, *keys, *values, *results, *scores;
  template <typename T>
  static int64_t floats(const AttentionShape& a) {
    return 2 * head_scratch<T>(a.queries, a.width) + 2 * head_scratch<T>(a.keys, a.width) + kQueryRows * a.keys;
  }
  template <typename T>
  static Scratch carve(const AttentionShape& a, float* at) {
    const auto take = [&at](int64_t floats) { return std::exchange(at, at + floats); };
    const int64_t queries = head_scratch<T>(a.queries, a.width), keys = head_scratch<T>(a.keys, a.width);
    return {take(queries), take(keys), take(keys), take(queries), at};
  }
};

/// Scores of a block of rows become probabilities, dropped out where the model says so.
void probabilities_of_block(const AttentionShape& a, const KernelCall& call, int64_t b, int64_t h, int64_t s,
                            int64_t rows, int64_t from, int64_t seen, const Rows32& scores, float* lse) {
  for (int64_t r = 0; r < rows; ++r) {
    float* row = scores.data + r * scores.stride;  // of the keys from `from` on
    const int64_t first = a.first_visible(call, b, s + r);
    std::fill(row, row + first - from, 0.0f);
    const int64_t visible = a.visible(s + r) - first;
    float* seen_by_row = row + first - from;
    lse[r] = softmax_visible(visible, seen - first, seen_by_row);
    if (a.dropout && call.step->training) {
      const uint64_t index = a.mask_index(b, h, s + r, call.batch_offset) + static_cast<uint64_t>(first);
      a.dropout->apply(static_cast<uint64_t>(call.step->step), index, visible, seen_by_row, seen_by_row);
    }
  }
}

template <typename T>
void attend_head(const AttentionShape& a, const KernelCall& call, int64_t b, int64_t h, const Scratch& scratch) {
  const int64_t of_queries = a.qkv_offset(b, h, a.queries), of_keys = a.qkv_offset(b, h, a.keys);
  const auto head = [&](size_t part, int64_t offset) { return a.part<const T>(call.inputs, part) + offset; };
  const Rows32 q = widen_head(a.queries, a.width, head(0, of_queries), a.qkv_stride(), scratch.queries);
  const Rows32 k = widen_head(a.keys, a.width, head(1, of_keys), a.qkv_stride(), scratch.keys);
  const Rows32 v = widen_head(a.keys, a.width, head(2, of_keys), a.qkv_stride(), scratch.values);
  T* output_head = output<T>(call) + a.offset(b, h, a.queries);
  const Rows32 o = result_head(a.width, output_head, a.row_stride(), scratch.results);
  const Rows32 scores{scratch.scores, a.keys};
  float* lse = output<float>(call, 1) + (b * a.heads + h) * a.queries;
  for (int64_t s = 0; s < a.queries; s += kQueryRows) {
    const int64_t rows = std::min(kQueryRows, a.queries - s), seen = a.visible(s + rows - 1);
    const int64_t from = a.first_visible_of_block(call, b, s, rows);
    multiply(Transposed::kNo, Transposed::kYes, rows, seen - from, a.width, a.scale, q.from(s), k.from(from), 0,
             scores);
    probabilities_of_block(a, call, b, h, s, rows, from, seen, scores, lse + s);
    multiply_or_clear(rows, a.width, seen - from, scores, v.from(from), o.from(s));
  }
  narrow_head(a.queries, a.width, o, output_head, a.row_stride());
}

}  // namespace

ALTIPLANO_CPU_KERNEL(attention) {
  ALTIPLANO_ASSIGN(const AttentionShape a, AttentionShape::from(request, 3));
  const DType dtype = request.inputs[0].dtype;
  const bool inputs_fit = a.packed || (request.inputs[1].dtype == dtype && request.inputs[2].dtype == dtype);
  if (!inputs_fit || request.outputs[0].dtype != dtype || request.outputs[1].dtype != DType::kF32) {
    return refuse_dtype(request, "f32 and bf16 with an f32 log-sum-exp");
  }
  if (attends_in_tiles(a, dtype)) return make_tiled_attention(a, context);
  return with_compute_type(request, dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return kernel_over_heads<T, Scratch>(a, context.threads, attend_head<T>);
  });
}

}  // namespace altiplano::cpu
