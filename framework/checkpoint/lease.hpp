#pragma once
// EpochLease: who may publish checkpoints into a folder. Every start of a run takes the next number, and the highest
// number has the say: a start that was cut off with its node and comes back finds that another has taken over, and
// publishes nothing more.
//
// <directory>/.lease-3     whose text says who took it; granted by an exclusive link, which a shared file system gives
//                          to one only
#include <cstdint>
#include <string>

#include "framework/base/status.hpp"

namespace altiplano {

class EpochLease {
 public:
  EpochLease() = default;
  /// The number is at least `least` and higher than any that was taken here. `owner`: for who is refused. Removes the
  /// files of starts before.
  static Result<EpochLease> take(const std::string& directory, const std::string& owner, int64_t least = 1);
  int64_t epoch() const { return epoch_; }
  /// Reads the folder again. kCancelled, with the words of who has taken over.
  Status check() const;

 private:
  EpochLease(std::string directory, int64_t epoch) : directory_(std::move(directory)), epoch_(epoch) {}
  std::string directory_;
  int64_t epoch_ = 0;
};

}  // namespace altiplano
