#include "framework/base/units.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace altiplano {

std::string to_string(Bytes bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double v = static_cast<double>(bytes.value);
  size_t unit = 0;
  while (std::abs(v) >= 1024.0 && unit + 1 < kUnits.size()) {
    v /= 1024.0;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes.value) : fmt::format("{:.1f} {}", v, kUnits[unit]);
}

std::string to_string(Seconds seconds) {
  double v = seconds.value;
  if (std::abs(v) >= 0.9995) return fmt::format("{:.2f} s", v);
  if (std::abs(v) >= 0.9995e-3) return fmt::format("{:.3g} ms", v * 1e3);
  return fmt::format("{:.3g} us", v * 1e6);
}

std::string to_string(Flops flops) {
  static constexpr std::array<const char*, 6> kUnits = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"};
  double v = flops.value;
  size_t unit = 0;
  while (std::abs(v) >= 1000.0 && unit + 1 < kUnits.size()) {
    v /= 1000.0;
    ++unit;
  }
  return fmt::format("{:.1f} {}", v, kUnits[unit]);
}

std::string hours_minutes_seconds(Seconds seconds) {
  auto total = static_cast<int64_t>(std::llround(std::max(0.0, seconds.value)));
  return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
}

}  // namespace altiplano
