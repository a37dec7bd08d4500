#pragma once
// Strong integer ids: a RankId is no StageId. Comparable, hashable, printable; default is invalid (-1).
#include <fmt/format.h>

#include <compare>
#include <cstdint>
#include <functional>

namespace altiplano {

template <typename Tag>
struct StrongId {
  int32_t value = -1;
  constexpr StrongId() = default;
  constexpr explicit StrongId(int64_t v) : value(static_cast<int32_t>(v)) {}
  constexpr bool is_valid() const { return value >= 0; }
  constexpr size_t index() const { return static_cast<size_t>(value); }
  constexpr auto operator<=>(const StrongId&) const = default;
};

using RankId = StrongId<struct RankTag>;      ///< position in the world, 0 .. world_size-1
using StageId = StrongId<struct StageTag>;    ///< pipeline stage
using SlotId = StrongId<struct SlotTag>;      ///< logical device of a Plan; a Binding maps it to a rank
using ValueId = StrongId<struct ValueTag>;    ///< value of a Graph
using OpId = StrongId<struct OpTag>;          ///< op of a Graph
using LayerId = StrongId<struct LayerTag>;    ///< layer of a Graph
using BufferId = StrongId<struct BufferTag>;  ///< buffer of a Program
using BlockId = StrongId<struct BlockTag>;    ///< block of a Program
using GroupId = StrongId<struct GroupTag>;    ///< process group of a Program

}  // namespace altiplano

template <typename Tag>
struct std::hash<altiplano::StrongId<Tag>> {
  size_t operator()(const altiplano::StrongId<Tag>& id) const noexcept { return std::hash<int32_t>{}(id.value); }
};
template <typename Tag>
struct fmt::formatter<altiplano::StrongId<Tag>> : fmt::formatter<int32_t> {
  auto format(const altiplano::StrongId<Tag>& id, fmt::format_context& ctx) const {
    return fmt::formatter<int32_t>::format(id.value, ctx);
  }
};
