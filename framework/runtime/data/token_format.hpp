#pragma once
// The names shared by the writer and the reader of token files.
#include <cstdint>

namespace altiplano {

inline constexpr const char* kTokenFormat = "altiplano tokens";
inline constexpr int64_t kTokenFormatVersion = 1;
/// Tokens per chunk: 32 KiB of u16, small enough that a random window costs one or two chunks.
inline constexpr int64_t kTokenChunk = 16384;

}  // namespace altiplano
