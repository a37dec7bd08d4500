#include "@name@_kernels.hpp"

namespace @name@_plugin {
namespace {

using altiplano::BFloat16;

double wide(double x) {
  return x;
}
double wide(float x) {
  return static_cast<double>(x);
}
double wide(BFloat16 x) {
  return static_cast<double>(altiplano::float_from_bfloat16(x));
}

void store(double value, double& to) {
  to = value;
}
void store(double value, float& to) {
  to = static_cast<float>(value);
}
void store(double value, BFloat16& to) {
  to = altiplano::bfloat16_from_float(static_cast<float>(value));
}

}  // namespace

template <typename T>
void run_softsign(const T* x, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) store(softsign(wide(x[i])), y[i]);
}

template <typename T>
void run_softsign_gradient(const T* dy, const T* x, T* dx, int64_t n) {
  for (int64_t i = 0; i < n; ++i) store(softsign_gradient(wide(dy[i]), wide(x[i])), dx[i]);
}

template void run_softsign(const double*, double*, int64_t);
template void run_softsign(const float*, float*, int64_t);
template void run_softsign(const BFloat16*, BFloat16*, int64_t);
template void run_softsign_gradient(const double*, const double*, double*, int64_t);
template void run_softsign_gradient(const float*, const float*, float*, int64_t);
template void run_softsign_gradient(const BFloat16*, const BFloat16*, BFloat16*, int64_t);

}  // namespace @name@_plugin
