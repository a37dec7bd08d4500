#include "framework/base/time_limit.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <vector>

#include "framework/base/text.hpp"

namespace altiplano {
namespace {

constexpr int64_t kDay = 86400, kMostDays = 10000;
/// Seconds of an hour, a minute and a second.
constexpr std::array<int64_t, 3> kUnits = {3600, 60, 1};

/// Digits only: no sign, no blanks.
std::optional<int64_t> whole_number(const std::string& text) {
  int64_t value = 0;
  if (text.empty() || text.size() > 12 || !std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Numbers between colons in units of `units`, the first without a limit unless `is_below_larger`.
std::optional<int64_t> clock_seconds(std::string_view text, std::span<const int64_t> units, bool is_below_larger) {
  const std::vector<std::string> words = split(text, ':');
  if (words.empty() || words.size() > units.size()) return std::nullopt;
  int64_t seconds = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    const auto number = whole_number(words[i]);
    const int64_t most = units[i] == 3600 ? 23 : 59;
    if (!number || ((i > 0 || is_below_larger) && *number > most) || *number > kMostDays * kDay) return std::nullopt;
    seconds += *number * units[i];
  }
  return seconds;
}

std::optional<int64_t> seconds_of(std::string_view text) {
  const std::span<const int64_t> units(kUnits);
  if (const size_t dash = text.find('-'); dash != std::string_view::npos) {
    const auto days = whole_number(std::string(text.substr(0, dash)));
    const auto rest = clock_seconds(text.substr(dash + 1), units, true);
    if (!days || !rest || *days > kMostDays) return std::nullopt;
    return *days * kDay + *rest;
  }
  const bool has_hours = std::ranges::count(text, ':') == 2;
  return clock_seconds(text, has_hours ? units : units.subspan(1), false);
}

}  // namespace

std::optional<Seconds> parse_time_limit(std::string_view text) {
  const auto seconds = seconds_of(text);
  if (!seconds || *seconds > kMostDays * kDay) return std::nullopt;
  return Seconds(static_cast<double>(*seconds));
}

std::string time_limit_example() {
  return "90 (minutes), 90:30, 1:30:00, 2-0, 2-0:30 or 2-12:30:00";
}

}  // namespace altiplano
