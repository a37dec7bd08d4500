#include <algorithm>
#include <cmath>

#include "plugins/devices/reference/reference_kernel.hpp"

namespace altiplano::reference {
namespace {

/// Kept and reduced dims of a tensor as two walks over its elements.
struct Split {
  Split(const std::vector<int64_t>& extents, const std::vector<int64_t>& dims)
      : kept(walk(extents, dims, false)), reduced(walk(extents, dims, true)) {}

  static Walk<1> walk(const std::vector<int64_t>& extents, const std::vector<int64_t>& dims, bool inside) {
    Index all = strides_of(extents), strides{};
    std::vector<int64_t> chosen;
    for (size_t d = 0; d < extents.size(); ++d) {
      if ((std::count(dims.begin(), dims.end(), static_cast<int64_t>(d)) > 0) != inside) continue;
      strides[chosen.size()] = all[d];
      chosen.push_back(extents[d]);
    }
    return {chosen, {strides}};
  }

  Walk<1> kept, reduced;
};

/// Folds each kept position's elements with f from `start`.
template <typename T, typename F>
Form fold(const KernelRequest& request, double start, F f) {
  Split split(request.inputs[0].extents, request.attributes.get_ints("dims"));
  return {[split, start, f, dtype = request.outputs[0].dtype](const KernelCall& call) mutable {
    int64_t i = 0;
    for (split.kept.restart(); !split.kept.done(); split.kept.next()) {
      const T* x = input<T>(call, 0) + split.kept.offset(0);
      double value = start;
      for (split.reduced.restart(); !split.reduced.done(); split.reduced.next())
        value = f(value, static_cast<double>(x[split.reduced.offset(0)]));
      store(dtype, call.outputs[0], i++, value);
    }
  }};
}

template <typename T>
Form reduce_sum(const KernelRequest& request) {
  return fold<T>(request, 0, [](double a, double b) { return a + b; });
}

template <typename T>
Form reduce_max(const KernelRequest& request) {
  return fold<T>(request, -INFINITY, [](double a, double b) { return std::max(a, b); });
}

template <typename T>
Form broadcast_to(const KernelRequest& request) {
  Split split(request.outputs[0].extents, request.attributes.get_ints("dims"));
  return {[split, dtype = request.outputs[0].dtype](const KernelCall& call) mutable {
    const T* x = input<T>(call, 0);
    for (split.kept.restart(); !split.kept.done(); split.kept.next(), ++x)
      for (split.reduced.restart(); !split.reduced.done(); split.reduced.next())
        store(dtype, call.outputs[0], split.kept.offset(0) + split.reduced.offset(0), static_cast<double>(*x));
  }};
}

template <typename T>
Form sum_squares(const KernelRequest& request) {
  return {[n = num_elements(request.inputs[0].extents)](const KernelCall& call) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i)
      sum += static_cast<double>(input<T>(call, 0)[i]) * static_cast<double>(input<T>(call, 0)[i]);
    *output<double>(call, 0) = sum;
  }};
}

}  // namespace

void add_reduction_kernels(Table& table) {
  table["reduce_sum"] = {reduce_sum<float>, reduce_sum<double>, nullptr, nullptr, true};
  table["reduce_max"] = {reduce_max<float>, reduce_max<double>, nullptr, nullptr, true};
  table["broadcast_to"] = {broadcast_to<float>, broadcast_to<double>, nullptr, nullptr, true};
  table["sum_squares"] = {sum_squares<float>, sum_squares<double>, nullptr, nullptr, true};
}

}  // namespace altiplano::reference
