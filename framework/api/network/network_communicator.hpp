#pragma once
// The communicator over a transport: what comm/mpi and comm/ucx have in common. network_communicator.cpp waits,
// network_failures.cpp finds out who is missing and tells others of failures.
//
// Two levels: ranks of one host share a segment, as comm/shm does, for their messages, for groups within the host, and
// for the inner steps of collectives between hosts. Only what goes to other hosts takes the transport, and what ranks
// tell each other of failures.
#include <functional>
#include <map>
#include <set>

#include "framework/api/engine/engine.hpp"
#include "framework/api/network/messages.hpp"
#include "framework/api/segment/process_watch.hpp"

namespace altiplano::network {

/// Collective over the world, once each rank's transport reaches all others. `hosts` by rank.
Result<std::unique_ptr<Communicator>> open_network_communicator(Rendezvous& rendezvous, const CommOptions& options,
                                                                std::vector<std::string> hosts,
                                                                std::unique_ptr<Transport> transport);

/// A segment and those who share it.
struct HostSegment {
  SegmentAttachment attachment;
  std::vector<int> ranks;
};

class NetworkCommunicator final : public Engine {
 public:
  NetworkCommunicator(int rank, std::vector<std::string> hosts, const CommOptions& options,
                      std::unique_ptr<Transport> transport, std::optional<HostSegment> segment);
  ~NetworkCommunicator() override;

  Status wait(Event event) noexcept override;
  void abort(const std::string& reason) noexcept override;
  std::string describe() const override;

 private:
  // network_communicator.cpp; under the transport's mutex.
  Status post_outside(Transfer& transfer) override;
  Status move_outside(bool& moved) override;
  bool has_processors_for_all() const;
  /// One round of a wait.
  struct Waiting {
    Event event;
    Clock::time_point last_movement, last_look;
  };
  Result<bool> look(Waiting& waiting);

  // network_failures.cpp, under the transport's mutex.
  Status check_failed() override { return failure_; }
  Status fail_world(StatusCode code, const std::string& reason) override;
  void take_notes();
  void stop();
  void take_losses();
  void answer(const Note& question);
  Status check_peers(Event event);
  Status check_lost_peers(std::chrono::milliseconds after);
  Status broken(const Status& status);
  Status peer_stuck(const CommOperation& operation, Clock::duration silence);
  /// Whom a peer waits for; nullopt: no answer within a moment.
  std::optional<int> ask(int peer);
  /// To what others say, until it is enough or one of them has failed.
  void listen(std::chrono::milliseconds limit, const std::function<bool()>& is_enough);
  int root_of_wait(int peer);

  struct LostPeer {
    std::string why;
    Clock::time_point when;
  };
  const std::unique_ptr<Transport> transport_;
  Messages messages_;
  ProcessWatch watch_;            ///< of ranks that share the segment
  uint64_t waits_for_event_ = 0;  ///< what this rank is blocked in; 0: nothing
  std::set<int> left_;            ///< peers that closed their communicators
  std::map<int, LostPeer> lost_;
  std::map<int, int> answers_;  ///< whom peers wait for
};

}  // namespace altiplano::network
