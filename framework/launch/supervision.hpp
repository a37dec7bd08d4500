#pragma once
// What a supervisor does when a start of the ranks has ended: pure decisions over values, in the order in which
// they are asked.
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace altiplano {

struct SupervisionLimits {
  int nodes = 1;         ///< that train
  int min_nodes = 1;     ///< with fewer the job waits for others
  int max_restarts = 3;  ///< in a row without a new checkpoint
};

/// How a start ended, and what is known of the nodes.
struct StartEnd {
  int exit_code = 0;           ///< of the launcher, which does not mean much
  bool has_record = false;     ///< all ranks agreed on an end
  bool is_done = false;        ///< of the record: all steps are done; else saved and stopped
  bool made_progress = false;  ///< a checkpoint is there that was not before
  bool is_asked_to_stop = false;
  std::set<std::string> lost = {};  ///< hosts given up by now
  std::string ended_for = {};       ///< why the supervisor ended it, unless for a host; empty: it did not
};

enum class NextMove : uint8_t {
  kDone,     ///< the run is
  kRequeue,  ///< saved or not, it goes on in another allocation
  kRestart,  ///< here, on `hosts`
  kFail,     ///< starting again would end alike
};
struct Decision {
  NextMove move = NextMove::kFail;
  std::vector<std::string> hosts = {};
  int exit_code = 0;        ///< of the supervisor, unless it restarts
  int restarts = 0;         ///< in a row without a new checkpoint, this one counted
  std::string reason = {};  ///< a sentence
};

/// The hosts a start takes: those left, in the allocation's order, at most limits.nodes.
std::vector<std::string> hosts_for_start(const std::vector<std::string>& allocated, const std::set<std::string>& lost,
                                         int nodes);

/// Whether a start on these hosts is not even tried, and what comes instead.
std::optional<Decision> decide_before(const std::vector<std::string>& hosts, bool is_asked_to_stop);

/// `restarts`: made in a row without a new checkpoint. `used`: hosts of the start that ended.
Decision decide_after(const SupervisionLimits& limits, const StartEnd& end, const std::vector<std::string>& allocated,
                      const std::vector<std::string>& used, int restarts);

}  // namespace altiplano
