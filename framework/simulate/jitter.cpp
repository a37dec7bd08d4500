#include "framework/simulate/jitter.hpp"

#include <algorithm>
#include <cmath>

#include "framework/base/random.hpp"

namespace altiplano {

double Jitter::factor(RankId rank, int num_alike, size_t action) const {
  if (deviation <= 0) return 1;
  const uint64_t stream = random_stream(seed, "jitter");
  double most = -1e300;
  for (int i = 0; i < num_alike; ++i)
    most = std::max(most, random_normal(stream, static_cast<uint64_t>(rank.value + i), action));
  return std::exp(deviation * most - deviation * deviation / 2);
}

}  // namespace altiplano
