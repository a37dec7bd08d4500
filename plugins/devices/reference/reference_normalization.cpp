#include <algorithm>
#include <cmath>

#include "plugins/devices/reference/reference_kernel.hpp"

namespace altiplano::reference {
namespace {

/// Rows and row length of a tensor whose last dim is whole.
struct Rows {
  explicit Rows(const OperandLayout& layout) : rows(num_rows(layout.extents)), width(layout.extents.back()) {}
  int64_t rows, width;
};

template <typename T>
Form layer_norm(const KernelRequest& request) {
  return {
      [r = Rows(request.inputs[0]), epsilon = request.attributes.get_float("epsilon", 1e-5)](const KernelCall& call) {
        const T *w = input<T>(call, 1), *b = input<T>(call, 2);
        for (int64_t i = 0; i < r.rows; ++i) {
          const T* x = input<T>(call, 0) + i * r.width;
          T* y = output<T>(call, 0) + i * r.width;
          double sum = 0, squares = 0;
          for (int64_t j = 0; j < r.width; ++j) sum += static_cast<double>(x[j]);
          double mean = sum / static_cast<double>(r.width);
          for (int64_t j = 0; j < r.width; ++j)
            squares += (static_cast<double>(x[j]) - mean) * (static_cast<double>(x[j]) - mean);
          double rstd = 1 / std::sqrt(squares / static_cast<double>(r.width) + epsilon);
          for (int64_t j = 0; j < r.width; ++j)
            y[j] = static_cast<T>((static_cast<double>(x[j]) - mean) * rstd * static_cast<double>(w[j]) +
                                  static_cast<double>(b[j]));
          output<T>(call, 1)[i] = static_cast<T>(mean);
          output<T>(call, 2)[i] = static_cast<T>(rstd);
        }
      }};
}

/// dx = rstd (g - mean(g) - xhat mean(g xhat)) with g = dy w.
template <typename T>
Form layer_norm_grad_input(const KernelRequest& request) {
  return {[r = Rows(request.inputs[0])](const KernelCall& call) {
    const T* w = input<T>(call, 2);
    for (int64_t i = 0; i < r.rows; ++i) {
      const T *dy = input<T>(call, 0) + i * r.width, *x = input<T>(call, 1) + i * r.width;
      T* dx = output<T>(call, 0) + i * r.width;
      double mean = static_cast<double>(input<T>(call, 3)[i]), rstd = static_cast<double>(input<T>(call, 4)[i]);
      auto normed = [&](int64_t j) { return (static_cast<double>(x[j]) - mean) * rstd; };
      auto slope = [&](int64_t j) { return static_cast<double>(dy[j]) * static_cast<double>(w[j]); };
      double sum = 0, dot = 0;
      for (int64_t j = 0; j < r.width; ++j) {
        sum += slope(j);
        dot += slope(j) * normed(j);
      }
      double width = static_cast<double>(r.width);
      for (int64_t j = 0; j < r.width; ++j)
        dx[j] = static_cast<T>(rstd * (slope(j) - sum / width - normed(j) * dot / width));
    }
  }};
}

template <typename T>
Form layer_norm_grad_weight(const KernelRequest& request) {
  return {[r = Rows(request.inputs[0])](const KernelCall& call) {
    const T *dy = input<T>(call, 0), *x = input<T>(call, 1), *mean = input<T>(call, 2), *rstd = input<T>(call, 3);
    for (int64_t j = 0; j < r.width; ++j) {
      double dw = 0, db = 0;
      for (int64_t i = 0; i < r.rows; ++i) {
        double gradient = static_cast<double>(dy[i * r.width + j]);
        dw += gradient * (static_cast<double>(x[i * r.width + j]) - static_cast<double>(mean[i])) *
              static_cast<double>(rstd[i]);
        db += gradient;
      }
      output<T>(call, 0)[j] = static_cast<T>(dw);
      output<T>(call, 1)[j] = static_cast<T>(db);
    }
  }};
}

template <typename T>
Form softmax(const KernelRequest& request) {
  return {[r = Rows(request.inputs[0])](const KernelCall& call) {
    for (int64_t i = 0; i < r.rows; ++i) {
      const T* x = input<T>(call, 0) + i * r.width;
      T* y = output<T>(call, 0) + i * r.width;
      double largest = r.width == 0 ? 0 : static_cast<double>(*std::max_element(x, x + r.width)), sum = 0;
      for (int64_t j = 0; j < r.width; ++j) sum += std::exp(static_cast<double>(x[j]) - largest);
      for (int64_t j = 0; j < r.width; ++j) y[j] = static_cast<T>(std::exp(static_cast<double>(x[j]) - largest) / sum);
    }
  }};
}

template <typename T>
Form softmax_grad(const KernelRequest& request) {
  return {[r = Rows(request.inputs[0])](const KernelCall& call) {
    for (int64_t i = 0; i < r.rows; ++i) {
      const T *y = input<T>(call, 0) + i * r.width, *dy = input<T>(call, 1) + i * r.width;
      T* dx = output<T>(call, 0) + i * r.width;
      double dot = 0;
      for (int64_t j = 0; j < r.width; ++j) dot += static_cast<double>(y[j]) * static_cast<double>(dy[j]);
      for (int64_t j = 0; j < r.width; ++j)
        dx[j] = static_cast<T>(static_cast<double>(y[j]) * (static_cast<double>(dy[j]) - dot));
    }
  }};
}

}  // namespace

void add_normalization_kernels(Table& table) {
  table["layer_norm"] = {layer_norm<float>, layer_norm<double>};
  table["layer_norm_grad_input"] = {layer_norm_grad_input<float>, layer_norm_grad_input<double>};
  table["layer_norm_grad_weight"] = {layer_norm_grad_weight<float>, layer_norm_grad_weight<double>};
  table["softmax"] = {softmax<float>, softmax<double>};
  table["softmax_grad"] = {softmax_grad<float>, softmax_grad<double>};
}

}  // namespace altiplano::reference
