#pragma once
// A single-producer single-consumer ring of frames in shared memory. A frame lies in one piece (a pad frame fills the
// end of the ring when it would not), starts 16-byte aligned, and is handed over as a whole.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "framework/api/segment/segment_layout.hpp"

namespace altiplano {

enum class FrameKind : uint32_t {
  kPad,       ///< nothing; skip to the start of the ring
  kEager,     ///< a whole message
  kAnnounce,  ///< a message whose data follows once its receiver is ready
  kReady,     ///< to the sender: a receive of `message_bytes` with this context and tag waits for data
  kData,      ///< next part of the message for receive `receive`
  kOffer,     ///< a message that lies where the receiver reaches it: the payload is its BufferName
  kTaken,     ///< to the sender: offer `receive` was fetched
  kDecline,   ///< to the sender: offer `context` cannot be reached, receive `receive` waits for data
};

struct alignas(16) FrameHeader {
  FrameKind kind = FrameKind::kPad;
  uint32_t payload_bytes = 0;
  uint64_t context = 0;  ///< 0: the caller's own messages; otherwise of a group
  uint64_t tag = 0;
  int64_t message_bytes = 0;
  uint64_t receive = 0;  ///< of kReady and kData: the receiver's name for the receive; of kOffer: the sender's for it
};

/// Bytes a frame takes in the ring.
inline int64_t frame_extent(int64_t payload_bytes) {
  return (static_cast<int64_t>(sizeof(FrameHeader)) + payload_bytes + 15) / 16 * 16;
}

class RingWriter {
 public:
  RingWriter() = default;
  RingWriter(RingHeader* header, std::byte* bytes, int64_t ring_bytes)
      : header_(header), bytes_(bytes), size_(static_cast<uint64_t>(ring_bytes)) {}
  /// Payload bytes that fit into a frame now, at most `wanted`; -1 when not even a header fits. Looks past the end of
  /// the ring only when less than `least` fits before it.
  int64_t room(int64_t wanted, int64_t least);
  /// Writes and publishes a frame whose payload room() granted.
  void write(FrameHeader frame, const void* payload);

 private:
  RingHeader* header_ = nullptr;
  std::byte* bytes_ = nullptr;
  uint64_t size_ = 0;
  uint64_t written_ = 0;
};

class RingReader {
 public:
  RingReader() = default;
  RingReader(RingHeader* header, std::byte* bytes, int64_t ring_bytes)
      : header_(header), bytes_(bytes), size_(static_cast<uint64_t>(ring_bytes)) {}
  /// The oldest frame, or nullptr; its payload follows the header.
  const FrameHeader* front();
  /// Gives the front frame's bytes back to the writer.
  void pop();

 private:
  RingHeader* header_ = nullptr;
  std::byte* bytes_ = nullptr;
  uint64_t size_ = 0;
  uint64_t read_ = 0;
};

}  // namespace altiplano
