#pragma once
// Documents of synthetic samples: where they start is a pure function of (stream, sample, position).
#include <cstdint>
#include <string>

#include "framework/base/random.hpp"

namespace altiplano::test {

/// Position in the sample of the first token of the document that `position` belongs to: about three tokens each.
inline int64_t synthetic_document_start(uint64_t step, uint64_t sample, int64_t position) {
  for (int64_t at = position; at > 0; --at)
    if (random_word(random_stream(99, "documents"), step, sample * 1000 + static_cast<uint64_t>(at)) % 3 == 0)
      return at;
  return 0;
}

}  // namespace altiplano::test
