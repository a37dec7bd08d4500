#pragma once
// Plans that took long to find, kept for the next start of an equal job: one file each in
// ${XDG_CACHE_HOME:-~/.cache}/altiplano/plans, named by a fingerprint of everything that planning sees.
#include <optional>
#include <string>

#include "framework/runtime/job_plan.hpp"

namespace altiplano {

struct CachedPlan {
  Plan plan;
  std::string file;
};

class PlanCache {
 public:
  /// Plans found sooner than this are found again as fast as they are read.
  static constexpr double kWorthKeeping = 0.2;  ///< seconds
  /// The newest that are kept.
  static constexpr size_t kMostKept = 64;

  /// Of the plans of this job: graph, cluster, ranks, batch, memory and the `parallel:` section count, and the files of
  /// the program and of the planners' plugins by size and time. `folder` empty: a cache that keeps nothing.
  PlanCache(const Job& job, const PlanningSizes& sizes, std::string folder);

  /// Nothing when there is none, or when what is there is no plan (it is removed).
  std::optional<CachedPlan> find() const;
  /// Removes the oldest beyond kMostKept. What cannot be written is not kept; the next start plans again.
  void keep(const Plan& plan) const;

 private:
  std::string file() const { return folder_ + "/" + key_ + ".yaml"; }
  std::string folder_, key_;
};

/// Of this process's environment; empty where neither XDG_CACHE_HOME nor HOME is set.
std::string plan_cache_folder();

}  // namespace altiplano
