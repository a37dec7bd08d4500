// attention and its gradient over bf16 heads where the CPU multiplies bf16 itself (AMX, AVX512_BF16): the formulas of
// attention.cpp and attention_grad.cpp, with heads copied side by side, and probabilities and score gradients rounded
// to bf16 before they are multiplied. Sums of products are f32. A block of query rows goes against all keys up to the
// last it may see.
#include "plugins/devices/cpu/attention_tiles.hpp"

#include <cmath>
#include <cstring>

#include "framework/kernels/pointwise.hpp"
#include "plugins/devices/cpu/tile_product.hpp"

namespace altiplano::cpu {
namespace {

/// A block of query rows, the keys that it sees (from the first on), and its products; none where it sees no key.
struct TileBlock {
  int64_t s = 0, rows = 0, seen = 0;
  TileProduct* scores = nullptr;  ///< [rows,w] x [seen,w]^T -> f32: q k^T and do v^T
  TileProduct* values = nullptr;  ///< [rows,seen] x [seen,w] -> bf16: p v and ds k
  TileProduct* sums = nullptr;    ///< [seen,w] += [rows,seen]^T x [rows,w]: ds^T q and p^T do
};

/// Places of one thread's scratch, in bytes.
class ScratchPlaces {
 public:
  int64_t take(int64_t bytes) { return std::exchange(total_, total_ + round_up_64(bytes)); }
  int64_t total() const { return total_; }

 private:
  int64_t total_ = 0;
};

/// What both kernels share: blocks, heads, scratch.
class TiledHeads {
 public:
  TiledHeads(const AttentionShape& a, const CpuContext& context, bool with_sums)
      : a_(a), products_(std::make_unique<TileProducts>(context, context.threads)) {
    for (int64_t s = 0; s < a.queries; s += kQueryRows) {
      TileBlock block{s, std::min(kQueryRows, a.queries - s)};
      block.seen = a.visible(s + block.rows - 1);
      block.scores = products_->get({.m = block.rows, .n = block.seen, .k = a.width, .b_transposed = true});
      block.values = products_->get({.m = block.rows, .n = a.width, .k = block.seen, .result = DType::kBF16});
      if (with_sums)
        block.sums =
            products_->get({.m = block.seen, .n = a.width, .k = block.rows, .a_transposed = true, .adds = true});
      blocks_.push_back(block);
    }
    product_scratch_ = places_.take(products_->scratch_bytes());
  }

 protected:
  int64_t take(int64_t elements, int64_t size) { return places_.take(elements * size); }
  int64_t take_head(int64_t rows) { return take(rows * a_.width, sizeof(BFloat16)); }
  int64_t scratch_bytes() const { return places_.total(); }

  /// Rows of a head side by side, and back.
  void gather(int64_t rows, const BFloat16* head, int64_t stride, BFloat16* dense) const {
    for (int64_t r = 0; r < rows; ++r)
      std::memcpy(dense + r * a_.width, head + r * stride, static_cast<size_t>(a_.width) * sizeof(BFloat16));
  }
  void scatter(int64_t rows, const BFloat16* dense, BFloat16* head, int64_t stride) const {
    for (int64_t r = 0; r < rows; ++r)
      std::memcpy(head + r * stride, dense + r * a_.width, static_cast<size_t>(a_.width) * sizeof(BFloat16));
  }
  void clear(int64_t rows, BFloat16* head, int64_t stride) const {
    for (int64_t r = 0; r < rows; ++r) std::fill_n(head + r * stride, a_.width, BFloat16{0});
  }
  /// The global position of the mask's first element of a row that sees keys from `first` on.
  uint64_t mask_index(const KernelCall& call, int64_t b, int64_t h, int64_t s, int64_t first) const {
    return a_.mask_index(b, h, s, call.batch_offset) + static_cast<uint64_t>(first);
  }
  bool drops(const KernelCall& call) const { return a_.dropout && call.step->training; }

  AttentionShape a_;
  std::vector<TileBlock> blocks_;
  int64_t product_scratch_ = 0;

 private:
  std::unique_ptr<TileProducts> products_;
  ScratchPlaces places_;
};

/// The part of a block's row that is computed: the keys that the row sees, and a few more up to whole vectors, whose
/// scores are made as low as can be and whose results are cleared.
struct RowSpan {
  int64_t first = 0, end = 0, padded = 0, seen = 0;

