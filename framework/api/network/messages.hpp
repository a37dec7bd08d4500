#pragma once
// Messages over a transport: matched by (peer, context, tag), in order per such triple.
//
// What goes from rank to rank is frames of at most one page, in the order in which they were sent. A small message
// travels in its frame; a larger one is announced by it and goes by itself, in pieces, straight from the sender's
// memory into that of the receive that matches. So tags have all their 64 bits, sizes that differ are seen before any
// data is written, and what ranks tell each other of failures comes through whatever messages are open.
#include <array>
#include <chrono>
#include <optional>
#include <vector>

#include "framework/api/engine/transfer.hpp"
#include "framework/api/network/transport.hpp"
#include "framework/base/fifo.hpp"

namespace altiplano::network {

enum class FrameKind : uint32_t { kEager, kAnnounce, kAbort, kAsk, kAnswer, kBye };

/// What a peer says besides messages.
struct Note {
  int from = 0;
  FrameKind kind = FrameKind::kBye;
  std::string text;
};

class Messages {
 public:
  /// piece_bytes: of a message, at most, in one request. `completed` collects what is done.
  Messages(Transport& transport, int rank, int world_size, int64_t piece_bytes, std::vector<TransferOwner*>* completed);
  ~Messages();
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  Status send(Transfer& transfer);
  Status receive(Transfer& transfer);
  /// All that can be done now; `moved` is set when a message made progress.
  Status advance(bool& moved);
  /// A receive that met a message of another size; nothing moves from then on.
  const std::optional<SizeMismatch>& mismatch() const { return mismatch_; }

  void tell(int peer, FrameKind kind, const std::string& text);
  std::optional<Note> next_note();
  /// Until what was told and sent has left, at most `limit`.
  void flush(std::chrono::milliseconds limit);
  /// After a failure, while the callers' memory is still theirs: nothing is written into it any more.
  void stop();

 private:
  static constexpr size_t kReceives = 16;  ///< of frames, posted ahead
  struct FrameHeader {
    FrameKind kind = FrameKind::kEager;
    uint32_t number = 0;  ///< of announced data, between two ranks
    uint64_t context = 0, tag = 0;
    int64_t bytes = 0;
  };
  static constexpr int64_t kMostEager = Transport::kFrameBytes - sizeof(FrameHeader);
  using FrameBytes = std::array<std::byte, Transport::kFrameBytes>;
  struct SentFrame {
    Request request;
    std::unique_ptr<FrameBytes> bytes;
  };
  struct Unexpected {
    FrameHeader header;
    std::vector<std::byte> payload;
    Transfer* own = nullptr;  ///< sent by this rank to itself
  };
  struct Piece {
    Transfer* transfer = nullptr;
    Request request;
    int64_t bytes = 0;
  };
  struct Peer {
    uint32_t next_number = 0;
    Fifo<Transfer*> posted;       ///< receives without a message
    Fifo<Unexpected> unexpected;  ///< messages without a receive
  };

  Peer& peer(int rank) { return peers_[static_cast<size_t>(rank)]; }
  Status send_frame(int peer, const FrameHeader& header, const void* payload, size_t bytes);
  Status post_frame_receive(size_t slot);
  Status take_frames(bool& moved);
  Status take_frame(int from, const std::byte* bytes, bool& moved);
  Transfer* take_posted(int from, uint64_t context, uint64_t tag);
  void send_to_self(Transfer& transfer);
  Status match(Transfer& transfer, const Unexpected& message, const std::byte* payload);
  Status start_pieces(Transfer& transfer, uint32_t number);
  Status finish_pieces(bool& moved);
  void drop_sent_frames();
  void finish(Transfer& transfer);

  Transport& transport_;
  const int rank_;
  const int64_t piece_bytes_;
  std::vector<TransferOwner*>* const completed_;
  std::vector<Peer> peers_;
  std::array<FrameBytes, kReceives> frames_;
  std::array<Request, kReceives> receives_;
  size_t next_receive_ = 0;
  Fifo<SentFrame> sent_;
  std::vector<std::unique_ptr<FrameBytes>> free_frames_;
  std::vector<Piece> pieces_;
  Fifo<Note> notes_;
  std::optional<SizeMismatch> mismatch_;
};

}  // namespace altiplano::network
