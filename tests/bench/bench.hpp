#pragma once
// What the programs of tests/bench share: timing in turns. The speed of a machine drifts by a third within minutes, so
// contestants run one after the other in every round, and what counts is the ratio within a round.
#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "framework/base/console.hpp"
#include "framework/base/status.hpp"

namespace altiplano::bench {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Median, and the quartiles as the spread.
struct Spread {
  double low = 0, median = 0, high = 0;
};

inline Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  const size_t last = values.size() - 1;
  return {values[last / 4], values[last / 2], values[last - last / 4]};
}

inline std::string to_string(const Spread& s, double scale, int digits) {
  return fmt::format("{:.{}f} ({:.{}f}-{:.{}f})", s.median * scale, digits, s.low * scale, digits, s.high * scale,
                     digits);
}

struct Contestant {
  std::string name;
  std::function<void()> run;
  int calls = 1;                     ///< per sample
  std::vector<double> seconds = {};  ///< per call, by round
};

/// One call of each first, then `rounds` samples in turns; calls shorter than `least_seconds` are repeated to that.
inline void race(std::vector<Contestant>& contestants, int rounds, double least_seconds = 0.002) {
  for (Contestant& c : contestants) {
    c.run();
    const double begin = now();
    c.run();
    c.calls = static_cast<int>(std::clamp(least_seconds / std::max(1e-9, now() - begin), 1.0, 1e5));
  }
  for (int round = 0; round < rounds; ++round)
    for (Contestant& c : contestants) {
      const double begin = now();
      for (int i = 0; i < c.calls; ++i) c.run();
      c.seconds.push_back((now() - begin) / c.calls);
    }
}

/// other / own, round by round: above 1 the own one is faster.
inline Spread ratio(const Contestant& other, const Contestant& own) {
  std::vector<double> ratios;
  for (size_t i = 0; i < own.seconds.size(); ++i) ratios.push_back(other.seconds[i] / own.seconds[i]);
  return spread_of(std::move(ratios));
}

/// The value behind `--name`, else `otherwise`.
inline std::string argument(int argc, char** argv, const std::string& name, const std::string& otherwise) {
  for (int i = 1; i + 1 < argc; ++i)
    if (argv[i] == "--" + name) return argv[i + 1];
  return otherwise;
}

/// Prints the error of a status and ends the program when there is one.
inline void require(const Status& status) {
  if (status.is_ok()) return;
  print_err("error: {}\n", status.to_string());
  std::exit(1);
}
template <typename T>
T require(Result<T> result) {
  require(result.status());
  return std::move(result).value();
}

}  // namespace altiplano::bench