  RowSpan(int64_t first_visible, int64_t visible, int64_t all)
      : first(first_visible),
        end(visible),
        padded(std::min(all, first_visible + (visible - first_visible + kLanes - 1) / kLanes * kLanes)),
        seen(all) {}
  bool is_empty() const { return end == first; }
  int64_t computed() const { return padded - first; }
  void pad(float* row, float value) const { std::fill(row + end, row + padded, value); }
  void clear_rest(BFloat16* row) const {
    std::fill(row, row + first, BFloat16{0});
    std::fill(row + end, row + seen, BFloat16{0});
  }

 private:
  static constexpr int64_t kLanes = 16;
};

// Scores of the keys that a row sees become probabilities in three passes.

ALTIPLANO_CLONES float scale_and_find_highest(int64_t n, float scale, float* scores) {
  float highest = -HUGE_VALF;
#pragma omp simd reduction(max : highest)
  for (int64_t t = 0; t < n; ++t) {
    scores[t] *= scale;
    highest = scores[t] > highest ? scores[t] : highest;
  }
  return highest;
}

ALTIPLANO_CLONES float exponentials(int64_t n, float highest, float* scores) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t t = 0; t < n; ++t) {
    scores[t] = exp_at_most_one(scores[t] - highest);
    sum += scores[t];
  }
  return sum;
}

ALTIPLANO_CLONES void narrow_scaled(int64_t n, float scale, const float* x, BFloat16* y) {
#pragma omp simd
  for (int64_t t = 0; t < n; ++t) y[t] = bfloat16_from_float(x[t] * scale);
}

ALTIPLANO_CLONES void narrow_kept(int64_t n, float scale, const float* x, const float* factors, BFloat16* y) {
#pragma omp simd
  for (int64_t t = 0; t < n; ++t) y[t] = bfloat16_from_float(kept(x[t] * scale, factors[t]));
}

class TiledForward : public TiledHeads {
 public:
  TiledForward(const AttentionShape& a, const CpuContext& context) : TiledHeads(a, context, false) {
    queries_ = take_head(a.queries), keys_ = take_head(a.keys), values_ = take_head(a.keys);
    results_ = take_head(kQueryRows);
    scores_ = take(kQueryRows * a.keys, sizeof(float));
    probabilities_ = take(kQueryRows * a.keys, sizeof(BFloat16));
  }
  using TiledHeads::scratch_bytes;

  void run_head(const KernelCall& call, int thread, int64_t b, int64_t h, char* scratch) const {
    auto* q = reinterpret_cast<BFloat16*>(scratch + queries_);
    auto* k = reinterpret_cast<BFloat16*>(scratch + keys_);
    auto* v = reinterpret_cast<BFloat16*>(scratch + values_);
    auto* result = reinterpret_cast<BFloat16*>(scratch + results_);
    auto* scores = reinterpret_cast<float*>(scratch + scores_);
    auto* probabilities = reinterpret_cast<BFloat16*>(scratch + probabilities_);
    const auto input_head = [&](size_t part, int64_t rows) {
      return a_.part<const BFloat16>(call.inputs, part) + a_.qkv_offset(b, h, rows);
    };
    gather(a_.queries, input_head(0, a_.queries), a_.qkv_stride(), q);
    gather(a_.keys, input_head(1, a_.keys), a_.qkv_stride(), k);
    gather(a_.keys, input_head(2, a_.keys), a_.qkv_stride(), v);
    BFloat16* output_head = output<BFloat16>(call) + a_.offset(b, h, a_.queries);
    float* lse = output<float>(call, 1) + (b * a_.heads + h) * a_.queries;
    for (const TileBlock& block : blocks_) {
      BFloat16* to = output_head + block.s * a_.row_stride();
      if (block.seen == 0) {
        clear(block.rows, to, a_.row_stride());
        std::fill_n(lse + block.s, block.rows, -HUGE_VALF);
        continue;
      }
      block.scores->run(thread, q + block.s * a_.width, k, scores, scratch + product_scratch_);
      for (int64_t r = 0; r < block.rows; ++r)
        lse[block.s + r] = probabilities_of_row(call, b, h, block.s + r, block.seen, scores + r * block.seen,
                                                probabilities + r * block.seen);
      block.values->run(thread, probabilities, v, result, scratch + product_scratch_);
      scatter(block.rows, result, to, a_.row_stride());
    }
  }

