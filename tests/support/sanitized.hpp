#pragma once
// Tests that go through hundreds of alike cases take one in so many of them where a sanitizer, which makes each six
// times as long, has half an hour only (ALTIPLANO_QUICK_CHECKS).

namespace altiplano::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

/// The step through such cases: `quick` there, else every one.
constexpr int every([[maybe_unused]] int quick) {
#ifdef ALTIPLANO_QUICK_CHECKS
  return quick;
#else
  return 1;
#endif
}

}  // namespace altiplano::test
