#include "framework/runtime/memory_saving.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/runtime/job_graph.hpp"

namespace altiplano {

namespace {

/// For a job of which nothing fits as it stands: one search for what does.
class MemorySaving {
 public:
  MemorySaving(Job& job, const PlanningSizes& sizes, LastLowered& last)
      : job_(job),
        sizes_(sizes),
        last_(last),
        zero_is_open_(!job.config.options.has("parallel.zero_stage")),
        recompute_is_open_(job.config.options.get_string("parallel.recompute") == "auto") {}

  bool has_choices() const { return zero_is_open_ || recompute_is_open_; }

  /// False, with the job's graph as it was, when nothing fits.
  Result<bool> run() {
    const std::set<std::string> given = job_.graph->recomputed;
    if (zero_is_open_) ALTIPLANO_RETURN_IF_ERROR(try_stages(kDefaultZero + 1));
    if (recompute_is_open_) {
      const std::vector<std::string>& layers = job_.graph->graph.layers();
      ALTIPLANO_RETURN_IF_ERROR(set_graph({layers.begin(), std::prev(layers.end())}));
      if (!job_.graph->recomputed.empty()) ALTIPLANO_RETURN_IF_ERROR(try_stages(kDefaultZero));
    }
    ALTIPLANO_RETURN_IF_ERROR(set_graph(best_ ? best_->recomputed : given));
    if (!best_) return false;
    job_.plan = std::move(best_->plan);
    if (recompute_is_open_ && !job_.graph->recomputed.empty()) ALTIPLANO_RETURN_IF_ERROR(recompute_fewest());
    std::erase_if(job_.considered, [&](const ConsideredPlan& c) { return c.fits && !is_of_graph(c.plan); });
    note();
    return true;
  }

 private:
  struct Found {
    Plan plan;
    std::set<std::string> recomputed;
  };

  Status set_graph(const std::set<std::string>& recomputed) {
    if (recomputed == job_.graph->recomputed) return Status::ok();
    ALTIPLANO_ASSIGN(TrainingGraph graph,
                     build_job_graph(job_.config.options, sizes_.batch.global, sizes_.sequence, recomputed));
    *job_.graph = std::move(graph);
    return Status::ok();
  }

  /// Takes the first ZeRO stage from `zero` on that fits, if its plan is the fastest so far.
  Status try_stages(int zero) {
    Status made = ask_planners(job_, sizes_, zero, false, last_);
    while (made.code() == StatusCode::kInfeasible && zero_is_open_ && zero < Plan::kMostZero)
      made = ask_planners(job_, sizes_, ++zero, false, last_);
    if (made.code() == StatusCode::kInfeasible) return Status::ok();
    ALTIPLANO_RETURN_IF_ERROR(made);
    if (job_.plan.predicted.step == Seconds()) {
      ALTIPLANO_ASSIGN(const PlanEstimate estimate, estimate_for(job_, job_.plan, sizes_, last_));
      job_.plan.predicted = estimate.prediction;
    }
    if (!best_ || job_.plan.predicted.step < best_->plan.predicted.step)
      best_ = Found{job_.plan, job_.graph->recomputed};
    return Status::ok();
  }

  /// Whether a plan that was considered recomputes what job.graph does.
  bool is_of_graph(const Plan& plan) const {
    std::set<std::string> layers;
    for (const PlanStage& stage : plan.stages) layers.insert(stage.recompute.begin(), stage.recompute.end());
    return layers == job_.graph->recomputed;
  }

  /// Makes job.plan recompute the first `counts[s]` of the layers that stage s of `full` does; per stage, whether it
  /// fits then.
  Result<std::vector<bool>> try_counts(const Plan& full, const std::vector<size_t>& counts, Bytes limit) {
    std::set<std::string> layers;
    for (size_t s = 0; s < counts.size(); ++s) {
      const std::vector<std::string>& all = full.stages[s].recompute;
      layers.insert(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(counts[s]));
    }
    ALTIPLANO_RETURN_IF_ERROR(set_graph(layers));
    job_.plan = full;
    state_recompute(*job_.graph, job_.plan);
    const Status sharded = ask_sharding_planner(job_, sizes_, last_);
    if (sharded.code() == StatusCode::kInfeasible) return std::vector<bool>(counts.size(), false);
    ALTIPLANO_RETURN_IF_ERROR(sharded);
    ALTIPLANO_ASSIGN(const PlanEstimate estimate, estimate_for(job_, job_.plan, sizes_, last_));
    job_.plan.predicted = estimate.prediction;
    std::vector<bool> fits;
    for (Bytes peak : estimate.prediction.peak_memory) fits.push_back(peak <= limit);
    return fits;
  }

  /// Of each stage the first layers, as few as fit: theirs is what would be kept the longest. What a stage holds is its
  /// own affair, so one try halves what is open of all stages.
  Status recompute_fewest() {
    ALTIPLANO_ASSIGN(const Bytes limit, memory_limit(job_.config.options, job_.cluster, job_.ranks_of_a_host));
    const Plan full = job_.plan;
    std::vector<size_t> least(full.stages.size(), 0), most;  // of each stage: fewer do not fit; so many do
    for (const PlanStage& stage : full.stages) most.push_back(stage.recompute.size());
    while (least != most) {
      std::vector<size_t> middle;
      for (size_t s = 0; s < most.size(); ++s) middle.push_back((least[s] + most[s]) / 2);
      ALTIPLANO_ASSIGN(const std::vector<bool> fits, try_counts(full, middle, limit));
      for (size_t s = 0; s < most.size(); ++s) {
        if (fits[s]) most[s] = middle[s];
        if (!fits[s]) least[s] = std::min(most[s], middle[s] + 1);
      }
    }
    ALTIPLANO_ASSIGN(std::vector<bool> fits, try_counts(full, most, limit));
    if (std::ranges::find(fits, false) == fits.end()) return Status::ok();
    job_.plan = full;  // a searched sharding may need more than it did for neighbouring counts
    std::set<std::string> layers;
    for (const PlanStage& stage : full.stages) layers.insert(stage.recompute.begin(), stage.recompute.end());
    return set_graph(layers);
  }

  void note() {
    std::vector<std::string> what;
    if (const int zero = job_.plan.stages[0].zero; zero_is_open_ && zero > kDefaultZero)
      what.push_back(fmt::format("parallel.zero_stage {}", zero));
    if (const auto count = static_cast<int64_t>(job_.graph->recomputed.size()); recompute_is_open_ && count > 0)
      what.push_back(fmt::format("recomputing {} of {} layers", count, job_.graph->graph.layers().size()));
    job_.notices.push_back(fmt::format("the defaults do not fit the memory; taken instead: {}", join(what, " and ")));
  }

  Job& job_;
  const PlanningSizes& sizes_;
  LastLowered& last_;
  const bool zero_is_open_, recompute_is_open_;
  std::optional<Found> best_;
};

}  // namespace

Status plan_within_memory(Job& job, const PlanningSizes& sizes, LastLowered& last) {
  MemorySaving saving(job, sizes, last);
  const Status made = ask_planners(job, sizes, kDefaultZero, !saving.has_choices(), last);
  if (made.code() != StatusCode::kInfeasible || !saving.has_choices()) return made;
  ALTIPLANO_ASSIGN(const bool is_found, saving.run());
  return is_found ? Status::ok() : ask_planners(job, sizes, kDefaultZero, true, last);
}

}  // namespace altiplano
