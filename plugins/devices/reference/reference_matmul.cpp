#include <algorithm>

#include "framework/graph/ops/einsum.hpp"
#include "plugins/devices/reference/reference_kernel.hpp"

namespace altiplano::reference {
namespace {

/// Per letter of `letters`, the stride of that letter in an operand (0: it lacks the letter).
Index letter_strides(const std::vector<std::string>& letters, const std::vector<std::string>& operand,
                     const std::vector<int64_t>& extents) {
  Index own = strides_of(extents), strides{};
  for (size_t i = 0; i < letters.size(); ++i) {
    auto it = std::find(operand.begin(), operand.end(), letters[i]);
    if (it != operand.end()) strides[i] = own[static_cast<size_t>(it - operand.begin())];
  }
  return strides;
}

std::vector<int64_t> letter_extents(const std::vector<std::string>& letters, const std::vector<std::string>& operand,
                                    const std::vector<int64_t>& extents) {
  std::vector<int64_t> result;
  for (const std::string& letter : letters)
    result.push_back(extents[static_cast<size_t>(std::find(operand.begin(), operand.end(), letter) - operand.begin())]);
  return result;
}

template <typename T>
Form matmul(const KernelRequest& request) {
  const Einsum e = Einsum::parse(request.attributes.get_string("equation")).value();
  const auto &a = request.inputs[0].extents, &b = request.inputs[1].extents;
  Walk<2> results(request.outputs[0].extents, {letter_strides(e.c, e.a, a), letter_strides(e.c, e.b, b)});
  Walk<2> terms(letter_extents(e.summed, e.a, a), {letter_strides(e.summed, e.a, a), letter_strides(e.summed, e.b, b)});
  return {[results, terms](const KernelCall& call) mutable {
    T* c = output<T>(call, 0);
    for (results.restart(); !results.done(); results.next()) {
      const T *x = input<T>(call, 0) + results.offset(0), *y = input<T>(call, 1) + results.offset(1);
      double sum = 0;
      for (terms.restart(); !terms.done(); terms.next())
        sum += static_cast<double>(x[terms.offset(0)]) * static_cast<double>(y[terms.offset(1)]);
      *c++ = static_cast<T>(sum);
    }
  }};
}

}  // namespace

void add_matmul_kernels(Table& table) {
  table["matmul"] = {matmul<float>, matmul<double>};
}

}  // namespace altiplano::reference
