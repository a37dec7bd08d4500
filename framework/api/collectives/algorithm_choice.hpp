#pragma once
// Which steps a collective is made of: a pure function of the call and the group, equal on all members, so that equal
// calls give equal bits.
#include <string>

#include "framework/api/collectives/collective_schedule.hpp"

namespace altiplano {

enum class CollectiveSteps : uint8_t {
  kDirect,
  kRing,
  kDoubling,  ///< recursive, whole vectors
  kHalving,   ///< recursive, halves
  kTwoLevel,
  kTree,
  kDissemination,
};
const char* to_string(CollectiveSteps steps);

struct AlgorithmChoice {
  CollectiveSteps steps = CollectiveSteps::kDirect;
  std::string reason;
};

/// `bytes`: of count elements. kAuto: two_level where hosts have several members each; else direct for up to 8 ranks,
/// beyond them by size. A wanted algorithm that the kind does not have: direct, and the reason says so.
AlgorithmChoice choose_algorithm(CollectiveKind kind, int64_t bytes, const GroupPlace& group, MessageAlgorithm wanted,
                                 bool two_level);

int num_hosts_of(const GroupPlace& group);

}  // namespace altiplano
