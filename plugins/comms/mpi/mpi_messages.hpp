#pragma once
// Messages between the ranks of a communicator: matched by (peer, context, tag), in order per such triple. All calls
// under mpi_mutex().
//
// What goes from rank to rank is frames of at most one page, received in the order in which they were sent. A small
// message travels in its frame; a larger one is announced by it and goes by itself, in pieces, straight into the buffer
// of the receive that matches. So tags have all their 64 bits, sizes that differ are seen before any data is written,
// and what ranks tell each other of failures comes through whatever messages are open.
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "plugins/comms/mpi/mpi_session.hpp"

namespace altiplano::mpi {

/// One message, sent or received. Owned by the caller, not moved until done.
struct Transfer {
  int peer = 0;
  bool is_send = false;
  uint64_t context = 0, tag = 0;
  std::byte* data = nullptr;  ///< only read when is_send
  int64_t bytes = 0;
  int* open = nullptr;  ///< of its operation: how many transfers are not done

  std::vector<MPI_Request> pieces = {};  ///< under way
  bool is_matched = false;               ///< receives: the peer has sent it
  bool is_done = false;
};

struct SizeMismatch {
  const Transfer* receive;
  int64_t sent_bytes;
};

enum class FrameKind : uint32_t { kEager, kAnnounce, kAbort, kAsk, kAnswer, kBye };

/// What a peer says besides messages.
struct Note {
  int from = 0;
  FrameKind kind = FrameKind::kBye;
  std::string text;
};

class Messages {
 public:
  /// piece_bytes: of a message, at most, in one call of MPI.
  Messages(Connection connection, int64_t piece_bytes);
  ~Messages();
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  const std::vector<std::string>& hosts() const { return connection_.hosts; }
  MPI_Comm communicator() const { return connection_.data; }
  Status send(Transfer& transfer);
  Status receive(Transfer& transfer);
  /// All that can be done now; `moved` is set when a message made progress.
  Status advance(bool& moved);
  /// A receive that met a message of another size; the communicator is of no use from then on.
  const std::optional<SizeMismatch>& mismatch() const { return mismatch_; }

  void tell(int peer, FrameKind kind, const std::string& text);
  std::optional<Note> next_note();
  /// Until what was told and sent has left, at most `limit`.
  void flush(std::chrono::milliseconds limit);
  /// Receives that are open write nowhere any more.
  void cancel_receives();

 private:
  static constexpr size_t kFrameBytes = 4096;
  static constexpr size_t kReceives = 16;  ///< of frames, posted ahead
  struct FrameHeader {
    FrameKind kind = FrameKind::kEager;
    uint32_t number = 0;  ///< of an announced message, between two ranks: the tag of its data
    uint64_t context = 0, tag = 0;
    int64_t bytes = 0;
  };
  static constexpr int64_t kMostEager = kFrameBytes - sizeof(FrameHeader);
  using FrameBytes = std::array<std::byte, kFrameBytes>;
  struct SentFrame {
    MPI_Request request = MPI_REQUEST_NULL;
    std::unique_ptr<FrameBytes> bytes;
  };
  struct Unexpected {
    FrameHeader header;
    std::vector<std::byte> payload;
  };
  struct Peer {
    uint32_t next_number = 0;
    std::deque<Transfer*> posted;       ///< receives without a message
    std::deque<Unexpected> unexpected;  ///< messages without a receive
  };

  Status send_frame(int peer, const FrameHeader& header, const void* payload, size_t bytes);
  Status post_frame_receive(size_t slot);
  Status take_frames(bool& moved);
  Status take_frame(int from, const std::byte* bytes, bool& moved);
  Status match(Transfer& transfer, const FrameHeader& header, const std::byte* payload);
  Status start_pieces(Transfer& transfer, uint32_t number);
  Status finish_transfers(bool& moved);
  void drop_sent_frames();
  static void finish(Transfer& transfer);

  const Connection connection_;
  const int64_t piece_bytes_;
  std::vector<Peer> peers_;
  std::array<FrameBytes, kReceives> frames_;
  std::array<MPI_Request, kReceives> receives_;
  size_t next_receive_ = 0;
  std::deque<SentFrame> sent_;
  std::vector<std::unique_ptr<FrameBytes>> free_frames_;
  std::vector<Transfer*> under_way_;
  std::deque<Note> notes_;
  std::optional<SizeMismatch> mismatch_;
};

}  // namespace altiplano::mpi
