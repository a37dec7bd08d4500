#include <cmath>
#include <numbers>

#include "plugins/devices/reference/reference_kernel.hpp"

namespace altiplano::reference {
namespace {

int64_t count(const KernelRequest& request) {
  return num_elements(request.outputs[0].extents);
}

template <typename T, typename F>
Form unary(const KernelRequest& request, F f) {
  return {[n = count(request), f](const KernelCall& call) {
    for (int64_t i = 0; i < n; ++i)
      output<T>(call, 0)[i] = static_cast<T>(f(static_cast<double>(input<T>(call, 0)[i])));
  }};
}

template <typename T, typename F>
Form binary(const KernelRequest& request, F f) {
  return {[n = count(request), f](const KernelCall& call) {
    const T *x = input<T>(call, 0), *y = input<T>(call, 1);
    for (int64_t i = 0; i < n; ++i)
      output<T>(call, 0)[i] = static_cast<T>(f(static_cast<double>(x[i]), static_cast<double>(y[i])));
  }};
}

template <typename T>
Form add(const KernelRequest& request) {
  return binary<T>(request, [](double x, double y) { return x + y; });
}

template <typename T>
Form multiply(const KernelRequest& request) {
  return binary<T>(request, [](double x, double y) { return x * y; });
}

template <typename T>
Form add_bias(const KernelRequest& request) {
  int64_t period = num_elements(request.inputs[1].extents);
  return {[n = count(request), period](const KernelCall& call) {
    const T *x = input<T>(call, 0), *bias = input<T>(call, 1);
    for (int64_t i = 0; i < n; ++i)
      output<T>(call, 0)[i] = static_cast<T>(static_cast<double>(x[i]) + static_cast<double>(bias[i % period]));
  }};
}

template <typename T>
Form relu(const KernelRequest& request) {
  return unary<T>(request, [](double x) { return x > 0 ? x : 0; });
}

template <typename T>
Form relu_grad(const KernelRequest& request) {
  return binary<T>(request, [](double y, double dy) { return y > 0 ? dy : 0; });
}

template <typename T>
Form scale(const KernelRequest& request) {
  return unary<T>(request, [factor = request.attributes.get_float("factor", 1)](double x) { return x * factor; });
}

template <typename T>
Form cast(const KernelRequest& request) {
  return {[n = count(request), dtype = request.outputs[0].dtype](const KernelCall& call) {
    for (int64_t i = 0; i < n; ++i) store(dtype, call.outputs[0], i, static_cast<double>(input<T>(call, 0)[i]));
  }};
}

// gelu: x Phi(x), or with Phi by tanh (Hendrycks and Gimpel, "Gaussian error linear units", 2016)
// ------------------------

const double kTanhScale = std::sqrt(2 / std::numbers::pi);
constexpr double kTanhCubic = 0.044715;

double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(kTanhScale * (x + kTanhCubic * x * x * x)));
}
double gelu_erf(double x) {
  return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
}

double gelu_tanh_slope(double x) {
  double t = std::tanh(kTanhScale * (x + kTanhCubic * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kTanhScale * (1 + 3 * kTanhCubic * x * x);
}
double gelu_erf_slope(double x) {
  double density = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
  return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)) + x * density;
}

bool is_erf(const KernelRequest& request) {
  return request.attributes.get_string("approximate", "tanh") == "erf";
}

template <typename T>
Form gelu(const KernelRequest& request) {
  return unary<T>(request, is_erf(request) ? gelu_erf : gelu_tanh);
}

template <typename T>
Form gelu_grad(const KernelRequest& request) {
  auto* slope = is_erf(request) ? gelu_erf_slope : gelu_tanh_slope;
  return binary<T>(request, [slope](double x, double dy) { return slope(x) * dy; });
}

template <typename T>
Form bias_gelu(const KernelRequest& request) {
  auto* value = is_erf(request) ? gelu_erf : gelu_tanh;
  return {[n = count(request), period = num_elements(request.inputs[1].extents), value](const KernelCall& call) {
    const T *x = input<T>(call, 0), *bias = input<T>(call, 1);
    for (int64_t i = 0; i < n; ++i)
      output<T>(call, 0)[i] = static_cast<T>(value(static_cast<double>(x[i]) + static_cast<double>(bias[i % period])));
  }};
}

template <typename T>
Form bias_gelu_grad(const KernelRequest& request) {
  auto* slope = is_erf(request) ? gelu_erf_slope : gelu_tanh_slope;
  return {[n = count(request), period = num_elements(request.inputs[1].extents), slope](const KernelCall& call) {
    const T *x = input<T>(call, 0), *bias = input<T>(call, 1), *dy = input<T>(call, 2);
    for (int64_t i = 0; i < n; ++i)
      output<T>(call, 0)[i] = static_cast<T>(slope(static_cast<double>(x[i]) + static_cast<double>(bias[i % period])) *
                                             static_cast<double>(dy[i]));
  }};
}

template <typename T>
Form residual_add(const KernelRequest& request) {
  const OperandLayout layout = request.outputs[0];
  return {[dropper = Dropper(request, "p"), layout, global = strides_of(layout.global),
           period = num_elements(request.inputs[2].extents)](const KernelCall& call) {
    int64_t first = 0, i = 0;
    for (size_t d = 0; d < layout.extents.size(); ++d) first += origin_of(layout, d, call) * global[d];
    const T *x = input<T>(call, 0), *residual = input<T>(call, 1), *bias = input<T>(call, 2);
    for (Walk<1> walk(layout.extents, {global}); !walk.done(); walk.next(), ++i) {
      const double kept = (static_cast<double>(x[i]) + static_cast<double>(bias[i % period])) *
                          dropper.factor(call, first + walk.offset(0));
      output<T>(call, 0)[i] = static_cast<T>(static_cast<double>(residual[i]) + kept);
    }
  }};
}

template <typename T>
Form dropout(const KernelRequest& request) {
  const OperandLayout layout = request.outputs[0];
  return {[dropper = Dropper(request, "p"), layout, global = strides_of(layout.global)](const KernelCall& call) {
    int64_t first = 0;
    for (size_t d = 0; d < layout.extents.size(); ++d) first += origin_of(layout, d, call) * global[d];
    const T* x = input<T>(call, 0);
    T* y = output<T>(call, 0);
    for (Walk<1> walk(layout.extents, {global}); !walk.done(); walk.next())
      *y++ = static_cast<T>(static_cast<double>(*x++) * dropper.factor(call, first + walk.offset(0)));
  }};
}

}  // namespace

void add_pointwise_kernels(Table& table) {
  table["add"] = {add<float>, add<double>};
  table["multiply"] = {multiply<float>, multiply<double>};
  table["add_bias"] = {add_bias<float>, add_bias<double>};
  table["scale"] = {scale<float>, scale<double>};
  table["cast"] = {cast<float>, cast<double>, nullptr, nullptr, true};
  table["relu"] = {relu<float>, relu<double>};
  table["relu_grad"] = {relu_grad<float>, relu_grad<double>};
  table["gelu"] = {gelu<float>, gelu<double>};
  table["gelu_grad"] = {gelu_grad<float>, gelu_grad<double>};
  table["bias_gelu"] = {bias_gelu<float>, bias_gelu<double>};
  table["bias_gelu_grad"] = {bias_gelu_grad<float>, bias_gelu_grad<double>};
  table["residual_add"] = {residual_add<float>, residual_add<double>};
  table["dropout"] = {dropout<float>, dropout<double>};
}

}  // namespace altiplano::reference
