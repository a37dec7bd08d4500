#pragma once
// Which file of a mix the n-th sample comes from: a pure function of the shares. After any number of samples each file
// has given its share to within one sample per file (the files are told apart one after the other, each against the
// rest, by floor(n * share / rest)), and its own samples are counted 0, 1, 2, ... without a gap.
#include <cstdint>
#include <vector>

#include "framework/options/option.hpp"

namespace altiplano {

class MixOrder {
 public:
  MixOrder() = default;
  /// Shares above 0; their sum below 2^62. With shares that are counts, the first sum-of-shares samples are each file's
  /// `count` samples exactly.
  explicit MixOrder(std::vector<int64_t> shares);
  /// Weights as shares of 2^32.
  static MixOrder from_weights(const std::vector<WeightedFile>& files);

  struct Place {
    size_t file = 0;
    int64_t index = 0;  ///< of the file's own samples
  };
  Place place_of(int64_t sample) const;
  size_t num_files() const { return shares_.size(); }

 private:
  std::vector<int64_t> shares_;
  int64_t total_ = 0;
};

}  // namespace altiplano
