#pragma once
// How good plans are over the Alpa suites: a planner's plan, the published one and the best of all, each costed by the
// same simulator. Plugins must be on the search path. Used by tests and by tests/bench/alpa_suite.
#include <optional>

#include "framework/runtime/job.hpp"
#include "tests/support/alpa_job.hpp"

namespace altiplano::test {

/// A plan of a member's job, or why there is none.
struct CostedPlan {
  std::string planner;  ///< "dp", "published"
  std::string refusal;  ///< empty: there is a plan
  Plan plan = {};
  double seconds = 0;  ///< of a simulated step
  Bytes peak;          ///< of the fullest rank
  bool fits = false;

  bool has_plan() const { return refusal.empty(); }
  /// "data 2 x tensor 4, 1f1b, ZeRO-1, 8 x 4"
  std::string summary() const;
};

/// As `altiplano plan` makes it. No plan that fits is a refusal; anything else that goes wrong a failure.
Result<CostedPlan> planned(const AlpaMember& member, const std::string& planner,
                           const std::vector<std::string>& overrides = {});

/// The published stages with shardings by planner/ilp, with recomputation of all layers or of none, and with the
/// devices of a stage as replicas as published or all on the axis whose use the search finds: the fastest of those that
/// fit, else the one that lacks least. A refusal where no plan was published or plans cannot say it.
Result<CostedPlan> published(const AlpaMember& member);

/// The fastest of the plans that fit of all divisions of the ranks, all divisions of the layers into stages, all tensor
/// degrees per stage and all sizes of microbatches, each with its sharding by planner/ilp. Of small members.
struct Exhaustive {
  CostedPlan best;
  int num_plans = 0, num_fit = 0;
};
Result<Exhaustive> search_all(const AlpaMember& member, const std::vector<std::string>& overrides = {});

/// The suite made small enough for search_all: of every family at different numbers of blocks, GPUs and memories.
struct ReducedCase {
  AlpaMember member;
  std::vector<std::string> overrides;  ///< memory
  std::string name;
};
std::vector<ReducedCase> reduced_suite();

/// Which baseline is fastest, and how much longer `plan` takes than that one, as a share; nothing where no baseline has
/// a plan.
struct Comparison {
  std::string best_baseline;
  double longer = 0;
};
std::optional<Comparison> compare(const CostedPlan& plan, const std::vector<CostedPlan>& baselines);

inline const std::vector<std::string> kBaselines = {"heuristic", "deepspeed", "fsdp"};
/// Of the step of the best baseline: plans may take longer by so much.
inline constexpr double kQualityLimit = 0.005;

}  // namespace altiplano::test
