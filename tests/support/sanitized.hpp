#pragma once
// Tests that go through hundreds of alike cases take one in so many of them under a sanitizer, which makes each six
// times as long and finds in the first ones what it would find in all.

namespace altiplano::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

/// The step through such cases: `sanitized` under a sanitizer, else every one.
constexpr int every(int sanitized) {
  return kIsSanitized ? sanitized : 1;
}

}  // namespace altiplano::test
