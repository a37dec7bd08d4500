#pragma once
// Ranks as tests want them: see framework/conformance/ranks.hpp. Ranks are threads where the backend allows it.
#include "framework/conformance/ranks.hpp"

namespace altiplano::test {

using conformance::CommunicatorFunction;
using conformance::RankFunction;
using conformance::run_processes_all;
using conformance::run_ranks;
using conformance::run_ranks_all;

inline std::vector<Status> run_backend_all(int ranks, CommBackend& backend, const CommOptions& options,
                                           const CommunicatorFunction& function) {
  const bool may_be_threads = (backend.capabilities() & kCommWithinProcess) != 0;
  return conformance::run_backend_all(
      ranks, backend, options, function,
      may_be_threads ? conformance::RanksAre::kThreads : conformance::RanksAre::kProcesses);
}
/// ok, or the first (by rank) failure.
inline Status run_backend(int ranks, CommBackend& backend, const CommOptions& options,
                          const CommunicatorFunction& function) {
  return conformance::first_failure(run_backend_all(ranks, backend, options, function));
}

}  // namespace altiplano::test
