#include <algorithm>
#include <limits>

#include "plugins/devices/reference/reference_kernel.hpp"

namespace altiplano::reference {
namespace {

/// Local extents of an image [n,y,x,c], and where element (n, y, x, 0) lies.
struct Image {
  explicit Image(const OperandLayout& layout)
      : n(layout.extents[0]), y(layout.extents[1]), x(layout.extents[2]), c(layout.extents[3]) {}
  int64_t at(int64_t sample, int64_t row, int64_t column) const { return ((sample * y + row) * x + column) * c; }
  int64_t n, y, x, c;
};

/// Pairs of a place in the image and one of the result that a window brings together.
struct Window {
  Window(const KernelRequest& request, int64_t num_rows, int64_t num_columns)
      : stride(request.attributes.get_int("stride", 1)),
        padding(request.attributes.get_int("padding", 0)),
        rows(num_rows),
        columns(num_columns) {}

  /// visit(sample, y, x, u, v, p, q) for what lies inside the image, in the order of results, then of the window.
  template <typename Visit>
  void for_each(const Image& image, const Image& result, Visit visit) const {
    for (int64_t n = 0; n < result.n; ++n)
      for (int64_t u = 0; u < result.y; ++u)
        for (int64_t v = 0; v < result.x; ++v)
          for (int64_t p = 0; p < rows; ++p)
            for (int64_t q = 0; q < columns; ++q) {
              const int64_t y = u * stride + p - padding, x = v * stride + q - padding;
              if (y >= 0 && y < image.y && x >= 0 && x < image.x) visit(n, y, x, u, v, p, q);
            }
  }

  int64_t stride, padding, rows, columns;
};

/// Sums in double of a result that many places of a window add to; rounded at the end.
class Sums {
 public:
  explicit Sums(int64_t elements) : bytes_(elements * static_cast<int64_t>(sizeof(double))) {}
  int64_t bytes() const { return bytes_; }
  double* clear(const KernelCall& call) const {
    auto* sums = static_cast<double*>(call.workspace);
    std::fill_n(sums, bytes_ / static_cast<int64_t>(sizeof(double)), 0.0);
    return sums;
  }
  template <typename T>
  void store_as(const double* sums, T* out) const {
    for (int64_t i = 0; i < bytes_ / static_cast<int64_t>(sizeof(double)); ++i) out[i] = static_cast<T>(sums[i]);
  }

