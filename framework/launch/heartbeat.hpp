#pragma once
// Heartbeats between the nodes of a job: a workload manager needs minutes to see that a node is gone, this needs
// seconds. The supervisor listens, an agent on every node says that it lives, and each hears so from the other side.
//
// Ranks say so too, with a word about what they do, so that one that stands still is known.
//
// Lines of text over TCP: "HELLO <secret> <name>", then "BEAT", with or without words, answered by "BEAT"; "END"
// to ranks of a start that is over; "BYE" when
// the supervisor ends. A name is a host's, or "<start>:<rank>". The secret comes by the environment (ALTIPLANO_SECRET),
// never on a command line, and who does not know it is closed after its first line. The server listens on one address,
// that by which the job's other hosts are reached.
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
  struct Word {
    std::string text;
    std::chrono::steady_clock::time_point heard;    ///< when it was said last
    std::chrono::steady_clock::time_point changed;  ///< since when it is the same
  };
  /// What the connected ranks of a start say, by rank.
  std::map<int, Word> words_of_ranks(const std::string& start) const;
  /// From now on this start's ranks are told that it is over, also those that come back later.
  void end_ranks(const std::string& start);

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
  kStopped,  ///< by `stop`
  kOver,     ///< the start of this rank is
};
struct AgentRequest {
  std::string address, secret, name;
  std::chrono::milliseconds interval{1000}, deadline{10000};
  std::function<std::string()> word = {};  ///< what to say besides; one line
  int stop = -1;                           ///< a descriptor: the end once it can be read; -1: none
};
/// Says every `interval` that this host or rank lives, until one of these ends comes.
AgentEnd send_heartbeats(const AgentRequest& request);

}  // namespace altiplano
