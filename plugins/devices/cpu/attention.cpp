// attention forward: o = dropout(softmax(scale q k^T + mask)) v and the log-sum-exp of the scaled scores.
#include <cmath>

#include "framework/kernels/pointwise.hpp"
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
    scores[t] = fast_exp(scores[t] - highest);
    sum += scores[t];
  }
  const float scale = 1.0f / sum;
#pragma omp simd
  for (int64_t t = 0; t < n; ++t) scores[t] *= scale;
  std::fill(scores + n, scores + end, 0.0f);
  return n == 0 ? -HUGE_VALF : highest + std::log(sum);
}

/// Scratch of one thread, in floats, carved from the workspace.
struct Scratch {
  float *keys, *values, *queries, *scores, *results;
  static int64_t floats(const AttentionShape& a) {
    return a.width * a.padded_keys + a.keys * a.padded_width + kQueryRows * (a.padded_keys + 2 * a.padded_width);
  }
  Scratch(const AttentionShape& a, float* at)
      : keys(at),
        values(keys + a.width * a.padded_keys),
        queries(values + a.keys * a.padded_width),
        scores(queries + kQueryRows * a.padded_width),
        results(scores + kQueryRows * a.padded_keys) {}
};

template <typename T>
void attend_head(const AttentionShape& a, const KernelCall& call, int64_t b, int64_t h, const Scratch& scratch) {
  const int64_t stride = a.row_stride();
  const T* q = input<T>(call, 0) + a.offset(b, h, a.queries);
  T* o = output<T>(call) + a.offset(b, h, a.queries);
  float* lse = output<float>(call, 1) + (b * a.heads + h) * a.queries;
  widen_transposed(a.keys, a.width, a.padded_keys, input<T>(call, 1) + a.offset(b, h, a.keys), stride, scratch.keys);
  widen_rows(a.keys, a.keys, a.width, a.padded_width, 1.0f, input<T>(call, 2) + a.offset(b, h, a.keys), stride,
             scratch.values);
  for (int64_t s = 0; s < a.queries; s += kQueryRows) {
    const int64_t rows = std::min(kQueryRows, a.queries - s), seen = a.visible(s + rows - 1);
    const int64_t padded_seen = (seen + kTile - 1) / kTile * kTile, from = a.first_tile(call, b, s, rows);
    widen_rows(rows, kQueryRows, a.width, a.padded_width, a.scale, q + s * stride, stride, scratch.queries);
    multiply_rows(a.width, padded_seen - from, scratch.queries, a.padded_width, scratch.keys + from, a.padded_keys,
                  scratch.scores + from, a.padded_keys);
    for (int64_t r = 0; r < rows; ++r) {
      float* scores = scratch.scores + r * a.padded_keys;
      const int64_t first = a.first_visible(call, b, s + r);
      std::fill(scores + from, scores + first, 0.0f);
      lse[s + r] = softmax_visible(a.visible(s + r) - first, seen - first, scores + first);
      if (a.dropout && call.step->training) {
        const uint64_t index = a.mask_index(b, h, s + r, call.batch_offset) + static_cast<uint64_t>(from);
        a.dropout->apply(static_cast<uint64_t>(call.step->step), index, seen - from, scores + from, scores + from);
      }
    }
    multiply_rows(seen - from, a.padded_width, scratch.scores + from, a.padded_keys,
                  scratch.values + from * a.padded_width, a.padded_width, scratch.results, a.padded_width);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < a.width; ++i) {
        o[(s + r) * stride + i] = from_acc<T>(scratch.results[r * a.padded_width + i]);
      }
    }
  }
}

}  // namespace

ALTIPLANO_CPU_KERNEL(attention) {
  const DType dtype = request.inputs[0].dtype;
  const bool inputs_fit =
      request.inputs.size() >= 3 && request.inputs[1].dtype == dtype && request.inputs[2].dtype == dtype;
  if (!inputs_fit || request.outputs[0].dtype != dtype || request.outputs[1].dtype != DType::kF32) {
    return refuse_dtype(request, "f32 and bf16 with an f32 log-sum-exp");
  }
  ALTIPLANO_ASSIGN(const AttentionShape a, AttentionShape::from(request, 3));
  const int64_t scratch = round_up_64(Scratch::floats(a) * static_cast<int64_t>(sizeof(float)));
  return with_compute_type(request, dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return kernel_of(
        [a, scratch, threads = context.threads](const KernelCall& call) {
          parallel_parts(threads, a.batch * a.heads, [&](int part, int64_t begin, int64_t end) {
            const Scratch mine(a, reinterpret_cast<float*>(static_cast<char*>(call.workspace) + part * scratch));
            for (int64_t i = begin; i < end; ++i) attend_head<T>(a, call, i / a.heads, i % a.heads, mine);
          });
        },
        scratch * context.threads, "rows of 4");
  });
}

}  // namespace altiplano::cpu
