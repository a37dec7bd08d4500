#pragma once
// Days as people and the files of the user's cache write them.
#include <string>

namespace altiplano {

/// "2026-12-01", of the local time.
std::string date_of_today();

}  // namespace altiplano
