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

/// The last of some dims, taken out of a walk: `extent` elements, apart by `a` and `b` in the two operands.
struct Run {
  int64_t extent = 1, a = 0, b = 0;
};

/// Takes the last dim out; a walk over no dims keeps a run of one element.
Run take_last(std::vector<int64_t>& extents, const Index& a, const Index& b) {
  if (extents.empty()) return {};
  const size_t last = extents.size() - 1;
  Run run{extents[last], a[last], b[last]};
  extents.pop_back();
  return run;
}

/// Where the factors of a run of results lie, and the terms of each result.
struct Sums {
  Run results, run;  ///< of results; of the last summed dim
  Walk<2> terms;     ///< over the other summed dims
};

/// `count` results beside each other, from the one whose factors begin at x and y. Each has a sum of its own that runs
/// in the order of the terms: the processor works on them together, and the bits are those of one after the other.
template <int64_t count, typename T>
void sum_products(const T* x, const T* y, Sums& of, T* c) {
  double sums[count] = {};
  for (of.terms.restart(); !of.terms.done(); of.terms.next()) {
    const T *a = x + of.terms.offset(0), *b = y + of.terms.offset(1);
    for (int64_t k = 0; k < of.run.extent; ++k, a += of.run.a, b += of.run.b)
      for (int64_t i = 0; i < count; ++i)
        sums[i] += static_cast<double>(a[i * of.results.a]) * static_cast<double>(b[i * of.results.b]);
  }
  for (int64_t i = 0; i < count; ++i) c[i] = static_cast<T>(sums[i]);
}

template <typename T>
Form matmul(const KernelRequest& request) {
  const Einsum e = Einsum::parse(request.attributes.get_string("equation")).value();
  const auto &a = request.inputs[0].extents, &b = request.inputs[1].extents;
  const Index result_a = letter_strides(e.c, e.a, a), result_b = letter_strides(e.c, e.b, b);
  const Index term_a = letter_strides(e.summed, e.a, a), term_b = letter_strides(e.summed, e.b, b);
  std::vector<int64_t> result_extents = request.outputs[0].extents, term_extents = letter_extents(e.summed, e.a, a);
  const Run results = take_last(result_extents, result_a, result_b), run = take_last(term_extents, term_a, term_b);
  Walk<2> rows(result_extents, {result_a, result_b});
  Sums of{results, run, Walk<2>(term_extents, {term_a, term_b})};
  return {[rows, of](const KernelCall& call) mutable {
    constexpr int64_t kTogether = 8;
    T* c = output<T>(call, 0);
    for (rows.restart(); !rows.done(); rows.next(), c += of.results.extent) {
      const T *x = input<T>(call, 0) + rows.offset(0), *y = input<T>(call, 1) + rows.offset(1);
      int64_t i = 0;
      for (; i + kTogether <= of.results.extent; i += kTogether)
        sum_products<kTogether>(x + i * of.results.a, y + i * of.results.b, of, c + i);
      for (; i < of.results.extent; ++i) sum_products<1>(x + i * of.results.a, y + i * of.results.b, of, c + i);
    }
  }};
}

}  // namespace

void add_matmul_kernels(Table& table) {
  table["matmul"] = {matmul<float>, matmul<double>};
}

}  // namespace altiplano::reference
