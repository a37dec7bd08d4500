// attention backward: probabilities come again from the scores and their log-sum-exp (Dao et al., "FlashAttention",
// 2022, section 3.1); with p the probabilities, m the dropout mask and dP = m * (do v^T):
//   dv = (m p)^T do,   ds = p * (dP - sum_t p dP),   dq = scale ds k,   dk = scale ds^T q.
#include "framework/kernels/pointwise.hpp"
#include "plugins/devices/cpu/attention_tiles.hpp"

namespace altiplano::cpu {
namespace {

struct Scratch {
  float *keys_transposed, *values_transposed, *keys, *dkeys, *dvalues;
  float *queries, *doutputs, *dqueries, *probabilities, *dprobabilities, *masked;
  static int64_t floats(const AttentionShape& a) {
    return 2 * a.width * a.padded_keys + 3 * a.keys * a.padded_width +
           kQueryRows * 3 * (a.padded_width + a.padded_keys);
  }
  Scratch(const AttentionShape& a, float* at) {
    const auto carve = [&at](int64_t floats) { return std::exchange(at, at + floats); };
    for (float** part : {&keys_transposed, &values_transposed}) *part = carve(a.width * a.padded_keys);
    for (float** part : {&keys, &dkeys, &dvalues}) *part = carve(a.keys * a.padded_width);
    for (float** part : {&queries, &doutputs, &dqueries}) *part = carve(kQueryRows * a.padded_width);
    for (float** part : {&probabilities, &dprobabilities, &masked}) *part = carve(kQueryRows * a.padded_keys);
  }
};

ALTIPLANO_CLONES void probabilities_from_scores(int64_t n, int64_t end, float lse, float* scores) {
#pragma omp simd
  for (int64_t t = 0; t < n; ++t) scores[t] = fast_exp(scores[t] - lse);
  std::fill(scores + n, scores + end, 0.0f);
}

/// dp becomes ds.
ALTIPLANO_CLONES void score_gradient(int64_t n, const float* p, float* dp) {
  float dot = 0;
#pragma omp simd reduction(+ : dot)
  for (int64_t t = 0; t < n; ++t) dot += p[t] * dp[t];
#pragma omp simd
  for (int64_t t = 0; t < n; ++t) dp[t] = p[t] * (dp[t] - dot);
}

/// Fills probabilities, masked probabilities and score gradients of the four rows from s, for the keys [from, seen).
void block_gradients(const AttentionShape& a, const KernelCall& call, int64_t b, int64_t h, int64_t s, int64_t rows,
                     int64_t from, int64_t seen, const float* lse, const Scratch& scratch) {
  const int64_t padded_seen = (seen + kTile - 1) / kTile * kTile;
  multiply_rows(a.width, padded_seen - from, scratch.queries, a.padded_width, scratch.keys_transposed + from,
                a.padded_keys, scratch.probabilities + from, a.padded_keys);
  multiply_rows(a.width, padded_seen - from, scratch.doutputs, a.padded_width, scratch.values_transposed + from,
                a.padded_keys, scratch.dprobabilities + from, a.padded_keys);
  for (int64_t r = 0; r < kQueryRows; ++r) {
    float *p = scratch.probabilities + r * a.padded_keys, *dp = scratch.dprobabilities + r * a.padded_keys;
    float* masked = scratch.masked + r * a.padded_keys;
    if (r >= rows) {
      std::fill(masked + from, masked + seen, 0.0f);
      std::fill(dp + from, dp + seen, 0.0f);
      continue;
    }
    const int64_t first = a.first_visible(call, b, s + r);
    std::fill(p + from, p + first, 0.0f);
    probabilities_from_scores(a.visible(s + r) - first, seen - first, lse[s + r], p + first);
    if (a.dropout && call.step->training) {
      const uint64_t step = static_cast<uint64_t>(call.step->step),
                     index = a.mask_index(b, h, s + r, call.batch_offset) + static_cast<uint64_t>(from);
      a.dropout->apply(step, index, seen - from, p + from, masked + from);
      a.dropout->apply(step, index, seen - from, dp + from, dp + from);
    } else {
      std::copy(p + from, p + seen, masked + from);
    }
    score_gradient(seen - from, p + from, dp + from);
  }
}

template <typename T>
void store_rows(int64_t rows, const AttentionShape& a, float factor, const float* from, T* to) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < a.width; ++i)
      to[r * a.row_stride() + i] = from_acc<T>(from[r * a.padded_width + i] * factor);
  }
}

