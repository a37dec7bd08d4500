#include "framework/sharding/axis.hpp"

#include "framework/base/status.hpp"

namespace altiplano {

const char* to_string(Axis axis) {
  switch (axis) {
    case Axis::kData:
      return "data";
    case Axis::kTensor:
      return "tensor";
    case Axis::kExpert:
      return "expert";
    case Axis::kContext:
      return "context";
  }
  return "?";
}

std::optional<Axis> axis_from_string(std::string_view text) {
  for (Axis axis : kAllAxes)
    if (text == to_string(axis)) return axis;
  return std::nullopt;
}

std::string axis_names() {
  std::string names;
  for (Axis axis : kAllAxes) names += (names.empty() ? "" : ", ") + std::string(to_string(axis));
  return names;
}

int MeshShape::degree(Axis axis) const {
  for (const auto& [a, degree] : axes)
    if (a == axis) return degree;
  return 1;
}

int MeshShape::num_devices() const {
  int n = 1;
  for (const auto& [axis, degree] : axes) n *= degree;
  return n;
}

std::array<int, kAllAxes.size()> MeshShape::coordinates(int index) const {
  std::array<int, kAllAxes.size()> result{};
  for (auto it = axes.rbegin(); it != axes.rend(); ++it) {
    result[static_cast<size_t>(it->first)] = index % it->second;
    index /= it->second;
  }
  return result;
}

int MeshShape::index_of(const std::array<int, kAllAxes.size()>& coordinates) const {
  int index = 0;
  for (const auto& [axis, degree] : axes) index = index * degree + coordinates[static_cast<size_t>(axis)];
  return index;
}

std::vector<int> MeshShape::group(int index, AxisSet along) const {
  auto mine = coordinates(index);
  std::vector<int> members;
  for (int other = 0; other < num_devices(); ++other) {
    auto theirs = coordinates(other);
    bool same = true;
    for (const auto& [axis, degree] : axes)
      same = same && (along.contains(axis) || theirs[static_cast<size_t>(axis)] == mine[static_cast<size_t>(axis)]);
    if (same) members.push_back(other);
  }
  return members;
}

AxisSet MeshShape::active() const {
  AxisSet set;
  for (const auto& [axis, degree] : axes)
    if (degree > 1) set.insert(axis);
  return set;
}

std::string MeshShape::to_string() const {
  std::string text = "{";
  for (size_t i = 0; i < axes.size(); ++i)
    text += fmt::format("{}{}: {}", i == 0 ? "" : ", ", altiplano::to_string(axes[i].first), axes[i].second);
  return text + "}";
}

}  // namespace altiplano
