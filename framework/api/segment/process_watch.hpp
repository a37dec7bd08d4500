#pragma once
// Notices that a process of this host ended, also while it is a zombie nobody has waited for.
#include <vector>

namespace altiplano {

class ProcessWatch {
 public:
  ProcessWatch() = default;
  /// processes[i] <= 0: not watched. A process that cannot be watched (another pid namespace) is left out.
  explicit ProcessWatch(const std::vector<int>& processes);
  ~ProcessWatch();
  ProcessWatch(ProcessWatch&& other) noexcept : descriptors_(std::move(other.descriptors_)) {
    other.descriptors_.clear();
  }
  ProcessWatch& operator=(ProcessWatch&& other) noexcept {
    descriptors_.swap(other.descriptors_);
    return *this;
  }

  bool has_ended(int index) const;

 private:
  std::vector<int> descriptors_;  // pidfd or -1
};

}  // namespace altiplano
