#pragma once
#include "framework/kernels/pointwise.hpp"
#include "plugins/devices/cpu/kernel.hpp"

namespace altiplano::cpu {

/// Calls f with GeluTanh or GeluErf.
template <typename F>
Result<std::unique_ptr<Kernel>> with_gelu(const KernelRequest& request, F&& f) {
  const std::string form = request.attributes.get_string("approximate", "tanh");
  if (form == "tanh") return f(GeluTanh{});
  if (form == "erf") return f(GeluErf{});
  return invalid_argument("device/cpu: {} with approximate={}; known: tanh, erf", request.kind, form);
}

}  // namespace altiplano::cpu
