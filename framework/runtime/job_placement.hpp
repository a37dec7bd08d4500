#pragma once
// The step from a plan's slots to the ranks of an allocation: who works beside whom.
#include <string>

#include "framework/cluster/rank_places.hpp"
#include "framework/runtime/job.hpp"
#include "framework/search/placement.hpp"

namespace altiplano {

/// Gives slots to ranks so that little of a step crosses between hosts and switches (find_placement), and lowers
/// job.programs anew where that is not the order of ranks. Sets job.binding and job.placement. Does nothing where all
/// ranks share a host.
Status place_ranks(Job& job, const RankPlaces& places);

/// "8 ranks on 4 hosts under 2 switches: a step sends 12.3 MiB between hosts, 3.1 MiB of it between switches (in the
/// order of ranks 48 MiB, 20 MiB)"
std::string placement_in_words(const RankPlaces& places, const Placement& placement);

/// What the first rank tells the others: the binding in a line of its own, then the plan.
std::string told_plan(const Job& job);
/// kInvalidArgument where that is not what it is.
Result<ProvedPlan> plan_as_told(const std::string& text, RankId rank);

}  // namespace altiplano
