#include "framework/checkpoint/retention.hpp"

#include <algorithm>

namespace altiplano {

std::vector<CheckpointAge> ages_to_remove(std::vector<CheckpointAge> ages, const KeepRule& rule) {
  if (rule.last == 0) return {};
  std::ranges::sort(ages);
  auto num_old = std::max<int64_t>(0, static_cast<int64_t>(ages.size()) - rule.last);
  ages.resize(static_cast<size_t>(num_old));
  std::erase_if(ages, [&](const CheckpointAge& age) { return rule.every > 0 && age.step % rule.every == 0; });
  return ages;
}

int64_t most_checkpoints(const KeepRule& rule, int64_t save_every, int64_t max_steps) {
  int64_t all = save_every > 0 ? (max_steps + save_every - 1) / save_every : 1;
  if (rule.last == 0) return all;
  int64_t for_good = 0;
  if (rule.every > 0 && save_every > 0)
    for (int64_t step = save_every; step <= max_steps; step += save_every) for_good += step % rule.every == 0;
  return std::min(all, rule.last + for_good + 1);  // an old one goes after the new one is there
}

}  // namespace altiplano
