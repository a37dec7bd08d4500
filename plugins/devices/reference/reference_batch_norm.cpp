#include <algorithm>
#include <cmath>

#include "plugins/devices/reference/reference_kernel.hpp"

namespace altiplano::reference {
namespace {

/// Pixels of an image [n,y,x,c] as rows of channels, and how many pixels of all devices a statistic is over.
struct Pixels {
  Pixels(const KernelRequest& request, size_t image)
      : rows(num_rows(request.inputs[image].extents)),
        channels(request.inputs[image].extents[3]),
        count(static_cast<double>(request.attributes.get_int("samples") * request.inputs[image].global[1] *
                                  request.inputs[image].global[2])),
        epsilon(request.attributes.get_float("epsilon", 1e-5)) {}

  int64_t rows, channels;
  double count, epsilon;
};

/// Mean and reciprocal deviation of one channel.
struct Moments {
  Moments(const Pixels& of, double sum, double squares)
      : mean(sum / of.count), rstd(1 / std::sqrt(std::max(0.0, squares / of.count - mean * mean) + of.epsilon)) {}
  double mean, rstd;
};

template <typename T>
Moments moments(const Pixels& of, const KernelCall& call, size_t first, int64_t channel) {
  return {of, static_cast<double>(input<T>(call, first)[channel]),
          static_cast<double>(input<T>(call, first + 1)[channel])};
}

template <typename T>
Form batch_moments(const KernelRequest& request) {
  return {[of = Pixels(request, 0)](const KernelCall& call) {
    const T* x = input<T>(call, 0);
    for (int64_t c = 0; c < of.channels; ++c) {
      double sum = 0, squares = 0;
      for (int64_t i = 0; i < of.rows; ++i) {
        const double value = static_cast<double>(x[i * of.channels + c]);
        sum += value;
        squares += value * value;
      }
      output<T>(call, 0)[c] = static_cast<T>(sum);
      output<T>(call, 1)[c] = static_cast<T>(squares);
    }
  }};
}

template <typename T>
Form batch_norm(const KernelRequest& request) {
  return {[of = Pixels(request, 0)](const KernelCall& call) {
    const T *x = input<T>(call, 0), *w = input<T>(call, 3), *b = input<T>(call, 4);
    for (int64_t c = 0; c < of.channels; ++c) {
      const Moments m = moments<T>(of, call, 1, c);
      for (int64_t i = c; i < of.rows * of.channels; i += of.channels)
        output<T>(call, 0)[i] = static_cast<T>(
            (static_cast<double>(x[i]) - m.mean) * m.rstd * static_cast<double>(w[c]) + static_cast<double>(b[c]));
    }
  }};
}

template <typename T>
Form batch_norm_grad_sums(const KernelRequest& request) {
  return {[of = Pixels(request, 1)](const KernelCall& call) {
    const T *dy = input<T>(call, 0), *x = input<T>(call, 1);
    for (int64_t c = 0; c < of.channels; ++c) {
      const Moments m = moments<T>(of, call, 2, c);
      double dw = 0, db = 0;
      for (int64_t i = c; i < of.rows * of.channels; i += of.channels) {
        dw += static_cast<double>(dy[i]) * (static_cast<double>(x[i]) - m.mean) * m.rstd;
        db += static_cast<double>(dy[i]);
      }
      output<T>(call, 0)[c] = static_cast<T>(dw);
      output<T>(call, 1)[c] = static_cast<T>(db);
    }
  }};
}

/// dx = w rstd (dy - db/N - xhat dw/N).
template <typename T>
Form batch_norm_grad_input(const KernelRequest& request) {
  return {[of = Pixels(request, 1)](const KernelCall& call) {
    const T *dy = input<T>(call, 0), *x = input<T>(call, 1);
    for (int64_t c = 0; c < of.channels; ++c) {
      const Moments m = moments<T>(of, call, 2, c);
      const double w = static_cast<double>(input<T>(call, 4)[c]);
      const double dw = static_cast<double>(input<T>(call, 5)[c]) / of.count;
      const double db = static_cast<double>(input<T>(call, 6)[c]) / of.count;
      for (int64_t i = c; i < of.rows * of.channels; i += of.channels) {
        const double normed = (static_cast<double>(x[i]) - m.mean) * m.rstd;
        output<T>(call, 0)[i] = static_cast<T>(w * m.rstd * (static_cast<double>(dy[i]) - db - normed * dw));
      }
    }
  }};
}

}  // namespace

void add_batch_norm_kernels(Table& table) {
  table["batch_moments"] = {batch_moments<float>, batch_moments<double>};
  table["batch_norm"] = {batch_norm<float>, batch_norm<double>};
  table["batch_norm_grad_sums"] = {batch_norm_grad_sums<float>, batch_norm_grad_sums<double>};
  table["batch_norm_grad_input"] = {batch_norm_grad_input<float>, batch_norm_grad_input<double>};
}

}  // namespace altiplano::reference
