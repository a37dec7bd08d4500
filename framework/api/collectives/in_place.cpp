#include "framework/api/collectives/in_place.hpp"

#include <algorithm>
#include <cstring>

#include "framework/api/collectives/reduce.hpp"

namespace altiplano {
namespace {

constexpr int64_t kCacheLine = 64;

void copy(std::byte* to, const std::byte* from, int64_t bytes) {
  if (to != from && bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

/// The `index`-th of n parts of [0, count), borders on whole cache lines of the data.
std::pair<int64_t, int64_t> part_of(int64_t count, int64_t element, int64_t n, int64_t index) {
  const int64_t line = kCacheLine / element;
  const int64_t part = ((count + n - 1) / n + line - 1) / line * line;
  const int64_t begin = std::min(index * part, count);
  return {begin, std::min(part, count - begin)};
}

}  // namespace

int64_t bytes_in(const CollectiveCall& call, int num_ranks, int member) {
  const int64_t bytes = call.count * size_of(call.dtype);
  switch (call.kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllGather:
      return bytes;
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
      return bytes * num_ranks;
    case CollectiveKind::kBroadcast:
      return member == call.root ? bytes : 0;
    case CollectiveKind::kBarrier:
      return 0;
  }
  return 0;
}

int64_t bytes_out(const CollectiveCall& call, int num_ranks) {
  const int64_t bytes = call.count * size_of(call.dtype);
  if (call.kind == CollectiveKind::kBarrier) return 0;
  return call.kind == CollectiveKind::kAllGather || call.kind == CollectiveKind::kAllToAll ? bytes * num_ranks : bytes;
}

const void* data_in(const CollectiveCall& call) {
  return call.kind == CollectiveKind::kBroadcast ? call.out : call.in;
}

void run_alone(const CollectiveCall& call, int index, std::span<const std::byte* const> in) {
  const int64_t bytes = call.count * size_of(call.dtype);
  auto* out = static_cast<std::byte*>(call.out);
  std::byte* const own[] = {out};
  switch (call.kind) {
    case CollectiveKind::kAllReduce:
      return reduce_in_order({own, 0, in, 0, call.count, call.dtype, call.reduce});
    case CollectiveKind::kReduceScatter:
      return reduce_in_order({own, 0, in, index * bytes, call.count, call.dtype, call.reduce});
    case CollectiveKind::kAllGather:
      for (size_t r = 0; r < in.size(); ++r) copy(out + static_cast<int64_t>(r) * bytes, in[r], bytes);
      return;
    case CollectiveKind::kAllToAll:
      for (size_t r = 0; r < in.size(); ++r) copy(out + static_cast<int64_t>(r) * bytes, in[r] + index * bytes, bytes);
      return;
    case CollectiveKind::kBroadcast:
      if (index != call.root) copy(out, in[static_cast<size_t>(call.root)], bytes);
      return;
    case CollectiveKind::kBarrier:
      return;
  }
}

void run_part(const CollectiveCall& call, int index, std::span<const std::byte* const> in,
              std::span<std::byte* const> out) {
  if (call.kind != CollectiveKind::kAllReduce) return run_alone(call, index, in);
  const int64_t element = size_of(call.dtype);
  const auto [begin, count] = part_of(call.count, element, static_cast<int64_t>(in.size()), index);
  reduce_in_order({out, begin * element, in, begin * element, count, call.dtype, call.reduce});
}

}  // namespace altiplano
