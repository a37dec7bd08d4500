#include <cmath>

#include "plugins/devices/reference/reference_kernel.hpp"

namespace altiplano::reference {
namespace {

/// Logits [b,s,v] as tokens x local vocabulary.
struct Tokens {
  explicit Tokens(const OperandLayout& logits)
      : layout(logits), tokens(num_rows(logits.extents)), width(logits.extents.back()) {}
  /// Local column of a label, -1 when it is ignored or outside the box.
  int64_t column(const KernelCall& call, int32_t label) const {
    int64_t at = label - origin_of(layout, layout.extents.size() - 1, call);
    return label >= 0 && at >= 0 && at < width ? at : -1;
  }
  OperandLayout layout;
  int64_t tokens, width;
};

template <typename T>
Form exp_sum(const KernelRequest& request) {
  return {[g = Tokens(request.inputs[0])](const KernelCall& call) {
    for (int64_t i = 0; i < g.tokens; ++i) {
      double sum = 0, largest = static_cast<double>(input<T>(call, 1)[i]);
      for (int64_t j = 0; j < g.width; ++j)
        sum += std::exp(static_cast<double>(input<T>(call, 0)[i * g.width + j]) - largest);
      output<T>(call, 0)[i] = static_cast<T>(sum);
    }
  }};
}

template <typename T>
Form pick(const KernelRequest& request) {
  return {[g = Tokens(request.inputs[0])](const KernelCall& call) {
    for (int64_t i = 0; i < g.tokens; ++i) {
      int64_t column = g.column(call, input<int32_t>(call, 1)[i]);
      output<T>(call, 0)[i] = column < 0 ? T(0) : input<T>(call, 0)[i * g.width + column];
    }
  }};
}

template <typename T>
Form nll(const KernelRequest& request) {
  return {[n = num_elements(request.inputs[0].extents)](const KernelCall& call) {
    const T *largest = input<T>(call, 0), *sum = input<T>(call, 1), *picked = input<T>(call, 2);
    for (int64_t i = 0; i < n; ++i) {
      double loss =
          std::log(static_cast<double>(sum[i])) + static_cast<double>(largest[i]) - static_cast<double>(picked[i]);
      output<T>(call, 0)[i] = input<int32_t>(call, 3)[i] < 0 ? T(0) : static_cast<T>(loss);
    }
  }};
}

Form count_valid(const KernelRequest& request) {
  return {[n = num_elements(request.inputs[0].extents)](const KernelCall& call) {
    double valid = 0;
    for (int64_t i = 0; i < n; ++i) valid += input<int32_t>(call, 0)[i] >= 0;
    *output<double>(call, 0) = valid;
  }};
}

template <typename T>
Form cross_entropy_grad(const KernelRequest& request) {
  return {[g = Tokens(request.inputs[0])](const KernelCall& call) {
    for (int64_t i = 0; i < g.tokens; ++i) {
      const T* logits = input<T>(call, 0) + i * g.width;
      double largest = static_cast<double>(input<T>(call, 1)[i]), sum = static_cast<double>(input<T>(call, 2)[i]);
      int32_t label = input<int32_t>(call, 3)[i];
      double dloss = label < 0 ? 0 : static_cast<double>(input<T>(call, 4)[i]);
      int64_t column = g.column(call, label);
      for (int64_t j = 0; j < g.width; ++j) {
        double p = std::exp(static_cast<double>(logits[j]) - largest) / sum;
        output<T>(call, 0)[i * g.width + j] = static_cast<T>(label < 0 ? 0 : (p - (j == column ? 1 : 0)) * dloss);
      }
    }
  }};
}

}  // namespace

void add_loss_kernels(Table& table) {
  table["exp_sum"] = {exp_sum<float>, exp_sum<double>};
  table["pick"] = {pick<float>, pick<double>};
  table["nll"] = {nll<float>, nll<double>};
  table["count_valid"] = {nullptr, count_valid};
  table["cross_entropy_grad"] = {cross_entropy_grad<float>, cross_entropy_grad<double>};
}

}  // namespace altiplano::reference
