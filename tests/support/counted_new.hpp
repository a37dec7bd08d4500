#pragma once
// Counts what operator new gives out. Linking this file replaces operator new for the whole program, the framework and
// its plugins included; not under sanitizers, which bring their own.
#include <string>

#include "tests/support/sanitized.hpp"

namespace altiplano::test {

inline constexpr bool kCanCountAllocations = !kIsSanitized;

/// From now on what this thread allocates is counted, or no longer.
void count_allocations(bool on);
/// Of all threads since the last reset.
int num_allocations();
/// The stack of the first of them.
std::string first_allocation();
void reset_allocations();

}  // namespace altiplano::test
