#pragma once
// Names of what ranks do together; priced in cost/, lowered in program/, done by comm plugins.
#include <array>
#include <cstdint>

namespace altiplano {

enum class ReduceKind : uint8_t { kSum, kMax };
enum class CollectiveKind : uint8_t { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kBroadcast, kBarrier };
inline constexpr std::array kAllCollectives = {CollectiveKind::kAllReduce,     CollectiveKind::kAllGather,
                                               CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                                               CollectiveKind::kBroadcast,     CollectiveKind::kBarrier};
const char* to_string(CollectiveKind kind);

/// Independent lanes of work of one rank; work inside a lane is in order.
enum class StreamKind : uint8_t { kCompute, kCollective, kTransfer };
const char* to_string(StreamKind stream);

}  // namespace altiplano
