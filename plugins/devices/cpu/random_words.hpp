#pragma once
#include <cstdint>

namespace altiplano::cpu {

/// words[0 .. 4 quads) = the words that random_quad(stream, step, quad + i) gives, in order, some at once.
void random_words(uint64_t stream, uint64_t step, uint64_t quad, int64_t quads, uint32_t* words);

}  // namespace altiplano::cpu
