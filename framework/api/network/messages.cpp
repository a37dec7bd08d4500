#include "framework/api/network/messages.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

namespace altiplano::network {
namespace {

constexpr uint32_t kMostNumbers = 1u << 30;  // any library has as many tags that a process can name

}  // namespace

Messages::Messages(Transport& transport, int rank, int world_size, int64_t piece_bytes,
                   std::vector<TransferOwner*>* completed)
    : transport_(transport),
      rank_(rank),
      piece_bytes_(std::clamp<int64_t>(piece_bytes, 1, transport.most_bytes())),
      completed_(completed),
      peers_(static_cast<size_t>(world_size)) {
  std::lock_guard lock(transport_.mutex());
  for (size_t slot = 0; slot < kReceives; ++slot) (void)post_frame_receive(slot);  // what fails here fails again later
}

Messages::~Messages() {
  constexpr auto kForFrames = std::chrono::milliseconds(100);
  std::lock_guard lock(transport_.mutex());
  stop();
  for (Request& receive : receives_) transport_.cancel(receive, kForFrames);
}

void Messages::stop() {
  constexpr auto kForData = std::chrono::milliseconds(500);  // on its way; then its memory is left to it
  const auto until = std::chrono::steady_clock::now() + kForData;
  for (Piece& piece : pieces_) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (!piece.transfer->is_send) transport_.cancel(piece.request, std::max(left, std::chrono::milliseconds(0)));
  }
  pieces_.clear();
}

// ---- sending ----

Status Messages::send(Transfer& transfer) {
  if (transfer.peer == rank_) {
    send_to_self(transfer);
    return Status::ok();
  }
  FrameHeader header{FrameKind::kEager, 0, transfer.context, transfer.tag, transfer.bytes};
  if (transfer.bytes <= kMostEager) {
    ALTIPLANO_RETURN_IF_ERROR(send_frame(transfer.peer, header, transfer.data, static_cast<size_t>(transfer.bytes)));
    finish(transfer);
    return Status::ok();
  }
  uint32_t& next_number = peer(transfer.peer).next_number;
  header.kind = FrameKind::kAnnounce;
  header.number = next_number;
  next_number = (next_number + 1) % kMostNumbers;
  ALTIPLANO_RETURN_IF_ERROR(send_frame(transfer.peer, header, nullptr, 0));
  return start_pieces(transfer, header.number);
}

void Messages::send_to_self(Transfer& transfer) {
  Unexpected message;
  message.header = {FrameKind::kEager, 0, transfer.context, transfer.tag, transfer.bytes};
  message.own = &transfer;
  if (Transfer* receive = take_posted(rank_, transfer.context, transfer.tag))
    (void)match(*receive, message, nullptr);  // nothing is sent
  else
    peer(rank_).unexpected.push_back(std::move(message));
}

Status Messages::send_frame(int peer, const FrameHeader& header, const void* payload, size_t bytes) {
  SentFrame frame;
  if (free_frames_.empty()) {
    frame.bytes = std::make_unique<FrameBytes>();
  } else {
    frame.bytes = std::move(free_frames_.back());
    free_frames_.pop_back();
  }
  std::memcpy(frame.bytes->data(), &header, sizeof(header));
  if (bytes > 0) std::memcpy(frame.bytes->data() + sizeof(header), payload, bytes);
  ALTIPLANO_ASSIGN(frame.request, transport_.send_frame(peer, frame.bytes->data(), sizeof(header) + bytes));
  sent_.push_back(std::move(frame));
  return Status::ok();
}

Status Messages::start_pieces(Transfer& transfer, uint32_t number) {
  for (int64_t begin = 0; begin < transfer.bytes; begin += piece_bytes_) {
    Piece piece{&transfer, {}, std::min(piece_bytes_, transfer.bytes - begin)};
    std::byte* data = transfer.data + begin;
    ALTIPLANO_ASSIGN(piece.request, transfer.is_send
                                        ? transport_.send_data(transfer.peer, number, data, piece.bytes)
                                        : transport_.receive_data(transfer.peer, number, data, piece.bytes));
    pieces_.push_back(piece);
  }
  return Status::ok();
}

void Messages::tell(int peer, FrameKind kind, const std::string& text) {
  FrameHeader header{kind, 0, 0, 0, 0};
  const size_t bytes = std::min(text.size(), static_cast<size_t>(kMostEager));
  header.bytes = static_cast<int64_t>(bytes);
  (void)send_frame(peer, header, text.data(), bytes);  // who cannot be told will find out at a deadline
}

// ---- receiving ----

Status Messages::post_frame_receive(size_t slot) {
  ALTIPLANO_ASSIGN(receives_[slot], transport_.receive_frame(frames_[slot].data()));
  return Status::ok();
}

