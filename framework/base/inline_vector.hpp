#pragma once
// InlineVector: a list of small values that lie in the object itself up to `N`, and on the heap beyond. For what is
// copied and compared millions of times while plans are searched. (Boost has the like; plugins that include the headers
// of specs would need Boost then.)
#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <initializer_list>
#include <type_traits>
#include <vector>

namespace altiplano {

/// Not thread-safe; iterators end with the next change.
template <typename T, size_t N>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;

  InlineVector() = default;
  explicit InlineVector(size_t size) { resize(size); }
  InlineVector(std::initializer_list<T> values) : InlineVector(values.begin(), values.end()) {}
  template <typename Iterator>
  InlineVector(Iterator first, Iterator last) {
    for (; first != last; ++first) push_back(*first);
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return size_ <= N ? here_.data() : beyond_.data(); }
  T* end() { return begin() + size_; }
  const T* begin() const { return size_ <= N ? here_.data() : beyond_.data(); }
  const T* end() const { return begin() + size_; }
  T& operator[](size_t i) { return begin()[i]; }
  const T& operator[](size_t i) const { return begin()[i]; }
  T& back() { return begin()[size_ - 1]; }
  const T& back() const { return begin()[size_ - 1]; }

  void push_back(T value) {
    resize(size_ + 1);
    back() = value;
  }
  T& emplace_back() {
    resize(size_ + 1);
    return back();
  }
  void pop_back() { resize(size_ - 1); }
  void resize(size_t size) {
    if (size > N) {
      if (size_ <= N) beyond_.assign(here_.begin(), here_.begin() + static_cast<std::ptrdiff_t>(size_));
      beyond_.resize(size);
    } else if (size_ > N) {
      std::copy_n(beyond_.begin(), size, here_.begin());
      beyond_.clear();
    } else if (size > size_) {
      std::fill(here_.begin() + static_cast<std::ptrdiff_t>(size_), here_.begin() + static_cast<std::ptrdiff_t>(size),
                T{});
    }
    size_ = size;
  }
  void insert(const T* before, T value) {
    const std::ptrdiff_t at = before - begin();
    push_back(value);
    std::rotate(begin() + at, end() - 1, end());
  }
  template <typename Condition>
  void erase_if(Condition is_gone) {
    resize(static_cast<size_t>(std::remove_if(begin(), end(), is_gone) - begin()));
  }

  bool operator==(const InlineVector& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }
  auto operator<=>(const InlineVector& other) const {
    return std::lexicographical_compare_three_way(begin(), end(), other.begin(), other.end());
  }

 private:
  std::array<T, N> here_{};
  size_t size_ = 0;
  std::vector<T> beyond_;  ///< all of them, where they are more than N
};

}  // namespace altiplano
