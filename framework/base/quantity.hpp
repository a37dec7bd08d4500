#pragma once
// Numbers with a unit, as people write them in YAML: "40 GiB", "300 GB/s", "312 TFLOP/s", "5 us". One text form that
// prints and parses back to the same double. A bare number (in C++ notation) is the base unit. Blanks around and
// between are free, letters' case counts.
#include <optional>
#include <string>
#include <string_view>

#include "framework/base/units.hpp"

namespace altiplano {

enum class QuantityKind : uint8_t {
  kBytes,           ///< B, kB MB GB TB (powers of 1000), KiB MiB GiB TiB (powers of 1024)
  kBytesPerSecond,  ///< the same with /s
  kFlopsPerSecond,  ///< FLOP/s, MFLOP/s, GFLOP/s, TFLOP/s, PFLOP/s
  kFlops,           ///< FLOP, kFLOP, MFLOP, GFLOP, TFLOP, PFLOP
  kSeconds,         ///< ns, us, ms, s, min, h
};

/// Value in the base unit (B, B/s, FLOP, FLOP/s, s). Nothing for an unknown unit, a negative, infinite or missing
/// number.
std::optional<double> parse_quantity(QuantityKind kind, std::string_view text);
/// Text in the largest unit that keeps the number short and exact: parse_quantity gives `value` back, bit for bit.
std::string print_quantity(QuantityKind kind, double value);
/// "bytes such as 40 GiB": what a message says was expected.
std::string quantity_example(QuantityKind kind);

/// Whole bytes; nothing for what parse_quantity refuses, a fraction of a byte, or more than 2^62.
std::optional<Bytes> parse_bytes(std::string_view text);

}  // namespace altiplano
