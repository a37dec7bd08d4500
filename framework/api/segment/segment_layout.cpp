#include "framework/api/segment/segment_layout.hpp"

#include <algorithm>
#include <bit>
#include <new>

namespace altiplano {
namespace {

constexpr uint64_t kMagic = 0x414C5449'53474D32;  // "ALTISGM2"
constexpr int64_t kSmallestFrame = 128, kLargestFrame = int64_t{16} << 20;
constexpr int64_t kAllRings = int64_t{512} << 20, kSmallestShrunkRing = 8192;

size_t num_rings(const SegmentShape& shape) {
  return static_cast<size_t>(shape.world_size) * static_cast<size_t>(shape.world_size);
}
size_t slots_offset() {
  return sizeof(SegmentHeader);
}
size_t arenas_offset(const SegmentShape& shape) {
  return slots_offset() + sizeof(RankSlot) * static_cast<size_t>(shape.world_size);
}
size_t meetings_offset(const SegmentShape& shape) {
  return arenas_offset(shape) + sizeof(ArenaSlot) * kArenasPerRank * static_cast<size_t>(shape.world_size);
}
size_t ring_headers_offset(const SegmentShape& shape) {
  return meetings_offset(shape) + sizeof(RankMeetings) * static_cast<size_t>(shape.world_size);
}
size_t rings_offset(const SegmentShape& shape) {
  return ring_headers_offset(shape) + sizeof(RingHeader) * num_rings(shape);
}
size_t ring_index(const SegmentShape& shape, int from, int to) {
  return static_cast<size_t>(from) * static_cast<size_t>(shape.world_size) + static_cast<size_t>(to);
}

template <typename T>
void make_all(void* memory, size_t offset, size_t count) {
  auto* at = static_cast<std::byte*>(memory) + offset;
  for (size_t i = 0; i < count; ++i) new (at + sizeof(T) * i) T{};
}

}  // namespace

SegmentShape segment_shape(int world_size, int64_t chunk_bytes) {
  SegmentShape shape;
  shape.world_size = world_size;
  shape.frame_bytes = std::clamp(chunk_bytes, kSmallestFrame, kLargestFrame) / 16 * 16;
  shape.ring_bytes = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * shape.frame_bytes)));
  const int64_t rings = int64_t{world_size} * world_size;
  while (shape.ring_bytes * rings > kAllRings && shape.ring_bytes > kSmallestShrunkRing) shape.ring_bytes /= 2;
  shape.frame_bytes = std::min(shape.frame_bytes, shape.ring_bytes / 2);
  return shape;
}

size_t segment_bytes(const SegmentShape& shape) {
  return rings_offset(shape) + num_rings(shape) * static_cast<size_t>(shape.ring_bytes);
}

RankSlot& SegmentView::rank(int rank) const {
  return reinterpret_cast<RankSlot*>(base_ + slots_offset())[rank];
}

ArenaSlot& SegmentView::arena(int rank, int arena) const {
  return reinterpret_cast<ArenaSlot*>(base_ + arenas_offset(header().shape))[rank * kArenasPerRank + arena];
}

RankMeetings& SegmentView::meetings(int rank) const {
  return reinterpret_cast<RankMeetings*>(base_ + meetings_offset(header().shape))[rank];
}

RingHeader& SegmentView::ring_header(int from, int to) const {
  const SegmentShape& shape = header().shape;
  return reinterpret_cast<RingHeader*>(base_ + ring_headers_offset(shape))[ring_index(shape, from, to)];
}

std::byte* SegmentView::ring_bytes(int from, int to) const {
  const SegmentShape& shape = header().shape;
  return base_ + rings_offset(shape) + ring_index(shape, from, to) * static_cast<size_t>(shape.ring_bytes);
}

void initialize_segment(void* memory, const SegmentShape& shape) {
  auto* header = new (memory) SegmentHeader{};
  header->shape = shape;
  const auto world = static_cast<size_t>(shape.world_size);
  make_all<RankSlot>(memory, slots_offset(), world);
  make_all<ArenaSlot>(memory, arenas_offset(shape), world * kArenasPerRank);
  make_all<RankMeetings>(memory, meetings_offset(shape), world);
  make_all<RingHeader>(memory, ring_headers_offset(shape), num_rings(shape));
  header->magic.store(kMagic, std::memory_order_release);
}

bool is_initialized(const SegmentView& view, const SegmentShape& shape) {
  const SegmentHeader& header = view.header();
  return header.magic.load(std::memory_order_acquire) == kMagic && header.shape.world_size == shape.world_size &&
         header.shape.ring_bytes == shape.ring_bytes && header.shape.frame_bytes == shape.frame_bytes;
}

}  // namespace altiplano
