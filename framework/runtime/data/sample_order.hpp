#pragma once
// Which sample comes when: a pure function of (seed, epoch, index), never of ranks. Each epoch is a permutation of [0,
// n), evaluated at one point without a table: a Feistel network (Luby and Rackoff 1988) whose round function is Philox,
// walked along its cycle until the result falls below n (Black and Rogaway 2002).
//
// The data state of a run is one integer, the samples consumed so far: epoch = consumed / n, index = consumed % n.
#include <cstdint>

namespace altiplano {

/// Position in [0, num_samples) of the index-th sample of the epoch. Requires 0 <= index < num_samples.
int64_t sample_at(uint64_t seed, int64_t epoch, int64_t index, int64_t num_samples);

/// The same for the running count over epochs.
inline int64_t sample_at(uint64_t seed, int64_t consumed, int64_t num_samples) {
  return sample_at(seed, consumed / num_samples, consumed % num_samples, num_samples);
}

}  // namespace altiplano