 private:
  int64_t bytes_;
};

template <typename T>
Form conv2d(const KernelRequest& request) {
  const Image image(request.inputs[0]), result(request.outputs[0]);
  const auto& filter = request.inputs[1].extents;
  const Window window(request, filter[0], filter[1]);
  const Sums sums(num_elements(request.outputs[0].extents));
  return {[=](const KernelCall& call) {
            const T *x = input<T>(call, 0), *w = input<T>(call, 1);
            double* z = sums.clear(call);
            window.for_each(image, result, [&](auto n, auto iy, auto ix, auto u, auto v, auto p, auto q) {
              const T *pixel = x + image.at(n, iy, ix), *weights = w + (p * window.columns + q) * image.c * result.c;
              double* sum = z + result.at(n, u, v);
              for (int64_t c = 0; c < image.c; ++c)
                for (int64_t o = 0; o < result.c; ++o)
                  sum[o] += static_cast<double>(pixel[c]) * static_cast<double>(weights[c * result.c + o]);
            });
            sums.store_as(z, output<T>(call, 0));
          },
          sums.bytes()};
}

template <typename T>
Form conv2d_grad_input(const KernelRequest& request) {
  const Image result(request.inputs[0]), image(request.outputs[0]);
  const auto& filter = request.inputs[1].extents;
  const Window window(request, filter[0], filter[1]);
  const Sums sums(num_elements(request.outputs[0].extents));
  return {[=](const KernelCall& call) {
            const T *dz = input<T>(call, 0), *w = input<T>(call, 1);
            double* dx = sums.clear(call);
            window.for_each(image, result, [&](auto n, auto iy, auto ix, auto u, auto v, auto p, auto q) {
              const T *slope = dz + result.at(n, u, v), *weights = w + (p * window.columns + q) * image.c * result.c;
              double* sum = dx + image.at(n, iy, ix);
              for (int64_t c = 0; c < image.c; ++c)
                for (int64_t o = 0; o < result.c; ++o)
                  sum[c] += static_cast<double>(slope[o]) * static_cast<double>(weights[c * result.c + o]);
            });
            sums.store_as(dx, output<T>(call, 0));
          },
          sums.bytes()};
}

template <typename T>
Form conv2d_grad_weight(const KernelRequest& request) {
  const Image result(request.inputs[0]), image(request.inputs[1]);
  const auto& filter = request.outputs[0].extents;
  const Window window(request, filter[0], filter[1]);
  const Sums sums(num_elements(filter));
  return {[=](const KernelCall& call) {
            const T *dz = input<T>(call, 0), *x = input<T>(call, 1);
            double* dw = sums.clear(call);
            window.for_each(image, result, [&](auto n, auto iy, auto ix, auto u, auto v, auto p, auto q) {
              const T *slope = dz + result.at(n, u, v), *pixel = x + image.at(n, iy, ix);
              double* sum = dw + (p * window.columns + q) * image.c * result.c;
              for (int64_t c = 0; c < image.c; ++c)
                for (int64_t o = 0; o < result.c; ++o)
                  sum[c * result.c + o] += static_cast<double>(pixel[c]) * static_cast<double>(slope[o]);
            });
            sums.store_as(dw, output<T>(call, 0));
          },
          sums.bytes()};
}

template <typename T>
Form max_pool(const KernelRequest& request) {
  const Image image(request.inputs[0]), result(request.outputs[0]);
  const int64_t size = request.attributes.get_int("window");
  const Window window(request, size, size);
  return {[=, count = num_elements(request.outputs[0].extents)](const KernelCall& call) {
    const T* x = input<T>(call, 0);
    T* z = output<T>(call, 0);
    std::fill_n(z, count, -std::numeric_limits<T>::infinity());
    window.for_each(image, result, [&](auto n, auto iy, auto ix, auto u, auto v, auto, auto) {
      for (int64_t c = 0; c < image.c; ++c) {
        T& most = z[result.at(n, u, v) + c];
        most = std::max(most, x[image.at(n, iy, ix) + c]);
      }
    });
  }};
}

/// `found` says of each result whether its maximum was met.
template <typename T>
Form max_pool_grad(const KernelRequest& request) {
  const Image image(request.inputs[0]), result(request.inputs[1]);
  const int64_t size = request.attributes.get_int("window"), results = num_elements(request.inputs[1].extents);
  const Window window(request, size, size);
  return {[=, elements = num_elements(request.outputs[0].extents)](const KernelCall& call) {
            const T *x = input<T>(call, 0), *z = input<T>(call, 1), *dz = input<T>(call, 2);
            T* dx = output<T>(call, 0);
            auto* found = static_cast<char*>(call.workspace);
            std::fill_n(dx, elements, T{0});
            std::fill_n(found, results, char{0});
            window.for_each(image, result, [&](auto n, auto iy, auto ix, auto u, auto v, auto, auto) {
              for (int64_t c = 0; c < image.c; ++c) {
                const int64_t from = image.at(n, iy, ix) + c, to = result.at(n, u, v) + c;
                if (found[to] != 0 || x[from] != z[to]) continue;
                found[to] = 1;
                dx[from] = static_cast<T>(dx[from] + dz[to]);
              }
            });
          },
          results};
}

template <typename T>
Form mean_pool(const KernelRequest& request) {
  return {[image = Image(request.inputs[0])](const KernelCall& call) {
    const int64_t pixels = image.y * image.x;
    for (int64_t n = 0; n < image.n; ++n)
      for (int64_t c = 0; c < image.c; ++c) {
        const T* x = input<T>(call, 0) + image.at(n, 0, 0) + c;
        double sum = 0;
        for (int64_t i = 0; i < pixels; ++i) sum += static_cast<double>(x[i * image.c]);
        output<T>(call, 0)[n * image.c + c] = static_cast<T>(sum / static_cast<double>(pixels));
      }
  }};
}

template <typename T>
Form mean_pool_grad(const KernelRequest& request) {
  return {[image = Image(request.outputs[0])](const KernelCall& call) {
    const int64_t pixels = image.y * image.x;
    for (int64_t n = 0; n < image.n; ++n)
      for (int64_t i = 0; i < pixels; ++i)
        for (int64_t c = 0; c < image.c; ++c)
          output<T>(call, 0)[(n * pixels + i) * image.c + c] =
              static_cast<T>(static_cast<double>(input<T>(call, 0)[n * image.c + c]) / static_cast<double>(pixels));
  }};
}

}  // namespace

void add_convolution_kernels(Table& table) {
  table["conv2d"] = {conv2d<float>, conv2d<double>};
  table["conv2d_grad_input"] = {conv2d_grad_input<float>, conv2d_grad_input<double>};
  table["conv2d_grad_weight"] = {conv2d_grad_weight<float>, conv2d_grad_weight<double>};
  table["max_pool"] = {max_pool<float>, max_pool<double>};
  table["mean_pool"] = {mean_pool<float>, mean_pool<double>};
  table["mean_pool_grad"] = {mean_pool_grad<float>, mean_pool_grad<double>};
  table["max_pool_grad"] = {max_pool_grad<float>, max_pool_grad<double>};
}

}  // namespace altiplano::reference
