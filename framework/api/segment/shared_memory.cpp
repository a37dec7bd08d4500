#include "framework/api/segment/shared_memory.hpp"

#include <algorithm>

namespace altiplano {

ReachableMemory::ReachableMemory(const SegmentView& view, int rank, std::shared_ptr<SharedMemorySource> source)
    : view_(view),
      rank_(rank),
      source_(std::move(source)),
      mapped_(static_cast<size_t>(view.header().shape.world_size)) {}

ReachableMemory::~ReachableMemory() {
  for (auto& arenas : mapped_)
    for (Mapped& mapped : arenas)
      if (mapped.memory != nullptr) source_->unmap(mapped.memory, mapped.bytes);
  for (Own& own : own_)
    if (own.bytes > 0) source_->unmake(own.made, own.bytes);
}

void* ReachableMemory::allocate(int64_t bytes) {
  if (source_ == nullptr || bytes <= 0) return nullptr;
  const auto free_slot = std::find_if(own_.begin(), own_.end(), [](const Own& own) { return own.bytes == 0; });
  if (free_slot == own_.end()) return nullptr;
  const auto made = source_->make(bytes);
  if (!made.is_ok()) return nullptr;
  *free_slot = {*made, bytes};
  ArenaSlot& slot = view_.arena(rank_, static_cast<int>(free_slot - own_.begin()));
  slot.bytes = bytes;
  slot.address = made->address;
  slot.generation.fetch_add(1, std::memory_order_seq_cst);
  return made->memory;
}

void ReachableMemory::free(void* memory) {
  if (memory == nullptr) return;
  const auto found = std::find_if(own_.begin(), own_.end(),
                                  [&](const Own& own) { return own.bytes > 0 && own.made.memory == memory; });
  ALTIPLANO_ASSERT(found != own_.end(), "free_registered of memory this communicator did not allocate");
  source_->unmake(found->made, found->bytes);
  *found = {};
}

BufferName ReachableMemory::name(const void* data, int64_t bytes) const {
  if (bytes == 0) return {.arena = BufferName::kEmpty};
  const auto* begin = static_cast<const std::byte*>(data);
  for (size_t i = 0; i < own_.size(); ++i) {
    const auto* base = static_cast<const std::byte*>(own_[i].made.memory);
    if (own_[i].bytes == 0 || begin < base || begin + bytes > base + own_[i].bytes) continue;
    const int arena = static_cast<int>(i);
    return {arena, view_.arena(rank_, arena).generation.load(std::memory_order_relaxed), begin - base};
  }
  return {};
}

Result<std::byte*> ReachableMemory::reach(int rank, const BufferName& name) {
  if (name.arena == BufferName::kEmpty) return static_cast<std::byte*>(nullptr);
  if (rank == rank_) return static_cast<std::byte*>(own_[static_cast<size_t>(name.arena)].made.memory) + name.offset;
  Mapped& mapped = mapped_[static_cast<size_t>(rank)][static_cast<size_t>(name.arena)];
  if (mapped.generation == name.generation) return static_cast<std::byte*>(mapped.memory) + name.offset;
  return map(rank, name, mapped);
}

Result<std::byte*> ReachableMemory::map(int rank, const BufferName& name, Mapped& mapped) {
  if (mapped.memory != nullptr) source_->unmap(mapped.memory, mapped.bytes);
  mapped = {};
  const ArenaSlot& slot = view_.arena(rank, name.arena);
  ALTIPLANO_ASSIGN(void* memory, source_->map(slot.address, slot.bytes));
  mapped = {name.generation, memory, slot.bytes};
  return static_cast<std::byte*>(memory) + name.offset;
}

}  // namespace altiplano
