#include <algorithm>
#include <cmath>

#include "plugins/devices/reference/reference_kernel.hpp"

namespace altiplano::reference {
namespace {

/// Local sizes of q [b,s,h,k] and k, v [b,t,h,k], and where things lie.
struct Heads {
  /// `num_inputs`: of the op on three tensors q, k and v, before document starts, if it has them.
  Heads(const KernelRequest& request, size_t num_inputs)
      : packed(request.kind.starts_with("packed_")),
        q(packed ? part_of(request.inputs[0]) : request.inputs[0]),
        b(q.extents[0]),
        s(q.extents[1]),
        h(q.extents[2]),
        k(q.extents[3]),
        t(packed ? s : request.inputs[1].extents[1]),
        scale(request.attributes.get_float("scale", 1)),
        causal(request.attributes.get_int("causal") != 0),
        dropper(request, "dropout"),
        global_t(packed ? q.global[1] : request.inputs[1].global[1]),
        document_start(request.inputs.size() > number(num_inputs) ? static_cast<int>(number(num_inputs)) : -1) {}

  /// q (or k, or v) within qkv [b,s,3,h,k].
  static OperandLayout part_of(OperandLayout qkv) {
    for (std::vector<int64_t>* dims : {&qkv.extents, &qkv.origin, &qkv.global}) dims->erase(dims->begin() + 2);
    return qkv;
  }
  /// Number of the input that is `input` where q, k and v are three.
  size_t number(size_t input) const { return packed ? input - 2 : input; }
  /// q (0), k (1) or v (2) of inputs or of outputs.
  template <typename T, typename Pointers>
  T* part(const Pointers& pointers, int64_t i) const {
    return packed ? static_cast<T*>(pointers[0]) + i * h * k : static_cast<T*>(pointers[static_cast<size_t>(i)]);
  }
  int64_t query(int64_t bi, int64_t si, int64_t hi) const { return (bi * s + si) * row() + hi * k; }
  int64_t key(int64_t bi, int64_t ti, int64_t hi) const { return (bi * t + ti) * row() + hi * k; }
  int64_t row() const { return (packed ? 3 : 1) * h * k; }
  int64_t out(int64_t bi, int64_t si, int64_t hi) const { return ((bi * s + si) * h + hi) * k; }
  int64_t statistic(int64_t bi, int64_t hi, int64_t si) const { return (bi * h + hi) * s + si; }
  /// How many keys position si sees.
  int64_t visible(int64_t si) const { return causal ? std::min(t, si + 1) : t; }
  /// The first key that position si of sample bi sees.
  int64_t first(const KernelCall& call, int64_t bi, int64_t si) const {
    if (document_start < 0) return 0;
    return std::clamp<int64_t>(input<int32_t>(call, static_cast<size_t>(document_start))[bi * s + si], 0,
                               std::max<int64_t>(0, visible(si) - 1));
  }
  /// Factor of the probability of (si, ti): row-major index in the global [b,h,s,t].
  double drop(const KernelCall& call, int64_t bi, int64_t hi, int64_t si, int64_t ti) const {
    int64_t row = (origin_of(q, 0, call) + bi) * q.global[2] + origin_of(q, 2, call) + hi;
    return dropper.factor(call, (row * q.global[1] + si) * global_t + ti);
  }

