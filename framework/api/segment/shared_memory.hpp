#pragma once
// Memory of one rank that its peers reach in place. A comm plugin says how it is made and mapped (SharedMemorySource);
// ReachableMemory keeps book of what this rank made and of what it has mapped of its peers.
//
// A rank's arenas stand in its ArenaSlots of the segment; a buffer in one of them is named by a BufferName, which peers
// turn into an address of theirs. Peers map an arena when they first meet its name and keep it until the slot is used
// for another one.
#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "framework/api/segment/segment_layout.hpp"
#include "framework/base/status.hpp"

namespace altiplano {

/// How peers find memory; what the words mean is the source's affair.
using MemoryAddress = std::array<uint64_t, 4>;

class SharedMemorySource {
 public:
  struct Made {
    void* memory = nullptr;
    MemoryAddress address{};
  };
  virtual ~SharedMemorySource() = default;
  /// Zeroed memory that is there in full (touching it cannot fail later), 64-byte aligned.
  virtual Result<Made> make(int64_t bytes) = 0;
  virtual void unmake(const Made& made, int64_t bytes) = 0;
  /// A peer's memory, readable and writable; kept until unmap.
  virtual Result<void*> map(const MemoryAddress& address, int64_t bytes) = 0;
  virtual void unmap(void* memory, int64_t bytes) = 0;
};

/// A buffer as its owner names it to the peers.
struct BufferName {
  int32_t arena = kUnreachable;
  uint32_t generation = 0;  ///< of the arena's slot
  int64_t offset = 0;

  static constexpr int32_t kUnreachable = -1;
  static constexpr int32_t kEmpty = -2;  ///< no bytes: nothing to reach
  bool is_reachable() const { return arena != kUnreachable; }
};

class ReachableMemory {
 public:
  /// `source` may be null: then nothing is reachable.
  ReachableMemory(const SegmentView& view, int rank, std::shared_ptr<SharedMemorySource> source);
  ~ReachableMemory();
  ReachableMemory(const ReachableMemory&) = delete;
  ReachableMemory& operator=(const ReachableMemory&) = delete;

  /// nullptr when there is no source, no slot left, or not so much memory.
  void* allocate(int64_t bytes);
  void free(void* memory);
  BufferName name(const void* data, int64_t bytes) const;
  /// The address here of a peer's (or this rank's) buffer; nullptr for an empty one.
  Result<std::byte*> reach(int rank, const BufferName& name);

 private:
  struct Own {
    SharedMemorySource::Made made;
    int64_t bytes = 0;  ///< 0: free
  };
  struct Mapped {
    uint32_t generation = 0;  ///< 0: nothing
    void* memory = nullptr;
    int64_t bytes = 0;
  };
  Result<std::byte*> map(int rank, const BufferName& name, Mapped& mapped);

  const SegmentView view_;
  const int rank_;
  const std::shared_ptr<SharedMemorySource> source_;
  std::array<Own, kArenasPerRank> own_;
  std::vector<std::array<Mapped, kArenasPerRank>> mapped_;  ///< by peer
};

}  // namespace altiplano
