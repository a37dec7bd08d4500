#pragma once
// Rendezvous of ranks that are processes of one host, served by their launcher over a Unix-domain socket. Clients show
// a random token first and must have the launcher's user id.
#include <memory>
#include <string>

#include "framework/api/comm.hpp"

namespace altiplano {

/// Lives in the launcher. Serves from its own thread until destroyed.
class RendezvousServer {
 public:
  /// Listens at once, so that ranks may be forked before serve() starts the thread.
  static Result<std::unique_ptr<RendezvousServer>> listen(int world_size);
  ~RendezvousServer();
  void serve();
  /// A rank has failed: every present and later request is answered with kCancelled and `reason`, so that nobody waits
  /// for who will not come. Any thread.
  void fail(const std::string& reason);
  /// What clients need: the value of ALTIPLANO_RENDEZVOUS.
  std::string address() const;

  struct State;
  explicit RendezvousServer(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

/// Connects to the launcher; kRuntimeFailure when it is gone or refuses (wrong token, rank taken or out of range).
Result<std::unique_ptr<Rendezvous>> connect_local_rendezvous(const std::string& address, RankId rank, int world_size,
                                                             const std::string& job_id);

/// A process that is all of its job.
std::unique_ptr<Rendezvous> single_rank_rendezvous(const std::string& job_id);

}  // namespace altiplano
