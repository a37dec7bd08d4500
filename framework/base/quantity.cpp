#include "framework/base/quantity.hpp"

#include <fmt/format.h>

#include <cmath>
#include <span>

#include "framework/base/text.hpp"

namespace altiplano {
namespace {

struct Unit {
  const char* name;
  double scale;
  double divisor = 1;  ///< below one: 1e6 is exact, 1e-6 is not
};

// Largest first within a system; binary before decimal, so that printing prefers "40 GiB" to "42.94967296 GB".
constexpr Unit kByteUnits[] = {{"TiB", 1099511627776.0},
                               {"GiB", 1073741824.0},
                               {"MiB", 1048576.0},
                               {"KiB", 1024.0},
                               {"TB", 1e12},
                               {"GB", 1e9},
                               {"MB", 1e6},
                               {"kB", 1e3},
                               {"B", 1.0}};
constexpr Unit kRateUnits[] = {{"TiB/s", 1099511627776.0},
                               {"GiB/s", 1073741824.0},
                               {"MiB/s", 1048576.0},
                               {"KiB/s", 1024.0},
                               {"TB/s", 1e12},
                               {"GB/s", 1e9},
                               {"MB/s", 1e6},
                               {"kB/s", 1e3},
                               {"B/s", 1.0}};
constexpr Unit kFlopUnits[] = {
    {"PFLOP/s", 1e15}, {"TFLOP/s", 1e12}, {"GFLOP/s", 1e9}, {"MFLOP/s", 1e6}, {"FLOP/s", 1.0}};
constexpr Unit kWorkUnits[] = {{"PFLOP", 1e15}, {"TFLOP", 1e12}, {"GFLOP", 1e9},
                               {"MFLOP", 1e6},  {"kFLOP", 1e3},  {"FLOP", 1.0}};
constexpr Unit kTimeUnits[] = {{"h", 3600.0},    {"min", 60.0},    {"s", 1.0},
                               {"ms", 1.0, 1e3}, {"us", 1.0, 1e6}, {"ns", 1.0, 1e9}};

std::span<const Unit> units_of(QuantityKind kind) {
  switch (kind) {
    case QuantityKind::kBytes:
      return kByteUnits;
    case QuantityKind::kBytesPerSecond:
      return kRateUnits;
    case QuantityKind::kFlopsPerSecond:
      return kFlopUnits;
    case QuantityKind::kFlops:
      return kWorkUnits;
    case QuantityKind::kSeconds:
      return kTimeUnits;
  }
  return {};
}

}  // namespace

std::optional<double> parse_quantity(QuantityKind kind, std::string_view text) {
  std::string trimmed = trim(text);
  size_t number_end = 0;
  for (std::string_view rest = trimmed; number_end < rest.size(); ++number_end) {
    char c = rest[number_end];
    bool exponent = (c == 'e' || c == 'E') && number_end > 0;
    bool sign =
        (c == '+' || c == '-') && number_end > 0 && (rest[number_end - 1] == 'e' || rest[number_end - 1] == 'E');
    if (!(c >= '0' && c <= '9') && c != '.' && !exponent && !sign) break;
  }
  auto number = parse_double(trimmed.substr(0, number_end));
  if (!number || !std::isfinite(*number) || *number < 0) return std::nullopt;
  std::string unit = trim(std::string_view(trimmed).substr(number_end));
  if (unit.empty()) return number;
  for (const Unit& candidate : units_of(kind))
    if (unit == candidate.name) return *number * candidate.scale / candidate.divisor;
  return std::nullopt;
}

std::string print_quantity(QuantityKind kind, double value) {
  std::string best = fmt::format("{} {}", value, units_of(kind).back().name);
  bool found = false;
  for (const Unit& unit : units_of(kind)) {
    double number = value * unit.divisor / unit.scale;
    std::string text = fmt::format("{} {}", number, unit.name);
    auto back = parse_quantity(kind, text);
    if (number < 1 || !back || *back != value) continue;
    if (!found || text.size() + 2 < best.size())
      best = text;  // a larger unit wins unless a smaller one is clearly shorter
    found = true;
  }
  if (!found) best = fmt::format("{}", value);  // the bare number always parses back
  return best;
}

std::string quantity_example(QuantityKind kind) {
  switch (kind) {
    case QuantityKind::kBytes:
      return "bytes such as 40 GiB";
    case QuantityKind::kBytesPerSecond:
      return "a rate such as 300 GB/s";
    case QuantityKind::kFlopsPerSecond:
      return "a rate such as 312 TFLOP/s";
    case QuantityKind::kFlops:
      return "work such as 20 GFLOP";
    case QuantityKind::kSeconds:
      return "a time such as 5 us";
  }
  return "a number";
}

std::optional<Bytes> parse_bytes(std::string_view text) {
  auto value = parse_quantity(QuantityKind::kBytes, text);
  if (!value || *value != std::floor(*value) || *value > 4611686018427387904.0) return std::nullopt;
  return Bytes(static_cast<int64_t>(*value));
}

}  // namespace altiplano
