#pragma once
// Messages between this rank and one peer over a pair of byte rings: matched by (context, tag), in order per (context,
// tag).
//
// Small messages travel eagerly: the frame holds all of it. Larger ones that lie in memory which the receiver reaches
// are offered, and it fetches them where they lie, once, whatever the sender does meanwhile. Others are announced, and
// their data moves once a receive is posted, so that nothing but headers and a bounded number of small messages is ever
// buffered for a receive that is not there yet. A receive of a large message tells the sender at once that it is ready,
// without waiting for the announcement. A small message is sent like a large one when four rings full of small messages
// have not found their receives. The reader always empties the ring, whatever tag it waits for: a message nobody waits
// for never blocks another.
#include <optional>
#include <vector>

#include "framework/api/engine/transfer.hpp"
#include "framework/api/segment/byte_ring.hpp"
#include "framework/api/segment/shared_memory.hpp"
#include "framework/base/fifo.hpp"

namespace altiplano {

class PeerChannel {
 public:
  /// Ranks by their place in the segment. `memory` reaches the peer's. `completed` collects owners whose outstanding
  /// count reached 0.
  PeerChannel(const SegmentView& view, int rank, int peer, ReachableMemory& memory,
              std::vector<TransferOwner*>* completed);

  void post_send(Transfer& transfer);
  /// Fails at once when the message is already here and of another size.
  std::optional<SizeMismatch> post_receive(Transfer& transfer);
  /// Takes everything out of the incoming ring; `moved` is set when there was something.
  std::optional<SizeMismatch> drain(bool& moved);
  /// Writes what fits into the outgoing ring; `moved` as above.
  void flush(bool& moved);
  /// Whether there is data to send whose receive is posted.
  bool has_wanted_data() const { return !streams_.empty(); }
  /// The same of data whose receive may be posted at any moment.
  bool has_announced_data() const;
  /// Messages whose data has had to wait for its receive, so far.
  uint64_t num_announced() const { return num_announced_; }

 private:
  struct Unexpected {
    FrameHeader frame;  ///< kEager or kAnnounce
    std::vector<std::byte> payload;
  };
  void keep_unexpected(const FrameHeader& frame, const std::byte* payload);
  void make_payload();
  bool flush_controls(bool& moved);
  bool flush_queue(bool& moved);
  void flush_streams(bool& moved);
  bool write_first_frame(Transfer& transfer);
  bool write_offer(Transfer& transfer, const BufferName& place);
  void announced(Transfer& transfer);
  void ask_for(Transfer& transfer, uint64_t receive);
  void fetch(Transfer& transfer, const FrameHeader& frame, const std::byte* payload);
  void on_taken(const FrameHeader& frame);
  void on_decline(const FrameHeader& frame);
  Transfer& take_offer(uint64_t offer);
  void finish(Transfer& transfer);
  void send_ready(Transfer& transfer);
  std::optional<SizeMismatch> match(Transfer& transfer, const FrameHeader& frame, const std::byte* payload);
  std::optional<SizeMismatch> on_message(const FrameHeader& frame, const std::byte* payload);
  void on_ready(const FrameHeader& frame);
  void on_data(const FrameHeader& frame, const std::byte* payload);

  RingWriter writer_;
  RingReader reader_;
  RingHeader* out_;
  RingHeader* in_;
  ReachableMemory* memory_;
  int peer_;
  int64_t payload_limit_;
  int64_t eager_window_;
  int64_t eager_sent_ = 0;
  uint64_t next_receive_ = 1;
  uint64_t num_announced_ = 0;
  uint64_t next_offer_ = 1;
  std::vector<TransferOwner*>* completed_;

  Fifo<FrameHeader> controls_;              // frames without payload to write
  Fifo<Transfer*> queue_;                   // sends whose first frame is not written
  std::vector<Transfer*> announced_;        // sends that wait for a ready receive, or to be fetched; in order
  Fifo<Transfer*> streams_;                 // sends whose data may go
  std::vector<FrameHeader> early_readies_;  // ready receives whose send is not announced
  Fifo<Transfer*> posted_;                  // receives without a message
  Fifo<Unexpected> unexpected_;             // messages without a receive
  std::vector<std::vector<std::byte>> free_payloads_;
  std::vector<Transfer*> receiving_;  // announced receives whose data is coming
};

}  // namespace altiplano
