#include "plugins/comms/mpi/mpi_messages.hpp"

#include <algorithm>
#include <thread>

namespace altiplano::mpi {
namespace {

constexpr int kFrameTag = 0;
constexpr uint32_t kMostNumbers = 1u << 30;  // any MPI has as many tags that a process can name

}  // namespace

Messages::Messages(Connection connection, int64_t piece_bytes)
    : connection_(std::move(connection)), piece_bytes_(piece_bytes), peers_(connection_.hosts.size()) {
  receives_.fill(MPI_REQUEST_NULL);
  std::lock_guard lock(mpi_mutex());
  for (size_t slot = 0; slot < kReceives; ++slot) (void)post_frame_receive(slot);  // what fails here fails again later
}

/// MPI's communicators stay: a number that MPI used again would take in what a late peer still sends to this one.
Messages::~Messages() {
  std::lock_guard lock(mpi_mutex());
  cancel_receives();
  for (MPI_Request& receive : receives_) {
    if (receive == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&receive);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);  // a receive that is cancelled is done, with a frame or without
  }
}

// ---- sending ----

Status Messages::send(Transfer& transfer) {
  Peer& peer = peers_[static_cast<size_t>(transfer.peer)];
  FrameHeader header{FrameKind::kEager, 0, transfer.context, transfer.tag, transfer.bytes};
  if (transfer.bytes <= kMostEager) {
    ALTIPLANO_RETURN_IF_ERROR(send_frame(transfer.peer, header, transfer.data, static_cast<size_t>(transfer.bytes)));
    finish(transfer);
    return Status::ok();
  }
  header.kind = FrameKind::kAnnounce;
  header.number = peer.next_number;
  peer.next_number = (peer.next_number + 1) % kMostNumbers;
  ALTIPLANO_RETURN_IF_ERROR(send_frame(transfer.peer, header, nullptr, 0));
  return start_pieces(transfer, header.number);
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
  const int code = MPI_Isend(frame.bytes->data(), static_cast<int>(sizeof(header) + bytes), MPI_BYTE, peer, kFrameTag,
                             connection_.frames, &frame.request);
  ALTIPLANO_RETURN_IF_ERROR(status_of(code, "send"));
  sent_.push_back(std::move(frame));
  return Status::ok();
}

Status Messages::start_pieces(Transfer& transfer, uint32_t number) {
  for (int64_t begin = 0; begin < transfer.bytes; begin += piece_bytes_) {
    const auto bytes = static_cast<int>(std::min(piece_bytes_, transfer.bytes - begin));
    MPI_Request& piece = transfer.pieces.emplace_back(MPI_REQUEST_NULL);
    const int tag = static_cast<int>(number);
    const int code =
        transfer.is_send
            ? MPI_Isend(transfer.data + begin, bytes, MPI_BYTE, transfer.peer, tag, connection_.data, &piece)
            : MPI_Irecv(transfer.data + begin, bytes, MPI_BYTE, transfer.peer, tag, connection_.data, &piece);
    ALTIPLANO_RETURN_IF_ERROR(status_of(code, transfer.is_send ? "send" : "receive"));
  }
  under_way_.push_back(&transfer);
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
  return status_of(MPI_Irecv(frames_[slot].data(), kFrameBytes, MPI_BYTE, MPI_ANY_SOURCE, kFrameTag, connection_.frames,
                             &receives_[slot]),
                   "receive");
}

Status Messages::receive(Transfer& transfer) {
  auto& unexpected = peers_[static_cast<size_t>(transfer.peer)].unexpected;
  const auto found = std::find_if(unexpected.begin(), unexpected.end(), [&](const Unexpected& message) {
    return message.header.context == transfer.context && message.header.tag == transfer.tag;
  });
  if (found == unexpected.end()) {
    peers_[static_cast<size_t>(transfer.peer)].posted.push_back(&transfer);
    return Status::ok();
  }
  const Unexpected message = std::move(*found);
  unexpected.erase(found);
  return match(transfer, message.header, message.payload.data());
}