 private:
  /// Returns the log-sum-exp of the row's scaled scores; no visible key: probabilities of 0 and -inf.
  float probabilities_of_row(const KernelCall& call, int64_t b, int64_t h, int64_t s, int64_t seen, float* scores,
                             BFloat16* probabilities) const {
    const RowSpan span(a_.first_visible(call, b, s), a_.visible(s), seen);
    if (span.is_empty()) {
      span.clear_rest(probabilities);
      return -HUGE_VALF;
    }
    const int64_t first = span.first, n = span.computed();
    span.pad(scores, std::copysign(HUGE_VALF, -a_.scale));
    const float highest = scale_and_find_highest(n, a_.scale, scores + first);
    const float sum = exponentials(n, highest, scores + first), scale = 1.0f / sum;
    if (drops(call)) {
      const auto narrow = [&](int64_t at, int64_t count, const float* factors) {
        narrow_kept(count, scale, scores + first + at, factors, probabilities + first + at);
      };
      a_.dropout->in_pieces(static_cast<uint64_t>(call.step->step), mask_index(call, b, h, s, first), n, narrow);
    } else {
      narrow_scaled(n, scale, scores + first, probabilities + first);
    }
    span.clear_rest(probabilities);
    return highest + std::log(sum);
  }

  int64_t queries_, keys_, values_, results_, scores_, probabilities_;
};

// In the gradient, scores become probabilities again by their log-sum-exp; with them the sum of p dp.

ALTIPLANO_CLONES float probabilities_and_dot(int64_t n, float scale, float lse, float* scores, const float* dp,
                                             BFloat16* masked) {
  float dot = 0;
#pragma omp simd reduction(+ : dot)
  for (int64_t t = 0; t < n; ++t) {
    const float p = exp_at_most_one(std::fma(scores[t], scale, -lse));
    scores[t] = p;
    masked[t] = bfloat16_from_float(p);
    dot += p * dp[t];
  }
  return dot;
}

ALTIPLANO_CLONES float kept_probabilities_and_dot(int64_t n, float scale, float lse, const float* factors,
                                                  float* scores, float* dp, BFloat16* masked) {
  float dot = 0;
#pragma omp simd reduction(+ : dot)
  for (int64_t t = 0; t < n; ++t) {
    const float p = exp_at_most_one(std::fma(scores[t], scale, -lse));
    scores[t] = p;
    masked[t] = bfloat16_from_float(kept(p, factors[t]));
    dp[t] = kept(dp[t], factors[t]);
    dot += p * dp[t];
  }
  return dot;
}

ALTIPLANO_CLONES void narrow_score_gradients(int64_t n, float scale, float dot, const float* p, const float* dp,
                                             BFloat16* ds) {
#pragma omp simd
  for (int64_t t = 0; t < n; ++t) ds[t] = bfloat16_from_float(p[t] * (dp[t] - dot) * scale);
}

class TiledBackward : public TiledHeads {
 public:
  TiledBackward(const AttentionShape& a, const CpuContext& context) : TiledHeads(a, context, true) {
    queries_ = take_head(a.queries), doutputs_ = take_head(a.queries), dqueries_ = take_head(kQueryRows);
    keys_ = take_head(a.keys), values_ = take_head(a.keys);
    dkeys_ = take(a.keys * a.width, sizeof(float)), dvalues_ = take(a.keys * a.width, sizeof(float));
    for (int64_t* place : {&scores_, &dprobabilities_}) *place = take(kQueryRows * a.keys, sizeof(float));
    for (int64_t* place : {&masked_, &dscores_}) *place = take(kQueryRows * a.keys, sizeof(BFloat16));
  }
  using TiledHeads::scratch_bytes;

  void run_head(const KernelCall& call, int thread, int64_t b, int64_t h, char* scratch) const {
    const auto narrow = [&](int64_t place) { return reinterpret_cast<BFloat16*>(scratch + place); };
    const auto wide = [&](int64_t place) { return reinterpret_cast<float*>(scratch + place); };
    BFloat16 *q = narrow(queries_), *k = narrow(keys_), *v = narrow(values_), *dout = narrow(doutputs_);
    BFloat16 *dq = narrow(dqueries_), *masked = narrow(masked_), *ds = narrow(dscores_);
    float *dk = wide(dkeys_), *dv = wide(dvalues_), *scores = wide(scores_), *dp = wide(dprobabilities_);
    char* products = scratch + product_scratch_;
    gather_inputs(call, b, h, q, k, v, dout);
    std::fill_n(dk, a_.keys * a_.width, 0.0f);
    std::fill_n(dv, a_.keys * a_.width, 0.0f);
    const float* lse = input<float>(call, a_.number(4)) + (b * a_.heads + h) * a_.queries;
    BFloat16* dq_head = a_.part<BFloat16>(call.outputs, 0) + a_.qkv_offset(b, h, a_.queries);
    for (const TileBlock& block : blocks_) {
      BFloat16* to = dq_head + block.s * a_.qkv_stride();
      if (block.seen == 0) {
        clear(block.rows, to, a_.qkv_stride());
        continue;
      }
      const BFloat16 *rows_q = q + block.s * a_.width, *rows_dout = dout + block.s * a_.width;
      block.scores->run(thread, rows_q, k, scores, products);
      block.scores->run(thread, rows_dout, v, dp, products);
      for (int64_t r = 0; r < block.rows; ++r) {
        const int64_t at = r * block.seen, s = block.s + r;
        differentiate_row(call, b, h, s, block.seen, lse[s], scores + at, dp + at, masked + at, ds + at);
      }
      block.values->run(thread, ds, k, dq, products);
      scatter(block.rows, dq, to, a_.qkv_stride());
      block.sums->run(thread, ds, rows_q, dk, products);
      block.sums->run(thread, masked, rows_dout, dv, products);
    }
    narrow_head(a_.keys, a_.width, {dk, a_.width}, a_.part<BFloat16>(call.outputs, 1) + a_.qkv_offset(b, h, a_.keys),
                a_.qkv_stride());
    narrow_head(a_.keys, a_.width, {dv, a_.width}, a_.part<BFloat16>(call.outputs, 2) + a_.qkv_offset(b, h, a_.keys),
                a_.qkv_stride());
  }

