#include <algorithm>
#include <array>

#include "plugins/devices/reference/reference_kernel.hpp"

namespace altiplano::reference {
namespace {

/// Where a token goes: its two likeliest experts (of equal ones the first), its place in each, and whether there is
/// room for it.
struct Route {
  std::array<int64_t, 2> expert{}, place{};
  std::array<bool, 2> has_room{};
};

/// Sizes of gates [b,s,e].
struct Gates {
  explicit Gates(const KernelRequest& request)
      : samples(request.inputs[0].extents[0]),
        tokens(request.inputs[0].extents[1]),
        experts(request.inputs[0].extents[2]),
        capacity(request.attributes.get_int("capacity")) {}
  int64_t workspace_bytes() const {
    return tokens * static_cast<int64_t>(sizeof(Route)) + experts * static_cast<int64_t>(sizeof(int64_t));
  }
  /// Element (token, route k, 0 <= place < capacity) of one sample's [s,e,c].
  int64_t at(int64_t token, const Route& route, size_t k) const {
    return (token * experts + route.expert[k]) * capacity + route.place[k];
  }

  int64_t samples, tokens, experts, capacity;
};

template <typename T>
void choose_two(const Gates& of, const T* gates, Route& route) {
  route.expert[0] = std::max_element(gates, gates + of.experts) - gates;
  route.expert[1] = route.expert[0] == 0 ? 1 : 0;
  for (int64_t e = 0; e < of.experts; ++e)
    if (e != route.expert[0] && gates[e] > gates[route.expert[1]]) route.expert[1] = e;
}

/// All first choices of a sample find their place before the second ones, both in the order of tokens.
template <typename T>
Route* route_sample(const Gates& of, const T* gates, const KernelCall& call) {
  auto* routes = static_cast<Route*>(call.workspace);
  auto* taken = reinterpret_cast<int64_t*>(routes + of.tokens);
  std::fill_n(taken, of.experts, int64_t{0});
  for (int64_t s = 0; s < of.tokens; ++s) choose_two(of, gates + s * of.experts, routes[s]);
  for (size_t k : {0, 1})
    for (int64_t s = 0; s < of.tokens; ++s) {
      Route& route = routes[s];
      int64_t& count = taken[route.expert[k]];
      route.has_room[k] = count < of.capacity;
      route.place[k] = count;
      if (route.has_room[k]) ++count;
    }
  return routes;
}

/// The gates of a token's two experts as far as they have room, and their sum.
struct Shares {
  template <typename T>
  Shares(const T* gates, const Route& route) {
    for (size_t k : {0, 1}) gate[k] = route.has_room[k] ? static_cast<double>(gates[route.expert[k]]) : 0;
    sum = gate[0] + gate[1];
  }
  std::array<double, 2> gate;
  double sum;
};

template <typename T>
Form top2_gating(const KernelRequest& request) {
  const Gates of(request);
  return {[of](const KernelCall& call) {
            const int64_t per_sample = of.tokens * of.experts * of.capacity;
            std::fill_n(output<T>(call, 0), of.samples * per_sample, T{0});
            std::fill_n(output<T>(call, 1), of.samples * per_sample, T{0});
            for (int64_t b = 0; b < of.samples; ++b) {
              const T* gates = input<T>(call, 0) + b * of.tokens * of.experts;
              const Route* routes = route_sample(of, gates, call);
              for (int64_t s = 0; s < of.tokens; ++s) {
                const Shares shares(gates + s * of.experts, routes[s]);
                for (size_t k : {0, 1}) {
                  if (!routes[s].has_room[k]) continue;
                  const int64_t at = b * per_sample + of.at(s, routes[s], k);
                  output<T>(call, 0)[at] = static_cast<T>(shares.sum > 0 ? shares.gate[k] / shares.sum : 0);
                  output<T>(call, 1)[at] = T{1};
                }
              }
            }
          },
          of.workspace_bytes()};
}

/// Of shares a/(a+b) and b/(a+b): da = (dfirst - dsecond) b / (a+b)^2, and the other way round.
template <typename T>
Form top2_gating_grad(const KernelRequest& request) {
  const Gates of(request);
  return {[of](const KernelCall& call) {
            const int64_t per_sample = of.tokens * of.experts * of.capacity;
            std::fill_n(output<T>(call, 0), of.samples * of.tokens * of.experts, T{0});
            for (int64_t b = 0; b < of.samples; ++b) {
              const T* gates = input<T>(call, 0) + b * of.tokens * of.experts;
              const T* slopes = input<T>(call, 1) + b * per_sample;
              T* out = output<T>(call, 0) + b * of.tokens * of.experts;
              const Route* routes = route_sample(of, gates, call);
              for (int64_t s = 0; s < of.tokens; ++s) {
                const Route& route = routes[s];
                const Shares shares(gates + s * of.experts, route);
                if (!route.has_room[0] || !route.has_room[1] || shares.sum == 0)
                  continue;  // a share of one is constant
                const double difference =
                    static_cast<double>(slopes[of.at(s, route, 0)]) - static_cast<double>(slopes[of.at(s, route, 1)]);
                const double unit = difference / (shares.sum * shares.sum);
                out[s * of.experts + route.expert[0]] = static_cast<T>(unit * shares.gate[1]);
                out[s * of.experts + route.expert[1]] = static_cast<T>(-unit * shares.gate[0]);
              }
            }
          },
          of.workspace_bytes()};
}

}  // namespace

void add_expert_kernels(Table& table) {
  table["top2_gating"] = {top2_gating<float>, top2_gating<double>};
  table["top2_gating_grad"] = {top2_gating_grad<float>, top2_gating_grad<double>};
}

}  // namespace altiplano::reference
