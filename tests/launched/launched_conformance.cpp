// The suite of comm plugins on ranks that mpirun or srun started, every process running this program: it checks what is
// owed for as many ranks as there are. usage: mpirun -n RANKS launched_conformance PLUGIN-FILE [RANKS-OF-A-HOST]
// With RANKS-OF-A-HOST the ranks take themselves for ranks of as many hosts as that makes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "framework/conformance/check.hpp"
#include "framework/conformance/comm_checks.hpp"
#include "framework/conformance/ranks.hpp"
#include "framework/launch/pmix_rendezvous.hpp"

using namespace altiplano;
using namespace altiplano::conformance;

namespace {

int fail(const Status& status) {
  std::fprintf(stderr, "error: %s\n", status.to_string().c_str());
  return 1;
}

/// More than the suite asks: without two levels, sums in the order of the group, bit for bit, as those of every backend
/// of the tree.
Status check_bits(const Subject& subject, int ranks, int64_t chunk_bytes, std::span<const int64_t> counts) {
  CommOptions options;
  options.chunk_bytes = chunk_bytes;
  options.two_level = false;
  return check_collectives(subject.as<CommBackend>(), RanksAre::kLaunched, ranks, options, counts, Buffers::kPlain,
                           /*exact=*/true);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3)
    return fail(invalid_argument("usage: mpirun -n RANKS launched_conformance PLUGIN-FILE [RANKS-OF-A-HOST]"));
  auto world = connect_pmix_rendezvous();
  if (!world.is_ok()) return fail(world.status());
  LoadedPlugin plugin;
  if (const Status loaded = load_plugin(argv[1], plugin); !loaded.is_ok()) return fail(loaded);
  const int on_host = argc == 3 ? std::atoi(argv[2]) : 0;
  RanksOnHosts hosts(**world, std::max(on_host, 1));
  use_launched_ranks(on_host == 0 ? **world : hosts);
  const Subject subject{plugin.info, plugin.descriptor, plugin.object};
  const int ranks = (*world)->world_size();
  std::vector<Check> checks = comm_checks();
  checks.push_back({"sums have the bits of adding in the order of the group", [ranks](const Subject& s) -> Finding {
                      constexpr int64_t kMany[] = {1, 3, 1000, 10007}, kFew[] = {257};
                      ALTIPLANO_RETURN_IF_ERROR(check_bits(s, ranks, int64_t{1} << 18, kMany));
                      ALTIPLANO_RETURN_IF_ERROR(check_bits(s, ranks, 1, kFew));
                      return "whole and in chunks";
                    }});
  checks.push_back(
      {"every algorithm is right over the network", [ranks](const Subject& s) -> Finding {
         constexpr int64_t kCounts[] = {0, 1, 1000, 10007};
         CommOptions options;
         for (auto algorithm : {MessageAlgorithm::kDirect, MessageAlgorithm::kRing, MessageAlgorithm::kRecursive}) {
           options.algorithm = algorithm;
           ALTIPLANO_RETURN_IF_ERROR(check_collectives(s.as<CommBackend>(), RanksAre::kLaunched, ranks, options,
                                                       kCounts, Buffers::kPlain, false));
         }
         return "direct, ring, recursive";
       }});
  int num_broken = 0;
  for (const Check& check : checks) {
    const auto begin = std::chrono::steady_clock::now();
    launched_runs() = {};
    const std::string why_not = check.not_owed ? check.not_owed(subject) : "";
    const Finding finding = why_not.empty() ? run_check(check, subject) : Finding(why_not);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    num_broken += finding.is_ok() ? 0 : 1;
    const bool was_run = launched_runs().run > 0 || launched_runs().left_out == 0;
    const char* verdict = !finding.is_ok() ? "BROKEN" : !why_not.empty() ? "not owed" : was_run ? "kept" : "not run";
    if ((*world)->rank().value == 0)
      std::printf("%-8s  %s: %s (%.1f s)\n", verdict, check.name.c_str(),
                  finding.is_ok() ? finding->c_str() : finding.status().to_string().c_str(), took.count());
    std::fflush(stdout);
  }
  return num_broken == 0 ? 0 : 1;
}
