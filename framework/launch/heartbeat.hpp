#pragma once
// Heartbeats between the nodes of a job: a workload manager needs minutes to see that a node is gone, this needs
// seconds. The supervisor listens, an agent on every node says that it lives, and each hears so from the other side.
//
// Lines of text over TCP: "HELLO <secret> <host>", then "BEAT", answered by the same; "BYE" when the supervisor ends.
// The secret comes by the environment (ALTIPLANO_SECRET), never on a command line, and who does not know it is closed
// after its first line. The server listens on one address, that by which the job's other hosts are reached.
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/status.hpp"

namespace altiplano {

class HeartbeatServer {
 public:
  /// `hosts`: the job's; the first that is not this one decides by which address it listens.
  static Result<std::unique_ptr<HeartbeatServer>> listen(const std::string& secret,
                                                         const std::vector<std::string>& hosts);
  ~HeartbeatServer();           ///< says goodbye
  std::string address() const;  ///< "10.0.0.1:40123"
  /// When each host was last heard of; those that never were are missing.
  std::map<std::string, std::chrono::steady_clock::time_point> last_heard() const;
  /// What was refused since the last call, with the address it came from.
  std::vector<std::string> take_refusals();

 private:
  HeartbeatServer() = default;
  struct State;
  std::unique_ptr<State> state_;
};

enum class AgentEnd : uint8_t {
  kGoodbye,  ///< the supervisor said so
  kClosed,   ///< the connection was closed: the supervisor's process is gone, its host is not
  kSilent,   ///< nothing came for `deadline`
  kRefused,  ///< wrong secret
};
struct AgentRequest {
  std::string address, secret, host;
  std::chrono::milliseconds interval{1000}, deadline{10000};
};
/// Says every `interval` that this host lives, until one of these ends comes.
AgentEnd send_heartbeats(const AgentRequest& request);

}  // namespace altiplano
