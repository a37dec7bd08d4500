#include "framework/api/segment/peer_channel.hpp"

#include <algorithm>

#include "framework/base/status.hpp"

namespace altiplano {
namespace {

constexpr int64_t kEagerLimit = 64 << 10;  // larger messages are not worth buffering
constexpr int64_t kEagerRings = 4;         // eager window in rings
constexpr int kUsuallyEarly = 4;           // messages at once that come before their receive; more allocate

bool is_same_message(const Transfer& transfer, const FrameHeader& frame) {
  return transfer.context == frame.context && transfer.tag == frame.tag;
}

FrameHeader first_frame(FrameKind kind, const Transfer& transfer) {
  FrameHeader frame;
  frame.kind = kind;
  frame.context = transfer.context;
  frame.tag = transfer.tag;
  frame.message_bytes = transfer.bytes;
  frame.receive = transfer.receive;
  return frame;
}

}  // namespace

PeerChannel::PeerChannel(const SegmentView& view, int rank, int peer, ReachableMemory& memory,
                         std::vector<TransferOwner*>* completed)
    : out_(&view.ring_header(rank, peer)),
      in_(&view.ring_header(peer, rank)),
      memory_(&memory),
      peer_(peer),
      completed_(completed) {
  const SegmentShape& shape = view.header().shape;
  writer_ = RingWriter(out_, view.ring_bytes(rank, peer), shape.ring_bytes);
  reader_ = RingReader(in_, view.ring_bytes(peer, rank), shape.ring_bytes);
  payload_limit_ = shape.frame_bytes - static_cast<int64_t>(sizeof(FrameHeader));
  eager_window_ = kEagerRings * shape.ring_bytes;
}

void PeerChannel::post_send(Transfer& transfer) {
  queue_.push_back(&transfer);
}

std::optional<SizeMismatch> PeerChannel::post_receive(Transfer& transfer) {
  if (next_receive_ == 1)
    for (int i = 0; i < kUsuallyEarly; ++i) make_payload();
  transfer.receive = next_receive_++;
  for (size_t i = 0; i < unexpected_.size(); ++i) {
    if (!is_same_message(transfer, unexpected_.at(i).frame)) continue;
    Unexpected message = unexpected_.take(i);
    auto mismatch = match(transfer, message.frame, message.payload.data());
    free_payloads_.push_back(std::move(message.payload));
    return mismatch;
  }
  if (transfer.bytes > std::min(payload_limit_, kEagerLimit)) send_ready(transfer);
  posted_.push_back(&transfer);
  return std::nullopt;
}

void PeerChannel::finish(Transfer& transfer) {
  transfer.is_done = true;
  if (--transfer.owner->outstanding == 0) completed_->push_back(transfer.owner);
}

void PeerChannel::send_ready(Transfer& transfer) {
  controls_.push_back(first_frame(FrameKind::kReady, transfer));
  transfer.ready_sent = true;
}

// ---- incoming ----

std::optional<SizeMismatch> PeerChannel::match(Transfer& transfer, const FrameHeader& frame, const std::byte* payload) {
  if (frame.message_bytes != transfer.bytes) return SizeMismatch{&transfer, frame.message_bytes};
  if (frame.kind == FrameKind::kOffer) {
    fetch(transfer, frame, payload);
    return std::nullopt;
  }
  if (frame.kind == FrameKind::kAnnounce) {
    receiving_.push_back(&transfer);
    if (!transfer.ready_sent) send_ready(transfer);
    return std::nullopt;
  }
  if (transfer.bytes > 0) std::memcpy(transfer.data, payload, static_cast<size_t>(transfer.bytes));
  transfer.moved = transfer.bytes;
  in_->eager_taken.fetch_add(static_cast<uint64_t>(frame_extent(transfer.bytes)), std::memory_order_relaxed);
  finish(transfer);
  return std::nullopt;
}

void PeerChannel::fetch(Transfer& transfer, const FrameHeader& frame, const std::byte* payload) {
  BufferName place;
  std::memcpy(&place, payload, sizeof(place));
  FrameHeader answer = first_frame(FrameKind::kTaken, transfer);
  const auto data = memory_->reach(peer_, place);
  if (!data.is_ok()) {
    answer.kind = FrameKind::kDecline;
    answer.context = frame.receive;
    controls_.push_back(answer);
    receiving_.push_back(&transfer);
    return;
  }
  if (transfer.bytes > 0) std::memcpy(transfer.data, *data, static_cast<size_t>(transfer.bytes));
  transfer.moved = transfer.bytes;
  answer.receive = frame.receive;
  controls_.push_back(answer);
  finish(transfer);
}

std::optional<SizeMismatch> PeerChannel::on_message(const FrameHeader& frame, const std::byte* payload) {
  for (size_t i = 0; i < posted_.size(); ++i)
    if (is_same_message(*posted_.at(i), frame)) return match(*posted_.take(i), frame, payload);
  keep_unexpected(frame, payload);
  return std::nullopt;
}

void PeerChannel::keep_unexpected(const FrameHeader& frame, const std::byte* payload) {
  if (free_payloads_.empty()) make_payload();
  Unexpected message{frame, std::move(free_payloads_.back())};
  free_payloads_.pop_back();
  message.payload.assign(payload, payload + frame.payload_bytes);
  unexpected_.push_back(std::move(message));
}

/// Room for any eager message, so that it need never grow.
void PeerChannel::make_payload() {
  free_payloads_.emplace_back().reserve(static_cast<size_t>(std::min(payload_limit_, kEagerLimit)));
}

void PeerChannel::on_ready(const FrameHeader& frame) {
  const auto found = std::find_if(announced_.begin(), announced_.end(), [&](const Transfer* send) {
    return !send->is_asked_for && is_same_message(*send, frame) && send->bytes == frame.message_bytes;
  });
  if (found == announced_.end()) {
    early_readies_.push_back(frame);
    return;
  }
  ask_for(**found, frame.receive);
  if ((*found)->offer == 0) announced_.erase(found);
}

/// A receive waits for it: what is offered the receiver fetches.
void PeerChannel::ask_for(Transfer& transfer, uint64_t receive) {
  transfer.is_asked_for = true;
  if (transfer.offer != 0) return;
  transfer.receive = receive;
  streams_.push_back(&transfer);
}

Transfer& PeerChannel::take_offer(uint64_t offer) {
  const auto found = std::ranges::find(announced_, offer, &Transfer::offer);
  ALTIPLANO_ASSERT(found != announced_.end(), "answer to offer {} that was not made", offer);
  Transfer& transfer = **found;
  announced_.erase(found);
  return transfer;
}

void PeerChannel::on_taken(const FrameHeader& frame) {
  Transfer& transfer = take_offer(frame.receive);
  transfer.moved = transfer.bytes;
  finish(transfer);
}

void PeerChannel::on_decline(const FrameHeader& frame) {
  Transfer& transfer = take_offer(frame.context);
  transfer.offer = 0;
  ask_for(transfer, frame.receive);
}

void PeerChannel::on_data(const FrameHeader& frame, const std::byte* payload) {
  auto found = std::find_if(receiving_.begin(), receiving_.end(),
                            [&](const Transfer* receive) { return receive->receive == frame.receive; });
  ALTIPLANO_ASSERT(found != receiving_.end(), "data for receive {} that is not announced", frame.receive);
  Transfer& transfer = **found;
  ALTIPLANO_ASSERT(transfer.moved + frame.payload_bytes <= transfer.bytes, "more data than announced");
  if (frame.payload_bytes > 0) std::memcpy(transfer.data + transfer.moved, payload, frame.payload_bytes);
  transfer.moved += frame.payload_bytes;
  if (transfer.moved < transfer.bytes) return;
  receiving_.erase(found);
  finish(transfer);
}

std::optional<SizeMismatch> PeerChannel::drain(bool& moved) {
  while (const FrameHeader* frame = reader_.front()) {
    moved = true;
    const auto* payload = reinterpret_cast<const std::byte*>(frame + 1);
    std::optional<SizeMismatch> mismatch;
    switch (frame->kind) {
      case FrameKind::kEager:
      case FrameKind::kAnnounce:
      case FrameKind::kOffer:
        mismatch = on_message(*frame, payload);
        break;
      case FrameKind::kReady:
        on_ready(*frame);
        break;
      case FrameKind::kData:
        on_data(*frame, payload);
        break;
      case FrameKind::kTaken:
        on_taken(*frame);
        break;
      case FrameKind::kDecline:
        on_decline(*frame);
        break;
      case FrameKind::kPad:
        ALTIPLANO_ASSERT(false, "pad frame at the front of a ring");
    }
    reader_.pop();
    if (mismatch) return mismatch;
  }
  return std::nullopt;
}

// ---- outgoing ----

void PeerChannel::flush(bool& moved) {
  if (flush_controls(moved) && flush_queue(moved)) flush_streams(moved);
}

bool PeerChannel::flush_controls(bool& moved) {
  while (!controls_.empty()) {
    if (writer_.room(0, 0) < 0) return false;
    writer_.write(controls_.front(), nullptr);
    controls_.pop_front();
    moved = true;
  }
  return true;
}

// First frames go in the order of the sends, so that a full ring holds up later sends for a moment but never reorders
// messages.
bool PeerChannel::flush_queue(bool& moved) {
  while (!queue_.empty()) {
    if (!write_first_frame(*queue_.front())) return false;
    queue_.pop_front();
    moved = true;
  }
  return true;
}

bool PeerChannel::write_first_frame(Transfer& transfer) {
  const int64_t extent = frame_extent(transfer.bytes);
  const auto taken = static_cast<int64_t>(out_->eager_taken.load(std::memory_order_relaxed));
  if (transfer.bytes <= std::min(payload_limit_, kEagerLimit) && eager_sent_ - taken + extent <= eager_window_) {
    if (writer_.room(transfer.bytes, transfer.bytes) < 0) return false;
    FrameHeader frame = first_frame(FrameKind::kEager, transfer);
    frame.payload_bytes = static_cast<uint32_t>(transfer.bytes);
    writer_.write(frame, transfer.data);
    eager_sent_ += extent;
    transfer.moved = transfer.bytes;
    finish(transfer);
    return true;
  }
  if (const BufferName place = memory_->name(transfer.data, transfer.bytes); place.is_reachable())
    return write_offer(transfer, place);
  if (writer_.room(0, 0) < 0) return false;
  writer_.write(first_frame(FrameKind::kAnnounce, transfer), nullptr);
  announced(transfer);
  return true;
}

bool PeerChannel::write_offer(Transfer& transfer, const BufferName& place) {
  constexpr int64_t kBytes = sizeof(BufferName);
  if (writer_.room(kBytes, kBytes) < kBytes) return false;
  FrameHeader frame = first_frame(FrameKind::kOffer, transfer);
  frame.payload_bytes = kBytes;
  frame.receive = transfer.offer = next_offer_++;
  writer_.write(frame, &place);
  announced(transfer);
  return true;
}

void PeerChannel::announced(Transfer& transfer) {
  const auto found = std::find_if(early_readies_.begin(), early_readies_.end(), [&](const FrameHeader& ready) {
    return is_same_message(transfer, ready) && ready.message_bytes == transfer.bytes;
  });
  if (found != early_readies_.end()) {
    const uint64_t receive = found->receive;
    early_readies_.erase(found);
    ask_for(transfer, receive);
    if (transfer.offer == 0) return;
  }
  announced_.push_back(&transfer);
  if (transfer.offer == 0) ++num_announced_;
}

bool PeerChannel::has_announced_data() const {
  return std::ranges::any_of(announced_, [](const Transfer* send) { return send->offer == 0; });
}

void PeerChannel::flush_streams(bool& moved) {
  while (!streams_.empty()) {
    Transfer& transfer = *streams_.front();
    const int64_t left = transfer.bytes - transfer.moved;
    const int64_t wanted = std::min(left, payload_limit_);
    const int64_t room = writer_.room(wanted, std::min(wanted, std::max<int64_t>(payload_limit_ / 4 / 16 * 16, 16)));
    if (room < 0) return;
    FrameHeader frame = first_frame(FrameKind::kData, transfer);
    frame.payload_bytes = static_cast<uint32_t>(room);
    writer_.write(frame, transfer.data + transfer.moved);
    transfer.moved += room;
    moved = true;
    if (transfer.moved < transfer.bytes) continue;
    streams_.pop_front();
    finish(transfer);
  }
}

}  // namespace altiplano
