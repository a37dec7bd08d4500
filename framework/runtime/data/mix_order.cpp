#include "framework/runtime/data/mix_order.hpp"

#include <algorithm>
#include <cmath>

namespace altiplano {
namespace {

/// floor(n * share / total) without overflow.
int64_t scaled(int64_t n, int64_t share, int64_t total) {
  __extension__ using Wide = __int128;
  return static_cast<int64_t>(static_cast<Wide>(n) * share / total);
}

}  // namespace

MixOrder::MixOrder(std::vector<int64_t> shares) : shares_(std::move(shares)) {
  for (int64_t share : shares_) {
    ALTIPLANO_ASSERT(share > 0, "a share of {}", share);
    total_ += share;
  }
}

MixOrder MixOrder::from_weights(const std::vector<WeightedFile>& files) {
  double largest = 0, sum = 0;
  for (const WeightedFile& file : files) largest = std::max(largest, file.weight);
  for (const WeightedFile& file : files) sum += file.weight / largest;  // no overflow, however large the weights
  std::vector<int64_t> shares;
  for (const WeightedFile& file : files)
    shares.push_back(std::max<int64_t>(1, std::llround(file.weight / largest / sum * 4294967296.0)));
  return MixOrder(std::move(shares));
}

MixOrder::Place MixOrder::place_of(int64_t sample) const {
  ALTIPLANO_ASSERT(!shares_.empty() && sample >= 0, "sample {} of {} files", sample, shares_.size());
  int64_t total = total_;
  for (size_t file = 0; file + 1 < shares_.size(); ++file) {
    const int64_t before = scaled(sample, shares_[file], total), after = scaled(sample + 1, shares_[file], total);
    if (after > before) return {file, before};
    sample -= before;
    total -= shares_[file];
  }
  return {shares_.size() - 1, sample};
}

}  // namespace altiplano
