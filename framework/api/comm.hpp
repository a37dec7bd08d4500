#pragma once
// Comm plugins: point-to-point and collectives among the ranks of a job. Bootstrapping goes through Rendezvous (the
// launcher's); a comm plugin includes no MPI or Slurm header for it unless MPI is what it wraps.
//
// Every operation is asynchronous: it takes (stream, events to wait for) and returns an event. Buffers stay owned by
// the caller and must live until the event is done. A backend with capability needs_host_progress makes progress only
// inside its calls (wait drives *all* outstanding operations). One Communicator is used by one thread of its rank;
// abort() by any thread at any time. Every wait has a deadline; its failure (kPeerStuck) names rank, host, operation,
// group, step, bytes and how long ago.
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/api/plugin.h"
#include "framework/base/ids.hpp"
#include "framework/base/status.hpp"
#include "framework/cluster/collective.hpp"
#include "framework/graph/dtype.hpp"

namespace altiplano {

/// Key-value exchange at start: put, fence (collective, returns when all ranks put), get. Implemented by launch (local,
/// PMIx) and by tests (in-process). Used before training only.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  virtual RankId rank() const = 0;
  virtual int world_size() const = 0;
  virtual std::string host() const = 0;    ///< this rank's host name
  virtual std::string job_id() const = 0;  ///< unique per attempt; safe in file names
  virtual Status put(const std::string& key, const std::string& value) = 0;
  virtual Status fence(std::chrono::milliseconds deadline) = 0;
  virtual Result<std::string> get(RankId rank, const std::string& key) = 0;
  /// Memory that ranks which are threads of one process share: an opaque pointer that is the same for all; nullptr
  /// between processes.
  virtual std::shared_ptr<void> shared_in_process(const std::string& /*key*/, size_t /*bytes*/) { return nullptr; }
};

/// Completion of an asynchronous operation; 0 is "already done".
struct Event {
  uint64_t id = 0;
  bool is_done() const { return id == 0; }
};

/// count is per rank and in elements:
///   all_reduce: in[count] -> out[count] (in == out allowed)      all_gather: in[count] -> out[n*count], group order
///   reduce_scatter: in[n*count] -> out[count]                    all_to_all: in[n*count] -> out[n*count]
///   broadcast: out[count] from `root` (index in the group; root's data is in out)          barrier: nothing
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  ReduceKind reduce = ReduceKind::kSum;
  DType dtype = DType::kF32;
  const void* in = nullptr;
  void* out = nullptr;
  int64_t count = 0;
  int root = 0;
};

enum CommCapability : uint64_t {
  kCommStreamOrdered = 1u << 0,  ///< events complete in stream order without host progress
  kCommNeedsHostProgress = 1u << 1,
  kCommDeterministic = 1u << 2,  ///< equal calls give equal bits
  kCommBetweenProcesses = 1u << 3,
  kCommBetweenHosts = 1u << 4,
  kCommWithinProcess = 1u << 5,  ///< ranks may be threads of one process
  kCommNoticesDeath = 1u << 6,   ///< a rank that dies is named by the others long before their deadline
};

/// How collectives among ranks that do not share memory are made of messages: collectives/algorithm_choice.hpp.
enum class MessageAlgorithm : uint8_t { kAuto, kDirect, kRing, kRecursive };

struct CommOptions {
  std::chrono::milliseconds deadline{60'000};  ///< of every wait
  int64_t chunk_bytes = 1 << 18;               ///< staging chunk; small values exercise chunking in tests
  bool check_calls = false;                    ///< compare kind, dtype and count across ranks; some backends do anyway
  MessageAlgorithm algorithm = MessageAlgorithm::kAuto;
  bool two_level = true;  ///< backends of hosts: within a host over shared memory, only between hosts by messages
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual RankId rank() const noexcept = 0;
  virtual int world_size() const noexcept = 0;

  /// Collective over `ranks` (distinct, any order: it is the group's order). All members create their groups in the
  /// same relative order. `name` is for messages ("data/1").
  virtual Result<GroupId> create_group(std::span<const RankId> ranks, const std::string& name) noexcept = 0;

  /// Messages between two ranks match by tag, in order per (peer, tag). Sizes must be equal on both sides.
  virtual Result<Event> send(RankId peer, uint64_t tag, const void* data, int64_t bytes, StreamKind stream,
                             std::span<const Event> after) noexcept = 0;
  virtual Result<Event> recv(RankId peer, uint64_t tag, void* data, int64_t bytes, StreamKind stream,
                             std::span<const Event> after) noexcept = 0;
  virtual Result<Event> collective(GroupId group, const CollectiveCall& call, StreamKind stream,
                                   std::span<const Event> after) noexcept = 0;

  /// Blocks until done, failed, aborted, or the deadline passed. A done event may be waited for again.
  virtual Status wait(Event event) noexcept = 0;
  virtual Result<bool> test(Event event) noexcept = 0;
  /// What later messages name: "step 1204".
  virtual void set_step(int64_t step) noexcept = 0;
  /// Makes every present and future wait of this rank (and, where the backend can, of its peers) fail with `reason`.
  /// Any thread.
  virtual void abort(const std::string& reason) noexcept = 0;
  /// Memory that peers can reach without a copy, for arenas; nullptr when the backend has none (then plain memory
  /// serves).
  virtual void* allocate_registered(int64_t /*bytes*/) noexcept { return nullptr; }
  virtual void free_registered(void* /*memory*/) noexcept {}
  /// For a log, how ranks are connected: "shared memory on 2 hosts, UCX (tcp) between them"; empty: nothing to say.
  virtual std::string describe() const { return ""; }
};

class CommBackend {
 public:
  static constexpr uint32_t kKind = ALTIPLANO_PLUGIN_COMM;
  static constexpr uint32_t kInterfaceVersion = 1;
  virtual ~CommBackend() = default;
  virtual uint64_t capabilities() const noexcept = 0;
  /// Collective over the world. The Rendezvous must outlive this call only.
  virtual Result<std::unique_ptr<Communicator>> connect(Rendezvous& rendezvous,
                                                        const CommOptions& options) noexcept = 0;
};

}  // namespace altiplano
