#pragma once
// The Communicator over a segment: what comm/inproc and comm/shm have in common. Progress is made inside its calls for
// all outstanding operations; a wait that finds nothing to do spins for a moment and then sleeps on its doorbell until
// a peer rings.
//
// Order: messages of one (peer, tag) and collectives of one stream run in the order of their calls; anything else is
// ordered by `after`. Deadlines count from the start of a wait or the last moment any data moved, whichever is later. A
// wait that fails ends the job: the reason is put into the segment and every peer's present and next wait fails with
// it.
#include <memory>

#include "framework/api/comm.hpp"
#include "framework/api/segment/futex.hpp"
#include "framework/api/segment/segment_layout.hpp"
#include "framework/api/segment/shared_memory.hpp"

namespace altiplano {

/// Memory all ranks have mapped and one has initialised.
struct SegmentAttachment {
  std::shared_ptr<void> memory;  ///< kept alive by the communicator
  SegmentShape shape;
  FutexScope scope = FutexScope::kProcess;     ///< kShared: ranks are processes, whose death is noticed
  std::shared_ptr<SharedMemorySource> arenas;  ///< how registered memory is made; nullptr: there is none
};

/// Collective over the world: exchanges host names and attaches. Refuses a segment made for another shape (ranks with
/// different CommOptions::chunk_bytes).
Result<std::unique_ptr<Communicator>> open_segment_communicator(Rendezvous& rendezvous, const CommOptions& options,
                                                                SegmentAttachment attachment);

}  // namespace altiplano
