#pragma once
// api/segment/: one transport for ranks that share memory, be they threads of one process (comm/inproc) or processes of
// one host (comm/shm). The plugins only bring the memory; everything else is here.
//
// Layout of a segment, all parts 64-byte aligned, all zero before initialize_segment:
//   SegmentHeader | RankSlot[world] | ArenaSlot[world * kArenasPerRank] | RankMeetings[world]
//   | RingHeader[world * world] | ring bytes [world * world]
// The ring of the pair (from, to) is a single-producer single-consumer byte ring of frames; see byte_ring.hpp.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace altiplano {

/// What a segment is made for; equal on all ranks or the segment is refused.
struct SegmentShape {
  int32_t world_size = 1;
  int64_t ring_bytes = 0;   ///< of one direction between two ranks; power of two
  int64_t frame_bytes = 0;  ///< largest frame, header included; at most half a ring
};

/// frame_bytes from the asked chunk (clamped to [128 B, 16 MiB]), rings of at least two frames; when all rings together
/// would pass 512 MiB, chunks shrink (never below 4 KiB).
SegmentShape segment_shape(int world_size, int64_t chunk_bytes);
size_t segment_bytes(const SegmentShape& shape);

enum AbortState : uint32_t { kRunning = 0, kAbortBeingWritten = 1, kAborted = 2 };

struct alignas(64) SegmentHeader {
  std::atomic<uint64_t> magic;  ///< set last
  SegmentShape shape;
  std::atomic<uint32_t> abort_state;  ///< AbortState; the texts below are valid once it is kAborted
  int32_t abort_rank;                 ///< the rank that failed first
  int32_t abort_code;                 ///< StatusCode peers report
  char abort_reason[1024];            ///< NUL terminated
};

/// What a rank tells its peers. Written by its owner, but for `doorbell` and `sleeping`.
struct alignas(64) RankSlot {
  std::atomic<uint32_t> doorbell;  ///< futex word, bumped to wake the rank
  std::atomic<uint32_t> sleeping;  ///< the rank is about to wait on its doorbell
  std::atomic<int32_t> process;    ///< pid; 0 until attached
  std::atomic<uint32_t> left;      ///< the rank closed its communicator
  std::atomic<int64_t> heartbeat;  ///< wall clock in ms when it last was inside a call
  std::atomic<int64_t> step;       ///< as of its set_step
  std::atomic<int32_t> waits_for;  ///< the peer its present wait needs, plus one; 0: in no wait
};

struct alignas(64) RingHeader {
  alignas(64) std::atomic<uint64_t> written;  ///< bytes ever written, by the sender
  alignas(64) std::atomic<uint64_t> read;     ///< bytes ever read, by the receiver
  std::atomic<uint64_t> eager_taken;          ///< eager bytes that found their receive, by the receiver
};

inline constexpr int kArenasPerRank = 16;

/// Memory of a rank that its peers may map (shared_memory.hpp). Written by its owner while nobody reads it: peers look
/// at a slot only when they were told its generation.
struct alignas(64) ArenaSlot {
  std::atomic<uint32_t> generation;  ///< how often the slot was used; 0: never
  int64_t bytes;
  std::array<uint64_t, 4> address;
};

inline constexpr int kGroupsPerRank = 128;
inline constexpr int kLanes = 3;  ///< streams
inline constexpr int64_t kPostBytes = 224;

/// What a member of a group shows the others of its present collective (meeting.hpp).
struct alignas(64) MeetingPost {
  std::atomic<uint64_t> sequence;  ///< of the call, set last
  int64_t count;
  int32_t root;
  uint8_t kind, reduce, dtype;
  alignas(
      16) std::array<std::byte, kPostBytes> payload;  ///< the data itself when it fits, else the names of its buffers
};

/// A member's place in the meetings of one group and stream. The posts take turns: nobody is ever two calls ahead.
struct MeetingPlace {
  std::array<MeetingPost, 2> posts;
  alignas(64) std::atomic<uint64_t> finished;  ///< calls after which it needs nothing of the others' buffers any more
};

/// A rank's groups in the order of their creation.
struct RankMeetings {
  std::array<std::atomic<uint64_t>, kGroupsPerRank> contexts;  ///< SegmentGroup::context; 0: none yet
  std::array<std::array<MeetingPlace, kLanes>, kGroupsPerRank> places;
};

/// Non-owning view of a segment.
class SegmentView {
 public:
  SegmentView() = default;
  explicit SegmentView(void* memory) : base_(static_cast<std::byte*>(memory)) {}
  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  RankSlot& rank(int rank) const;
  ArenaSlot& arena(int rank, int arena) const;
  RankMeetings& meetings(int rank) const;
  RingHeader& ring_header(int from, int to) const;
  std::byte* ring_bytes(int from, int to) const;

 private:
  std::byte* base_ = nullptr;
};

/// Called by one rank on zeroed memory of segment_bytes(shape), before the others look.
void initialize_segment(void* memory, const SegmentShape& shape);
bool is_initialized(const SegmentView& view, const SegmentShape& shape);

}  // namespace altiplano
