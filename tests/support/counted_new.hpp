#pragma once
// Counts what operator new gives out. Linking this file replaces operator new for the whole program, the framework and
// its plugins included; not under sanitizers, which bring their own.
#include <string>

namespace altiplano::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kCanCountAllocations = false;
#else
inline constexpr bool kCanCountAllocations = true;
#endif

/// From now on what this thread allocates is counted, or no longer.
void count_allocations(bool on);
/// Of all threads since the last reset.
int num_allocations();
/// The stack of the first of them.
std::string first_allocation();
void reset_allocations();

}  // namespace altiplano::test
