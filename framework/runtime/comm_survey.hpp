#pragma once
// What messages between ranks cost: latency and bandwidth of pairs, by how far apart they are. For `altiplano doctor
// --comm`; measured over the communicator that training would use.
#include <optional>
#include <string>
#include <vector>

#include "framework/api/comm.hpp"
#include "framework/base/units.hpp"
#include "framework/cluster/network.hpp"

namespace altiplano {

/// Two ranks as `within a host` or `between hosts`.
struct SurveyedPair {
  RankId a, b;
  std::string pair_class;
  Seconds latency;              ///< half a round trip of 8 bytes, median
  double bytes_per_second = 0;  ///< of messages of kSurveyBytes, one way, median
};
inline constexpr int64_t kSurveyBytes = 4 << 20;

/// The pairs worth measuring, at most `most` of a class: the first two ranks of each host, and the first ranks of
/// hosts, neighbours first.
std::vector<SurveyedPair> pairs_to_survey(const std::vector<std::string>& hosts, int most);

/// Collective over the world, one pair after the other; the figures are rank 0's to know.
Result<std::vector<SurveyedPair>> survey_pairs(Communicator& comm, std::vector<SurveyedPair> pairs);

/// "within a host    0.9 us    5.1 GB/s    (2 pairs: ...)": a line per class.
std::string survey_text(const std::vector<SurveyedPair>& pairs, const std::vector<std::string>& hosts);
/// What planners want of it: the median between hosts; nothing where no pair was.
std::optional<NetworkFigures> network_of(const std::vector<SurveyedPair>& pairs);
/// YAML: connection, and per class its median latency in seconds and bandwidth in bytes per second, and its pairs.
std::string survey_yaml(const std::vector<SurveyedPair>& pairs, const std::vector<std::string>& hosts,
                        const std::string& comm);

}  // namespace altiplano
