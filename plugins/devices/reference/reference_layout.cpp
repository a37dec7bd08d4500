#include <algorithm>

#include "plugins/devices/reference/reference_kernel.hpp"

namespace altiplano::reference {
namespace {

template <typename T>
Form reshape(const KernelRequest& request) {
  return {[n = num_elements(request.inputs[0].extents)](const KernelCall& call) {
    std::copy_n(input<T>(call, 0), n, output<T>(call, 0));
  }};
}

template <typename T>
Form transpose(const KernelRequest& request) {
  Index own = strides_of(request.inputs[0].extents), strides{};
  auto permutation = request.attributes.get_ints("permutation");
  for (size_t i = 0; i < permutation.size(); ++i) strides[i] = own[static_cast<size_t>(permutation[i])];
  return {[walk = Walk<1>(request.outputs[0].extents, {strides})](const KernelCall& call) mutable {
    T* y = output<T>(call, 0);
    for (walk.restart(); !walk.done(); walk.next()) *y++ = input<T>(call, 0)[walk.offset(0)];
  }};
}

/// Copies a box of `extents` between two tensors; `from` and `to`: offset of its first element.
template <typename T>
struct BoxMove {
  BoxMove(const std::vector<int64_t>& extents, const std::vector<int64_t>& source,
          const std::vector<int64_t>& destination, int64_t dim, int64_t start_in_source, int64_t start_in_destination)
      : walk(extents, {strides_of(source), strides_of(destination)}),
        from(start_in_source * strides_of(source)[static_cast<size_t>(dim)]),
        to(start_in_destination * strides_of(destination)[static_cast<size_t>(dim)]) {}
  void run(const T* source, T* destination) {
    for (walk.restart(); !walk.done(); walk.next()) destination[to + walk.offset(1)] = source[from + walk.offset(0)];
  }
  Walk<2> walk;
  int64_t from, to;
};

template <typename T>
Form slice(const KernelRequest& request) {
  const auto &in = request.inputs[0].extents, &out = request.outputs[0].extents;
  BoxMove<T> move(out, in, out, request.attributes.get_int("dim"), request.attributes.get_int("start"), 0);
  return {[move](const KernelCall& call) mutable { move.run(input<T>(call, 0), output<T>(call, 0)); }};
}

template <typename T>
Form pad(const KernelRequest& request) {
  const auto &in = request.inputs[0].extents, &out = request.outputs[0].extents;
  BoxMove<T> move(in, in, out, request.attributes.get_int("dim"), 0, request.attributes.get_int("before"));
  return {[move, n = num_elements(out)](const KernelCall& call) mutable {
    std::fill_n(output<T>(call, 0), n, T(0));
    move.run(input<T>(call, 0), output<T>(call, 0));
  }};
}

template <typename T>
Form concat(const KernelRequest& request) {
  int64_t dim = request.attributes.get_int("dim"), start = 0;
  std::vector<BoxMove<T>> moves;
  for (const OperandLayout& part : request.inputs) {
    moves.emplace_back(part.extents, part.extents, request.outputs[0].extents, dim, 0, start);
    start += part.extents[static_cast<size_t>(dim)];
  }
  return {[moves](const KernelCall& call) mutable {
    for (size_t i = 0; i < moves.size(); ++i) moves[i].run(input<T>(call, i), output<T>(call, 0));
  }};
}

template <typename T>
Form fill(const KernelRequest& request) {
  auto value = static_cast<T>(request.attributes.get_float("value"));
  return {[value, n = num_elements(request.outputs[0].extents)](const KernelCall& call) {
    std::fill_n(output<T>(call, 0), n, value);
  }};
}

}  // namespace

void add_layout_kernels(Table& table) {
  table["reshape"] = {reshape<float>, reshape<double>, reshape<int32_t>, reshape<int64_t>};
  table["transpose"] = {transpose<float>, transpose<double>, transpose<int32_t>, transpose<int64_t>};
  table["slice"] = {slice<float>, slice<double>, slice<int32_t>, slice<int64_t>};
  table["pad"] = {pad<float>, pad<double>, pad<int32_t>, pad<int64_t>};
  table["concat"] = {concat<float>, concat<double>, concat<int32_t>, concat<int64_t>};
  table["fill"] = {fill<float>, fill<double>, fill<int32_t>, fill<int64_t>};
}

}  // namespace altiplano::reference
