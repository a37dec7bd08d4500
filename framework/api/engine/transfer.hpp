#pragma once
// api/engine/: what communicators have in common, whatever carries their messages: groups, operations and their order,
// collectives as steps of messages, and who is to blame when nothing moves. segment/ and network/ bring the carriers.
//
// One message on its way, sent or received.
#include <cstddef>
#include <cstdint>

namespace altiplano {

/// Counts the transfers something waits for; pushed to a completion list when the last one is done.
struct TransferOwner {
  int outstanding = 0;
};

/// Messages match by (peer, context, tag), in order per such triple. Owned by the caller, not moved until done.
struct Transfer {
  int peer = 0;  ///< rank of the world
  bool is_send = false;
  uint64_t context = 0;  ///< 0: the caller's own messages; otherwise of a group
  uint64_t tag = 0;
  std::byte* data = nullptr;  ///< only read when is_send
  int64_t bytes = 0;
  TransferOwner* owner = nullptr;

  // The carrier's.
  int64_t moved = 0;          ///< bytes so far
  uint64_t receive = 0;       ///< the receiver's name for it, both sides
  uint64_t offer = 0;         ///< sends: the sender's name for what the receiver fetches; 0: it is sent
  bool is_asked_for = false;  ///< sends: a receive for it waits
  bool ready_sent = false;    ///< receives
  bool is_matched = false;    ///< receives: the peer has sent it
  bool is_done = false;
};

/// A receive met a message of another size.
struct SizeMismatch {
  const Transfer* receive;
  int64_t sent_bytes;
};

}  // namespace altiplano
