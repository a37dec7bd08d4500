#include "framework/api/segment/byte_ring.hpp"

#include <algorithm>

namespace altiplano {
namespace {

constexpr int64_t kHeader = sizeof(FrameHeader);

}  // namespace

// Publishing stores and the loads of the other side are sequentially consistent: together with RankSlot::sleeping they
// make sure that either the sleeper sees the frame or the writer sees the sleeper.

int64_t RingWriter::room(int64_t wanted, int64_t least) {
  const auto free = static_cast<int64_t>(size_ - (written_ - header_->read.load(std::memory_order_seq_cst)));
  const auto to_end = static_cast<int64_t>(size_ - (written_ & (size_ - 1)));
  const int64_t here = std::min(free, to_end);
  if (here >= frame_extent(least)) return std::min(wanted, here - kHeader);
  if (here < to_end || free - to_end < frame_extent(least)) return -1;
  FrameHeader pad;
  pad.payload_bytes = static_cast<uint32_t>(std::max<int64_t>(to_end - kHeader, 0));
  std::memcpy(bytes_ + (written_ & (size_ - 1)), &pad, static_cast<size_t>(std::min(to_end, kHeader)));
  written_ += static_cast<uint64_t>(to_end);
  return std::min(wanted, free - to_end - kHeader);
}

void RingWriter::write(FrameHeader frame, const void* payload) {
  std::byte* at = bytes_ + (written_ & (size_ - 1));
  std::memcpy(at, &frame, sizeof(frame));
  if (frame.payload_bytes > 0) std::memcpy(at + sizeof(frame), payload, frame.payload_bytes);
  written_ += static_cast<uint64_t>(frame_extent(frame.payload_bytes));
  header_->written.store(written_, std::memory_order_seq_cst);
}

const FrameHeader* RingReader::front() {
  const uint64_t written = header_->written.load(std::memory_order_seq_cst);
  if (read_ == written) return nullptr;
  const auto* frame = reinterpret_cast<const FrameHeader*>(bytes_ + (read_ & (size_ - 1)));
  if (frame->kind != FrameKind::kPad) return frame;
  read_ += size_ - (read_ & (size_ - 1));  // a pad is published only together with the frame behind it
  return reinterpret_cast<const FrameHeader*>(bytes_);
}

void RingReader::pop() {
  const auto* frame = reinterpret_cast<const FrameHeader*>(bytes_ + (read_ & (size_ - 1)));
  read_ += static_cast<uint64_t>(frame_extent(frame->payload_bytes));
  header_->read.store(read_, std::memory_order_seq_cst);
}

}  // namespace altiplano