  bool packed;
  OperandLayout q;
  int64_t b, s, h, k, t;
  double scale;
  bool causal;
  Dropper dropper;
  int64_t global_t;
  int document_start;  ///< an input; -1: none
};

template <typename T>
double dot(const T* x, const T* y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  return sum;
}

/// One query row: scores[first .. n) become probabilities; returns the log-sum-exp.
template <typename T>
double probabilities(const Heads& g, const T* query, const T* keys, int64_t bi, int64_t hi, int64_t first, int64_t n,
                     double* scores) {
  double largest = -INFINITY, sum = 0;
  for (int64_t ti = first; ti < n; ++ti) {
    scores[ti] = g.scale * dot(query, keys + g.key(bi, ti, hi), g.k);
    largest = std::max(largest, scores[ti]);
  }
  for (int64_t ti = first; ti < n; ++ti) sum += std::exp(scores[ti] - largest);
  double lse = largest + std::log(sum);
  for (int64_t ti = first; ti < n; ++ti) scores[ti] = std::exp(scores[ti] - lse);
  return lse;
}

template <typename F>
void for_each_query(const Heads& g, F f) {
  for (int64_t bi = 0; bi < g.b; ++bi)
    for (int64_t hi = 0; hi < g.h; ++hi)
      for (int64_t si = 0; si < g.s; ++si) f(bi, hi, si);
}

template <typename T>
Form attention(const KernelRequest& request) {
  Heads g(request, 3);
  auto run = [g](const KernelCall& call) {
    const T *q = g.part<const T>(call.inputs, 0), *k = g.part<const T>(call.inputs, 1),
            *v = g.part<const T>(call.inputs, 2);
    auto* p = static_cast<double*>(call.workspace);
    for_each_query(g, [&](int64_t bi, int64_t hi, int64_t si) {
      int64_t first = g.first(call, bi, si), n = g.visible(si);
      double lse = probabilities(g, q + g.query(bi, si, hi), k, bi, hi, first, n, p);
      output<T>(call, 1)[g.statistic(bi, hi, si)] = static_cast<T>(lse);
      for (int64_t ti = first; ti < n; ++ti) p[ti] *= g.drop(call, bi, hi, si, ti);
      T* o = output<T>(call, 0) + g.out(bi, si, hi);
      for (int64_t c = 0; c < g.k; ++c) {
        double sum = 0;
        for (int64_t ti = first; ti < n; ++ti) sum += p[ti] * static_cast<double>(v[g.key(bi, ti, hi) + c]);
        o[c] = static_cast<T>(sum);
      }
    });
  };
  return {run, g.t * static_cast<int64_t>(sizeof(double))};
}

/// Scratch of attention_grad: probabilities and their gradients of one query, sums of dk and dv of one head.
struct GradScratch {
  GradScratch(const Heads& g, void* workspace)
      : p(static_cast<double*>(workspace)), dp(p + g.t), dk(dp + g.t), dv(dk + g.t * g.k) {}
  static int64_t bytes(const Heads& g) { return (2 * g.t + 2 * g.t * g.k) * static_cast<int64_t>(sizeof(double)); }
  double *p, *dp, *dk, *dv;
};

/// Adds one query's part to dk and dv of its head and writes its dq.
template <typename T>
void query_gradient(const Heads& g, const KernelCall& call, const GradScratch& w, int64_t bi, int64_t hi, int64_t si) {
  const T *k = g.part<const T>(call.inputs, 1), *v = g.part<const T>(call.inputs, 2);
  const T *query = g.part<const T>(call.inputs, 0) + g.query(bi, si, hi),
          *d_o = input<T>(call, g.number(5)) + g.out(bi, si, hi);
  int64_t first = g.first(call, bi, si), n = g.visible(si);
  double lse = static_cast<double>(input<T>(call, g.number(4))[g.statistic(bi, hi, si)]), mean = 0;
  for (int64_t ti = first; ti < n; ++ti) {
    w.p[ti] = std::exp(g.scale * dot(query, k + g.key(bi, ti, hi), g.k) - lse);
    double keep = g.drop(call, bi, hi, si, ti);
    w.dp[ti] = keep * dot(d_o, v + g.key(bi, ti, hi), g.k);
    mean += w.p[ti] * w.dp[ti];
    for (int64_t c = 0; c < g.k; ++c) w.dv[ti * g.k + c] += w.p[ti] * keep * static_cast<double>(d_o[c]);
  }
  for (int64_t ti = first; ti < n; ++ti) w.dp[ti] = g.scale * w.p[ti] * (w.dp[ti] - mean);  // now of the score
  for (int64_t c = 0; c < g.k; ++c) {
    double dq = 0;
    for (int64_t ti = first; ti < n; ++ti) {
      dq += w.dp[ti] * static_cast<double>(k[g.key(bi, ti, hi) + c]);
      w.dk[ti * g.k + c] += w.dp[ti] * static_cast<double>(query[c]);
    }
    g.part<T>(call.outputs, 0)[g.query(bi, si, hi) + c] = static_cast<T>(dq);
  }
}

template <typename T>
Form attention_grad(const KernelRequest& request) {
  Heads g(request, 6);
  auto run = [g](const KernelCall& call) {
    GradScratch w(g, call.workspace);
    for (int64_t bi = 0; bi < g.b; ++bi)
      for (int64_t hi = 0; hi < g.h; ++hi) {
        std::fill(w.dk, w.dk + 2 * g.t * g.k, 0.0);
        for (int64_t si = 0; si < g.s; ++si) query_gradient<T>(g, call, w, bi, hi, si);
        for (int64_t i = 0; i < g.t * g.k; ++i) {
          int64_t at = g.key(bi, i / g.k, hi) + i % g.k;
          g.part<T>(call.outputs, 1)[at] = static_cast<T>(w.dk[i]);
          g.part<T>(call.outputs, 2)[at] = static_cast<T>(w.dv[i]);
        }
      }
  };
  return {run, GradScratch::bytes(g)};
}

}  // namespace

void add_attention_kernels(Table& table) {
  table["attention"] = {attention<float>, attention<double>};
  table["attention_grad"] = {attention_grad<float>, attention_grad<double>};
  table["packed_attention"] = table["attention"];
  table["packed_attention_grad"] = table["attention_grad"];
}

}  // namespace altiplano::reference
