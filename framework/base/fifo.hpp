#pragma once
// Fifo: a queue that, once it has been as long as it gets, allocates no more. std::deque gives and takes memory as its
// elements pass by.
#include <cstddef>
#include <utility>
#include <vector>

namespace altiplano {

template <typename T>
class Fifo {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  T& front() { return at(0); }
  const T& front() const { return at(0); }
  /// The i-th from the front.
  T& at(size_t i) { return slots_[(first_ + i) & (slots_.size() - 1)]; }
  const T& at(size_t i) const { return slots_[(first_ + i) & (slots_.size() - 1)]; }

  void push_back(T value) {
    if (size_ == slots_.size()) grow();
    at(size_++) = std::move(value);
  }
  void pop_front() {
    first_ = (first_ + 1) & (slots_.size() - 1);
    --size_;
  }
  /// Takes the i-th out and keeps the order of the others.
  T take(size_t i) {
    T taken = std::move(at(i));
    for (; i + 1 < size_; ++i) at(i) = std::move(at(i + 1));
    --size_;
    return taken;
  }

 private:
  void grow() {
    std::vector<T> larger(2 * slots_.size());
    for (size_t i = 0; i < size_; ++i) larger[i] = std::move(at(i));
    slots_ = std::move(larger);
    first_ = 0;
  }

  std::vector<T> slots_ = std::vector<T>(64);  // a power of two
  size_t first_ = 0, size_ = 0;
};

}  // namespace altiplano