Transfer* Messages::take_posted(int from, uint64_t context, uint64_t tag) {
  Fifo<Transfer*>& posted = peer(from).posted;
  for (size_t i = 0; i < posted.size(); ++i)
    if (posted.at(i)->context == context && posted.at(i)->tag == tag) return posted.take(i);
  return nullptr;
}

Status Messages::receive(Transfer& transfer) {
  Fifo<Unexpected>& unexpected = peer(transfer.peer).unexpected;
  for (size_t i = 0; i < unexpected.size(); ++i) {
    const FrameHeader& header = unexpected.at(i).header;
    if (header.context != transfer.context || header.tag != transfer.tag) continue;
    const Unexpected message = unexpected.take(i);
    return match(transfer, message, message.payload.data());
  }
  peer(transfer.peer).posted.push_back(&transfer);
  return Status::ok();
}

Status Messages::match(Transfer& transfer, const Unexpected& message, const std::byte* payload) {
  const FrameHeader& header = message.header;
  transfer.is_matched = true;
  if (transfer.bytes != header.bytes) {
    mismatch_ = SizeMismatch{&transfer, header.bytes};
    return Status::ok();
  }
  if (header.kind == FrameKind::kAnnounce) return start_pieces(transfer, header.number);
  if (message.own != nullptr) payload = message.own->data;
  if (header.bytes > 0) std::memcpy(transfer.data, payload, static_cast<size_t>(header.bytes));
  if (message.own != nullptr) finish(*message.own);
  finish(transfer);
  return Status::ok();
}

Status Messages::take_frame(int from, const std::byte* bytes, bool& moved) {
  Unexpected message;
  FrameHeader& header = message.header;
  std::memcpy(&header, bytes, sizeof(header));
  const std::byte* payload = bytes + sizeof(header);
  if (header.kind != FrameKind::kEager && header.kind != FrameKind::kAnnounce) {
    notes_.push_back(
        {from, header.kind, std::string(reinterpret_cast<const char*>(payload), static_cast<size_t>(header.bytes))});
    return Status::ok();
  }
  moved = true;
  if (Transfer* transfer = take_posted(from, header.context, header.tag)) return match(*transfer, message, payload);
  if (header.kind == FrameKind::kEager) message.payload.assign(payload, payload + header.bytes);
  peer(from).unexpected.push_back(std::move(message));
  return Status::ok();
}

Status Messages::take_frames(bool& moved) {
  for (;;) {
    ALTIPLANO_ASSIGN(const auto arrival, transport_.test_frame(receives_[next_receive_]));
    if (!arrival) return Status::ok();
    ALTIPLANO_RETURN_IF_ERROR(take_frame(arrival->from, frames_[next_receive_].data(), moved));
    ALTIPLANO_RETURN_IF_ERROR(post_frame_receive(next_receive_));
    next_receive_ = (next_receive_ + 1) % kReceives;
    if (mismatch_) return Status::ok();
  }
}

std::optional<Note> Messages::next_note() {
  if (notes_.empty()) return std::nullopt;
  Note note = std::move(notes_.front());
  notes_.pop_front();
  return note;
}

// ---- progress ----

void Messages::finish(Transfer& transfer) {
  transfer.is_done = true;
  if (--transfer.owner->outstanding == 0) completed_->push_back(transfer.owner);
}

Status Messages::finish_pieces(bool& moved) {
  for (size_t i = 0; i < pieces_.size();) {
    Piece& piece = pieces_[i];
    Transfer& transfer = *piece.transfer;
    const Result<bool> is_done = transport_.test(piece.request);
    if (!is_done.is_ok())
      return Status(is_done.status().code(),
                    fmt::format("{}, in a message with rank {}", is_done.status().message(), transfer.peer));
    if (!*is_done) {
      ++i;
      continue;
    }
    moved = true;
    transfer.moved += piece.bytes;
    pieces_[i] = pieces_.back();
    pieces_.pop_back();
    if (transfer.moved == transfer.bytes) finish(transfer);
  }
  return Status::ok();
}

void Messages::drop_sent_frames() {
  while (!sent_.empty()) {
    const auto is_done = transport_.test(sent_.front().request);
    if (is_done.is_ok() && !*is_done) return;
    free_frames_.push_back(std::move(sent_.front().bytes));
    sent_.pop_front();
  }
}

Status Messages::advance(bool& moved) {
  if (mismatch_) return Status::ok();
  transport_.progress();
  ALTIPLANO_RETURN_IF_ERROR(take_frames(moved));
  if (mismatch_) return Status::ok();
  ALTIPLANO_RETURN_IF_ERROR(finish_pieces(moved));
  drop_sent_frames();
  return Status::ok();
}

void Messages::flush(std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  for (;;) {
    transport_.progress();
    drop_sent_frames();
    if (sent_.empty() || std::chrono::steady_clock::now() >= until) return;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace altiplano::network
