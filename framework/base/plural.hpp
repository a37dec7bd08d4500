#pragma once
// Counts in sentences: the one place that knows when a noun takes its plural.
#include <cstdint>
#include <string>
#include <string_view>

namespace altiplano {

/// "1 rank", "4 ranks", "1,024 ranks". `many`: the plural where it is not `one` with an s ("boxes").
std::string counted(int64_t count, std::string_view one, std::string_view many = {});

/// The noun alone: "rank" for 1, else "ranks".
std::string plural(int64_t count, std::string_view one, std::string_view many = {});

}  // namespace altiplano
