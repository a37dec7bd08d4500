#include "framework/cli/plan_choice.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/cli/simulation_text.hpp"

namespace altiplano {

namespace {

/// Divisions tried for a planner that looked at no other plan.
constexpr int kMostOtherDegrees = 24;

/// Better: it fits, is faster (or, where neither fits, smaller).
bool is_better(const ConsideredPlan& a, const ConsideredPlan& b) {
  if (a.fits != b.fits) return a.fits;
  return a.fits ? a.plan.predicted.step < b.plan.predicted.step : a.peak < b.peak;
}

/// Each kind of plan once, with the best shardings that were tried; best first. What was estimated for all ranks counts
/// before what was for some.
std::vector<ConsideredPlan> distinct_plans(const std::vector<ConsideredPlan>& considered) {
  std::map<std::string, ConsideredPlan> by_kind;
  for (const ConsideredPlan& plan : considered) {
    const auto [known, is_new] = by_kind.try_emplace(plan_in_words(plan.plan), plan);
    const bool is_surer = known->second.is_preview && !plan.is_preview;
    const bool is_less_sure = plan.is_preview && !known->second.is_preview;
    if (!is_new && (is_surer || (!is_less_sure && is_better(plan, known->second)))) known->second = plan;
  }
  std::vector<ConsideredPlan> plans;
  for (auto& [kind, plan] : by_kind) plans.push_back(std::move(plan));
  std::ranges::stable_sort(plans, is_better);
  return plans;
}

std::string percent(Seconds step, Seconds of) {
  return fmt::format("{:+.0f} %", 100 * (step.value / std::max(of.value, 1e-300) - 1));
}

std::string with_sign(Seconds difference) {
  constexpr double kRounding = 1e-10;  // of sums that ought to be equal
  if (std::abs(difference.value) < kRounding) return "+0 us";
  return (difference < Seconds(0) ? "-" : "+") + to_string(Seconds(std::abs(difference.value)));
}
std::string with_sign(Bytes difference) {
  return (difference < Bytes(0) ? "-" : "+") + to_string(Bytes(std::abs(difference.value)));
}

/// Where the other plan's time differs, by what makes a step.
Result<std::string> differences(const Job& job, const ProgramSimulation& mine, const Plan& other) {
  ALTIPLANO_ASSIGN(const ProgramSimulation theirs, simulate_for(job, other));
  const StepParts a = parts_of(mine), b = parts_of(theirs);
  return fmt::format("computing {}, exposed communication {}, bubble {}", with_sign(b.busy - a.busy),
                     with_sign(b.exposed - a.exposed), with_sign(b.bubble - a.bubble));
}

/// Of the plans that are not the chosen one, the fastest that fits and the fastest that does not.
struct Alternatives {
  std::optional<ConsideredPlan> runner_up, too_large;
};
Alternatives alternatives_to(const Plan& chosen, const std::vector<ConsideredPlan>& plans) {
  Alternatives found;
  for (const ConsideredPlan& plan : plans) {
    std::optional<ConsideredPlan>& best = plan.fits ? found.runner_up : found.too_large;
    if (plan_in_words(plan.plan) == plan_in_words(chosen)) continue;
    if (!best || plan.plan.predicted.step < best->plan.predicted.step) best = plan;
  }
  return found;
}

std::string reason(const Plan& chosen, const std::vector<ConsideredPlan>& plans, const Alternatives& others) {
  const std::string all = counted(static_cast<int64_t>(plans.size()), "plan");
  if (plans.size() == 1) return fmt::format("{} considered no other\n", chosen.planner);
  if (!others.runner_up) return fmt::format("the only one that fits of {} that {} considered\n", all, chosen.planner);
  if (others.runner_up->plan.predicted.step < chosen.predicted.step)
    return fmt::format("{} took the first that fits in its order, not the fastest, of {}\n", chosen.planner, all);
  const auto num_fit = std::ranges::count_if(plans, &ConsideredPlan::fits);
  return fmt::format("the fastest of {} that fit, {} considered by {}\n", counted(num_fit, "plan"), all,
                     chosen.planner);
}

/// A plan beside the chosen one, in time and memory.
Result<std::string> described(const Job& job, const ProgramSimulation& simulation, const ConsideredPlan& other) {
  const Plan& plan = other.plan;
  Bytes peak;
  for (Bytes of_stage : job.plan.predicted.peak_memory) peak = std::max(peak, of_stage);
  ALTIPLANO_ASSIGN(const std::string where, differences(job, simulation, plan));
  return fmt::format("{}: {} ({}), {}; fullest rank {} ({})\n", plan_in_words(plan), to_string(plan.predicted.step),
                     percent(plan.predicted.step, job.plan.predicted.step), where, to_string(other.peak),
                     with_sign(other.peak - peak));
}

}  // namespace

std::string plan_in_words(const Plan& plan) {
  std::string text = fmt::format("{}, {} of {}", plan_summary(plan),
                                 counted(plan.num_microbatches, "microbatch", "microbatches"), plan.microbatch);
  if (plan.stages.size() < 2) return text;
  std::vector<std::string> stages;
  for (const PlanStage& stage : plan.stages) {
    const int tensor = stage.mesh.degree(Axis::kTensor);
    const bool is_other = tensor != plan.stages[0].mesh.degree(Axis::kTensor);
    stages.push_back(fmt::format("{}{}", stage.layers.size(), is_other ? fmt::format(" (tensor {})", tensor) : ""));
  }
  return text + ", layers " + join(stages, "+");
}

std::string top_plans(const Job& job, size_t most) {
  if (job.plan_was_given) return "the plan was given: no other was considered\n";
  const std::vector<ConsideredPlan> plans = distinct_plans(job.considered);
  const std::string chosen = plan_in_words(job.plan);
  std::string text = fmt::format("{:>4}  {:>11} {:>8} {:>12}  {}\n", "", "step", "", "fullest rank", "plan");
  for (size_t i = 0; i < std::min(most, plans.size()); ++i) {
    const ConsideredPlan& plan = plans[i];
    const std::string words = plan_in_words(plan.plan);
    text += fmt::format("{:>4}  {:>11} {:>8} {:>12}  {}{}{}\n", i + 1, to_string(plan.plan.predicted.step),
                        percent(plan.plan.predicted.step, job.plan.predicted.step), to_string(plan.peak), words,
                        words == chosen ? "  <- chosen" : "", plan.fits ? "" : "  (does not fit)");
  }
  return text + fmt::format("{} considered by {}{}\n", counted(static_cast<int64_t>(plans.size()), "plan"),
                            job.plan.planner, most < plans.size() ? fmt::format(", the best {} shown", most) : "");
}

Result<std::string> why_this_plan(const Job& job, const ProgramSimulation& simulation) {
  if (job.plan_was_given) return fmt::format("why       it was given: {}\n", job.plan.file);
  const std::vector<ConsideredPlan> plans = distinct_plans(job.considered);
  Alternatives others = alternatives_to(job.plan, plans);
  std::string text = "why       " + reason(job.plan, plans, others);
  std::string runner_up = "runner-up ";
  if (!others.runner_up) {  // the planner looked at nothing else, so somebody has to
    std::vector<ConsideredPlan> more = plans_of_other_degrees(job, kMostOtherDegrees);
    more.insert(more.end(), plans.begin(), plans.end());
    others = alternatives_to(job.plan, distinct_plans(more));
    runner_up += "by other degrees: ";
  }
  if (others.runner_up) {
    ALTIPLANO_ASSIGN(const std::string line, described(job, simulation, *others.runner_up));
    text += runner_up + line;
  }
  if (others.too_large) {
    const Plan& plan = others.too_large->plan;
    text += fmt::format("no room   {}: {} ({}), but its fullest rank needs {}\n", plan_in_words(plan),
                        to_string(plan.predicted.step), percent(plan.predicted.step, job.plan.predicted.step),
                        to_string(others.too_large->peak));
  }
  return text;
}

}  // namespace altiplano
