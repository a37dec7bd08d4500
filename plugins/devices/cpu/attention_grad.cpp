// attention backward: probabilities come again from the scores and their log-sum-exp (Dao et al., "FlashAttention",
// 2022, section 3.1); with p the probabilities, m the dropout mask and dP = m * (do v^T):
//   dv = (m p)^T do,   ds = p * (dP - sum_t p dP),   dq = scale ds k,   dk = scale ds^T q.
#include "framework/kernels/pointwise.hpp"
#include "plugins/devices/cpu/attention_block.hpp"
#include "plugins/devices/cpu/attention_tiles.hpp"

namespace altiplano::cpu {
namespace {

struct Scratch {
  float *queries, *doutputs, *dqueries, *keys, *values, *dkeys, *dvalues;
  float *probabilities, *dprobabilities, *masked;
  template <typename T>
  static int64_t floats(const AttentionShape& a) {
    return 3 * head_scratch<T>(a.queries, a.width) + 4 * head_scratch<T>(a.keys, a.width) + 3 * kQueryRows * a.keys;
  }
  template <typename T>
  static Scratch carve(const AttentionShape& a, float* at) {
    Scratch scratch;
    const auto take = [&at](int64_t floats) { return std::exchange(at, at + floats); };
    for (float** part : {&scratch.queries, &scratch.doutputs, &scratch.dqueries})
      *part = take(head_scratch<T>(a.queries, a.width));
    for (float** part : {&scratch.keys, &scratch.values, &scratch.dkeys, &scratch.dvalues})
      *part = take(head_scratch<T>(a.keys, a.width));
    for (float** part : {&scratch.probabilities, &scratch.dprobabilities, &scratch.masked})
      *part = take(kQueryRows * a.keys);
    return scratch;
  }
};

ALTIPLANO_CLONES void probabilities_from_scores(int64_t n, float lse, float* scores) {
#pragma omp simd
  for (int64_t t = 0; t < n; ++t) scores[t] = exp_at_most_one(scores[t] - lse);
}

/// dp becomes ds.
ALTIPLANO_CLONES void score_gradient(int64_t n, const float* p, float* dp) {
  float dot = 0;
#pragma omp simd reduction(+ : dot)
  for (int64_t t = 0; t < n; ++t) dot += p[t] * dp[t];
#pragma omp simd
  for (int64_t t = 0; t < n; ++t) dp[t] = p[t] * (dp[t] - dot);
}

/// What dropout leaves of p, in `masked`, and of dp.
ALTIPLANO_CLONES void keep_both(int64_t n, const float* factors, const float* p, float* masked, float* dp) {
#pragma omp simd
  for (int64_t t = 0; t < n; ++t) {
    masked[t] = kept(p[t], factors[t]);
    dp[t] = kept(dp[t], factors[t]);
  }
}

/// A block of query rows from s, against the keys [from, seen).
struct RowBlock {
  int64_t b, h, s, rows, from, seen;
};

/// Scores become masked probabilities (in `masked`), products with the output's gradient become score gradients; what a
/// row does not see becomes zero in both.
void score_gradients_of_block(const AttentionShape& a, const KernelCall& call, const RowBlock& block, const float* lse,
                              const Scratch& scratch) {
  const int64_t n = block.seen - block.from;
  for (int64_t r = 0; r < block.rows; ++r) {
    const int64_t s = block.s + r, first = a.first_visible(call, block.b, s), begin = first - block.from,
                  end = a.visible(s) - block.from;
    float* p = scratch.probabilities + r * a.keys;
    float *dp = scratch.dprobabilities + r * a.keys, *masked = scratch.masked + r * a.keys;
    probabilities_from_scores(end - begin, lse[s], p + begin);
    for (float* row : {masked, dp}) {
      std::fill(row, row + begin, 0.0f);
      std::fill(row + end, row + n, 0.0f);
    }
    if (a.dropout && call.step->training) {
      const uint64_t index = a.mask_index(block.b, block.h, s, call.batch_offset) + static_cast<uint64_t>(first);
      a.dropout->in_pieces(static_cast<uint64_t>(call.step->step), index, end - begin,
                           [&, at = begin](int64_t i, int64_t count, const float* factors) {
                             keep_both(count, factors, p + at + i, masked + at + i, dp + at + i);
                           });
    } else {
      std::copy(p + begin, p + end, masked + begin);
    }
    score_gradient(end - begin, p + begin, dp + begin);
  }
}

void clear_rows(int64_t rows, int64_t width, const Rows32& matrix) {
  for (int64_t r = 0; r < rows; ++r) std::fill_n(matrix.data + r * matrix.stride, width, 0.0f);
}

template <typename T>
void differentiate_head(const AttentionShape& a, const KernelCall& call, int64_t b, int64_t h, const Scratch& scratch) {
  constexpr auto kPlain = Transposed::kNo, kTransposed = Transposed::kYes;
  const int64_t stride = a.qkv_stride(), of_queries = a.qkv_offset(b, h, a.queries),
                of_keys = a.qkv_offset(b, h, a.keys);
  const auto head = [&](size_t part, int64_t offset) { return a.part<const T>(call.inputs, part) + offset; };
  const Rows32 q = widen_head(a.queries, a.width, head(0, of_queries), stride, scratch.queries);
  const Rows32 k = widen_head(a.keys, a.width, head(1, of_keys), stride, scratch.keys);
  const Rows32 v = widen_head(a.keys, a.width, head(2, of_keys), stride, scratch.values);
  const T* doutput = input<T>(call, a.number(5)) + a.offset(b, h, a.queries);
  const Rows32 dout = widen_head(a.queries, a.width, doutput, a.row_stride(), scratch.doutputs);
  T *dq_head = a.part<T>(call.outputs, 0) + of_queries, *dk_head = a.part<T>(call.outputs, 1) + of_keys,
    *dv_head = a.part<T>(call.outputs, 2) + of_keys;
  const Rows32 dq = result_head(a.width, dq_head, stride, scratch.dqueries);
  const Rows32 dk = result_head(a.width, dk_head, stride, scratch.dkeys);
  const Rows32 dv = result_head(a.width, dv_head, stride, scratch.dvalues);
  const Rows32 p{scratch.probabilities, a.keys}, dp{scratch.dprobabilities, a.keys}, masked{scratch.masked, a.keys};
  const float* lse = input<float>(call, a.number(4)) + (b * a.heads + h) * a.queries;
  clear_rows(a.keys, a.width, dk);
  clear_rows(a.keys, a.width, dv);
  for (int64_t s = 0; s < a.queries; s += kQueryRows) {
    const int64_t rows = std::min(kQueryRows, a.queries - s), seen = a.visible(s + rows - 1);
    const int64_t from = a.first_visible_of_block(call, b, s, rows), n = seen - from;
    multiply(kPlain, kTransposed, rows, n, a.width, a.scale, q.from(s), k.from(from), 0, p);
    multiply(kPlain, kTransposed, rows, n, a.width, 1, dout.from(s), v.from(from), 0, dp);
    score_gradients_of_block(a, call, {b, h, s, rows, from, seen}, lse, scratch);
    if (n == 0) clear_rows(rows, a.width, dq.from(s));
    multiply(kPlain, kPlain, rows, a.width, n, a.scale, dp, k.from(from), 0, dq.from(s));
    multiply(kTransposed, kPlain, n, a.width, rows, a.scale, dp, q.from(s), 1, dk.from(from));
    multiply(kTransposed, kPlain, n, a.width, rows, 1, masked, dout.from(s), 1, dv.from(from));
  }
  narrow_head(a.queries, a.width, dq, dq_head, stride);
  narrow_head(a.keys, a.width, dk, dk_head, stride);
  narrow_head(a.keys, a.width, dv, dv_head, stride);
}

}  // namespace

ALTIPLANO_CPU_KERNEL(attention_grad) {
  ALTIPLANO_ASSIGN(const AttentionShape a, AttentionShape::from(request, 6));
  const DType dtype = request.inputs[0].dtype;
  bool fits = same_dtypes(request.outputs, dtype) && request.inputs[a.number(4)].dtype == DType::kF32;
  for (size_t i = 0; i <= 5; ++i)
    fits = fits && (i == 4 || (a.packed && i < 3) || request.inputs[a.number(i)].dtype == dtype);
  if (!fits) return refuse_dtype(request, "f32 and bf16 with an f32 log-sum-exp");
  if (attends_in_tiles(a, dtype)) return make_tiled_attention_grad(a, context);
  return with_compute_type(request, dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return kernel_over_heads<T, Scratch>(a, context.threads, differentiate_head<T>);
  });
}

}  // namespace altiplano::cpu
