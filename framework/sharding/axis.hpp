#pragma once
// sharding/ (L2): how tensors lie on a mesh: ShardingSpec, factor rules, strategies, reshard paths, boxes and regions.
// Pure values and functions; may include base/, graph/, cluster/.
//
// Axis: a named axis of a device mesh (never of a tensor: tensors have dims). MeshShape: degrees per axis, outermost
// first; the axes a mesh does not have are of degree 1.
#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace altiplano {

enum class Axis : uint8_t { kData, kTensor, kExpert, kContext };
inline constexpr std::array<Axis, 4> kAllAxes = {Axis::kData, Axis::kTensor, Axis::kExpert, Axis::kContext};
const char* to_string(Axis axis);
std::optional<Axis> axis_from_string(std::string_view text);
/// "data, tensor, expert, context"
std::string axis_names();

/// Set of axes as bits.
class AxisSet {
 public:
  constexpr AxisSet() = default;
  constexpr AxisSet(std::initializer_list<Axis> axes) {
    for (Axis a : axes) insert(a);
  }
  constexpr bool contains(Axis a) const { return (bits_ >> static_cast<int>(a)) & 1; }
  constexpr void insert(Axis a) { bits_ |= static_cast<uint8_t>(1u << static_cast<int>(a)); }
  constexpr void erase(Axis a) { bits_ &= static_cast<uint8_t>(~(1u << static_cast<int>(a))); }
  constexpr bool is_empty() const { return bits_ == 0; }
  constexpr auto operator<=>(const AxisSet&) const = default;
  constexpr AxisSet operator|(AxisSet o) const {
    AxisSet r;
    r.bits_ = bits_ | o.bits_;
    return r;
  }
  constexpr AxisSet operator&(AxisSet o) const {
    AxisSet r;
    r.bits_ = bits_ & o.bits_;
    return r;
  }
  constexpr AxisSet operator-(AxisSet o) const {
    AxisSet r;
    r.bits_ = bits_ & static_cast<uint8_t>(~o.bits_);
    return r;
  }

 private:
  uint8_t bits_ = 0;
};

/// Axes in an order, each at most once: what splits one dim of a tensor, major first. Trivially copyable.
class AxisList {
 public:
  AxisList() = default;
  AxisList(std::initializer_list<Axis> axes) {
    for (Axis axis : axes) push_back(axis);
  }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const Axis* begin() const { return axes_.data(); }
  const Axis* end() const { return axes_.data() + size_; }
  Axis back() const { return axes_[size_ - 1u]; }
  /// There must be room: less than kAllAxes.size() axes so far.
  void push_back(Axis axis) { axes_[size_++] = axis; }
  void pop_back() { axes_[--size_] = Axis{}; }
  void insert(const Axis* before, Axis axis) {
    const auto at = before - begin();
    push_back(axis);
    std::rotate(axes_.begin() + at, axes_.begin() + size_ - 1, axes_.begin() + size_);
  }
  auto operator<=>(const AxisList& other) const {
    return std::lexicographical_compare_three_way(begin(), end(), other.begin(), other.end());
  }
  bool operator==(const AxisList&) const = default;

 private:
  std::array<Axis, kAllAxes.size()> axes_{};  // those beyond size_ are Axis{}
  uint8_t size_ = 0;
};

/// Axes and degrees of a logical mesh, major first, e.g. {data: 2, tensor: 2}. Coordinates are row-major over them.
struct MeshShape {
  std::vector<std::pair<Axis, int>> axes;

  int degree(Axis axis) const;  ///< 1 when absent
  int num_devices() const;
  /// Coordinate along every axis (indexed by Axis) of the device at row-major position `index`.
  std::array<int, kAllAxes.size()> coordinates(int index) const;
  int index_of(const std::array<int, kAllAxes.size()>& coordinates) const;
  /// Positions of the devices that differ from `index` only along `axes`, row-major in mesh order: a process group.
  std::vector<int> group(int index, AxisSet axes) const;
  /// Axes of degree > 1.
  AxisSet active() const;
  std::string to_string() const;  ///< "{data: 2, tensor: 2}"
  bool operator==(const MeshShape&) const = default;
};

}  // namespace altiplano