template <typename T>
void differentiate_head(const AttentionShape& a, const KernelCall& call, int64_t b, int64_t h, const Scratch& scratch) {
  const int64_t stride = a.row_stride(), of_queries = a.offset(b, h, a.queries), of_keys = a.offset(b, h, a.keys);
  const T *q = input<T>(call, 0) + of_queries, *k = input<T>(call, 1) + of_keys, *v = input<T>(call, 2) + of_keys;
  const float* lse = input<float>(call, 4) + (b * a.heads + h) * a.queries;
  const T* doutput = input<T>(call, 5) + of_queries;
  widen_transposed(a.keys, a.width, a.padded_keys, k, stride, scratch.keys_transposed);
  widen_transposed(a.keys, a.width, a.padded_keys, v, stride, scratch.values_transposed);
  widen_rows(a.keys, a.keys, a.width, a.padded_width, 1.0f, k, stride, scratch.keys);
  std::fill(scratch.dkeys, scratch.dkeys + 2 * a.keys * a.padded_width, 0.0f);  // dvalues lies behind
  for (int64_t s = 0; s < a.queries; s += kQueryRows) {
    const int64_t rows = std::min(kQueryRows, a.queries - s), seen = a.visible(s + rows - 1);
    const int64_t from = a.first_tile(call, b, s, rows);
    widen_rows(rows, kQueryRows, a.width, a.padded_width, a.scale, q + s * stride, stride, scratch.queries);
    widen_rows(rows, kQueryRows, a.width, a.padded_width, 1.0f, doutput + s * stride, stride, scratch.doutputs);
    block_gradients(a, call, b, h, s, rows, from, seen, lse, scratch);
    multiply_rows(seen - from, a.padded_width, scratch.dprobabilities + from, a.padded_keys,
                  scratch.keys + from * a.padded_width, a.padded_width, scratch.dqueries, a.padded_width);
    store_rows(rows, a, a.scale, scratch.dqueries, output<T>(call, 0) + of_queries + s * stride);
    // Queries are scaled already.
    add_outer(seen - from, a.padded_width, scratch.dprobabilities + from, a.padded_keys, scratch.queries,
              scratch.dkeys + from * a.padded_width);
    add_outer(seen - from, a.padded_width, scratch.masked + from, a.padded_keys, scratch.doutputs,
              scratch.dvalues + from * a.padded_width);
  }
  store_rows(a.keys, a, 1.0f, scratch.dkeys, output<T>(call, 1) + of_keys);
  store_rows(a.keys, a, 1.0f, scratch.dvalues, output<T>(call, 2) + of_keys);
}

}  // namespace

ALTIPLANO_CPU_KERNEL(attention_grad) {
  const auto& in = request.inputs;
  const DType dtype = in[0].dtype;
  const bool inputs_fit = in[1].dtype == dtype && in[2].dtype == dtype && in[3].dtype == dtype && in[5].dtype == dtype;
  if (!inputs_fit || in[4].dtype != DType::kF32 || !same_dtypes(request.outputs, dtype)) {
    return refuse_dtype(request, "f32 and bf16 with an f32 log-sum-exp");
  }
  ALTIPLANO_ASSIGN(const AttentionShape a, AttentionShape::from(request, 6));
  const int64_t scratch = round_up_64(Scratch::floats(a) * static_cast<int64_t>(sizeof(float)));
  return with_compute_type(request, dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return kernel_of(
        [a, scratch, threads = context.threads](const KernelCall& call) {
          parallel_parts(threads, a.batch * a.heads, [&](int part, int64_t begin, int64_t end) {
            const Scratch mine(a, reinterpret_cast<float*>(static_cast<char*>(call.workspace) + part * scratch));
            for (int64_t i = begin; i < end; ++i) differentiate_head<T>(a, call, i / a.heads, i % a.heads, mine);
          });
        },
        scratch * context.threads, "rows of 4");
  });
}

}  // namespace altiplano::cpu
