#pragma once
// Times as Slurm writes its limits: "90" and "90:30" are minutes and seconds, "1:30:00" is hours, "2-0", "2-0:30" and
// "2-12:30:00" begin with days.
#include <optional>
#include <string>
#include <string_view>

#include "framework/base/units.hpp"

namespace altiplano {

/// Nothing for any other text, for more than 59 minutes or seconds or 23 hours behind a larger unit, and beyond 10,000
/// days. "0" is 0 s.
std::optional<Seconds> parse_time_limit(std::string_view text);
/// "90 (minutes), 90:30, 1:30:00, 2-0, 2-0:30 or 2-12:30:00": what a message says was expected.
std::string time_limit_example();

}  // namespace altiplano