 private:
  void gather_inputs(const KernelCall& call, int64_t b, int64_t h, BFloat16* q, BFloat16* k, BFloat16* v,
                     BFloat16* dout) const {
    const auto input_head = [&](size_t part, int64_t rows) {
      return a_.part<const BFloat16>(call.inputs, part) + a_.qkv_offset(b, h, rows);
    };
    gather(a_.queries, input_head(0, a_.queries), a_.qkv_stride(), q);
    gather(a_.keys, input_head(1, a_.keys), a_.qkv_stride(), k);
    gather(a_.keys, input_head(2, a_.keys), a_.qkv_stride(), v);
    gather(a_.queries, input<BFloat16>(call, a_.number(5)) + a_.offset(b, h, a_.queries), a_.row_stride(), dout);
  }

  void differentiate_row(const KernelCall& call, int64_t b, int64_t h, int64_t s, int64_t seen, float lse,
                         float* scores, float* dp, BFloat16* masked, BFloat16* ds) const {
    const RowSpan span(a_.first_visible(call, b, s), a_.visible(s), seen);
    const int64_t first = span.first, n = span.computed();
    span.pad(scores, std::copysign(HUGE_VALF, -a_.scale));
    span.pad(dp, 0.0f);
    float dot = 0;
    if (drops(call)) {
      const auto differentiate = [&](int64_t piece, int64_t count, const float* factors) {
        const int64_t at = first + piece;
        dot += kept_probabilities_and_dot(count, a_.scale, lse, factors, scores + at, dp + at, masked + at);
      };
      a_.dropout->in_pieces(static_cast<uint64_t>(call.step->step), mask_index(call, b, h, s, first), n, differentiate);
    } else {
      dot = probabilities_and_dot(n, a_.scale, lse, scores + first, dp + first, masked + first);
    }
    narrow_score_gradients(n, a_.scale, dot, scores + first, dp + first, ds + first);
    span.clear_rest(masked);
    span.clear_rest(ds);
  }

  int64_t queries_, doutputs_, dqueries_, keys_, values_, dkeys_, dvalues_, scores_, dprobabilities_, masked_, dscores_;
};

template <typename Heads>
Result<std::unique_ptr<Kernel>> kernel_of_heads(const AttentionShape& a, const CpuContext& context) {
  auto heads = std::make_unique<Heads>(a, context);
  const int64_t scratch = heads->scratch_bytes();
  return kernel_of(
      [a, scratch, heads = std::move(heads), threads = context.threads](const KernelCall& call) {
        parallel_parts(threads, a.batch * a.heads, [&](int part, int64_t begin, int64_t end) {
          multiply_alone();
          for (int64_t i = begin; i < end; ++i)
            heads->run_head(call, part, i / a.heads, i % a.heads, static_cast<char*>(call.workspace) + part * scratch);
        });
      },
      scratch * context.threads, fmt::format("blocks of {} rows in bf16", kQueryRows));
}

}  // namespace

bool attends_in_tiles(const AttentionShape& a, DType dtype) {
  return dtype == DType::kBF16 && has_fast_bf16() && a.batch * a.heads * a.queries * a.keys * a.width > 0;
}

Result<std::unique_ptr<Kernel>> make_tiled_attention(const AttentionShape& a, const CpuContext& context) {
  return kernel_of_heads<TiledForward>(a, context);
}

Result<std::unique_ptr<Kernel>> make_tiled_attention_grad(const AttentionShape& a, const CpuContext& context) {
  return kernel_of_heads<TiledBackward>(a, context);
}

}  // namespace altiplano::cpu