Status Messages::match(Transfer& transfer, const FrameHeader& header, const std::byte* payload) {
  transfer.is_matched = true;
  if (transfer.bytes != header.bytes) {
    mismatch_ = SizeMismatch{&transfer, header.bytes};
    return Status::ok();
  }
  if (header.kind == FrameKind::kAnnounce) return start_pieces(transfer, header.number);
  if (header.bytes > 0) std::memcpy(transfer.data, payload, static_cast<size_t>(header.bytes));
  finish(transfer);
  return Status::ok();
}

Status Messages::take_frame(int from, const std::byte* bytes, bool& moved) {
  FrameHeader header;
  std::memcpy(&header, bytes, sizeof(header));
  const std::byte* payload = bytes + sizeof(header);
  if (header.kind != FrameKind::kEager && header.kind != FrameKind::kAnnounce) {
    notes_.push_back(
        {from, header.kind, std::string(reinterpret_cast<const char*>(payload), static_cast<size_t>(header.bytes))});
    return Status::ok();
  }
  moved = true;
  Peer& peer = peers_[static_cast<size_t>(from)];
  const auto found = std::find_if(peer.posted.begin(), peer.posted.end(), [&](const Transfer* transfer) {
    return transfer->context == header.context && transfer->tag == header.tag;
  });
  if (found == peer.posted.end()) {
    Unexpected& message = peer.unexpected.emplace_back();
    message.header = header;
    if (header.kind == FrameKind::kEager) message.payload.assign(payload, payload + header.bytes);
    return Status::ok();
  }
  Transfer& transfer = **found;
  peer.posted.erase(found);
  return match(transfer, header, payload);
}

Status Messages::take_frames(bool& moved) {
  for (;;) {
    MPI_Status status;
    int is_here = 0;
    ALTIPLANO_RETURN_IF_ERROR(status_of(MPI_Test(&receives_[next_receive_], &is_here, &status), "receive"));
    if (is_here == 0) return Status::ok();
    ALTIPLANO_RETURN_IF_ERROR(take_frame(status.MPI_SOURCE, frames_[next_receive_].data(), moved));
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
  --*transfer.open;
}

Status Messages::finish_transfers(bool& moved) {
  for (size_t i = 0; i < under_way_.size();) {
    Transfer& transfer = *under_way_[i];
    int is_done = 0;
    const int code =
        MPI_Testall(static_cast<int>(transfer.pieces.size()), transfer.pieces.data(), &is_done, MPI_STATUSES_IGNORE);
    ALTIPLANO_RETURN_IF_ERROR(status_of(code, transfer.is_send ? "send" : "receive"));
    if (is_done == 0) {
      ++i;
      continue;
    }
    moved = true;
    under_way_[i] = under_way_.back();
    under_way_.pop_back();
    finish(transfer);
  }
  return Status::ok();
}

void Messages::drop_sent_frames() {
  while (!sent_.empty()) {
    int is_done = 0;
    if (MPI_Test(&sent_.front().request, &is_done, MPI_STATUS_IGNORE) == MPI_SUCCESS && is_done == 0) return;
    free_frames_.push_back(std::move(sent_.front().bytes));
    sent_.pop_front();
  }
}

Status Messages::advance(bool& moved) {
  ALTIPLANO_RETURN_IF_ERROR(take_frames(moved));
  if (mismatch_) return Status::ok();
  ALTIPLANO_RETURN_IF_ERROR(finish_transfers(moved));
  drop_sent_frames();
  return Status::ok();
}

void Messages::flush(std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  for (drop_sent_frames(); !sent_.empty() && std::chrono::steady_clock::now() < until; drop_sent_frames())
    std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void Messages::cancel_receives() {
  constexpr auto kLimit = std::chrono::milliseconds(500);  // for data on its way; then its buffer is left to it
  const auto until = std::chrono::steady_clock::now() + kLimit;
  for (Transfer* transfer : under_way_) {
    if (transfer->is_send) continue;
    for (MPI_Request& piece : transfer->pieces)
      if (piece != MPI_REQUEST_NULL) MPI_Cancel(&piece);
    for (int is_done = 0; is_done == 0 && std::chrono::steady_clock::now() < until;)
      MPI_Testall(static_cast<int>(transfer->pieces.size()), transfer->pieces.data(), &is_done, MPI_STATUSES_IGNORE);
  }
  under_way_.clear();
  for (Peer& peer : peers_) peer.posted.clear();
}

}  // namespace altiplano::mpi
