#pragma once
// Quantities as types, so that bytes are never added to seconds. Text forms: "11.2 GiB", "412 ms", "3.1 TFLOP".
#include <compare>
#include <cstdint>
#include <string>

namespace altiplano {

/// A count of bytes (may be negative as a difference).
struct Bytes {
  int64_t value = 0;
  constexpr Bytes() = default;
  constexpr explicit Bytes(int64_t v) : value(v) {}
  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes operator+(Bytes o) const { return Bytes(value + o.value); }
  constexpr Bytes operator-(Bytes o) const { return Bytes(value - o.value); }
  constexpr Bytes operator*(int64_t k) const { return Bytes(value * k); }
  constexpr Bytes& operator+=(Bytes o) {
    value += o.value;
    return *this;
  }
};

struct Seconds {
  double value = 0;
  constexpr Seconds() = default;
  constexpr explicit Seconds(double v) : value(v) {}
  constexpr auto operator<=>(const Seconds&) const = default;
  constexpr Seconds operator+(Seconds o) const { return Seconds(value + o.value); }
  constexpr Seconds operator-(Seconds o) const { return Seconds(value - o.value); }
  constexpr Seconds operator*(double k) const { return Seconds(value * k); }
  constexpr Seconds& operator+=(Seconds o) {
    value += o.value;
    return *this;
  }
};

struct Flops {
  double value = 0;
  constexpr Flops() = default;
  constexpr explicit Flops(double v) : value(v) {}
  constexpr auto operator<=>(const Flops&) const = default;
  constexpr Flops operator+(Flops o) const { return Flops(value + o.value); }
  constexpr Flops operator*(double k) const { return Flops(value * k); }
  constexpr Flops& operator+=(Flops o) {
    value += o.value;
    return *this;
  }
};

std::string to_string(Bytes bytes);                  ///< binary prefixes: "31.5 MiB"
std::string to_string(Seconds seconds);              ///< "412 ms", "0.31 s", "12 us"
std::string to_string(Flops flops);                  ///< decimal prefixes: "219.8 GFLOP"
std::string hours_minutes_seconds(Seconds seconds);  ///< "0:12:31"

}  // namespace altiplano
