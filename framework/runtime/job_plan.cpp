#include "framework/runtime/job_plan.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "framework/base/console.hpp"
#include "framework/base/plural.hpp"
#include "framework/graph/samples_together.hpp"
#include "framework/plugin/registry.hpp"
#include "framework/simulate/fit.hpp"
#include "framework/simulate/plan_estimate.hpp"

namespace altiplano {

std::string plan_itself(Plan plan) {
  plan.predicted = {};
  return plan.to_yaml();
}

Result<Bytes> memory_limit(const Options& options, const Cluster& cluster, int ranks_of_a_host) {
  ALTIPLANO_ASSIGN(auto from_job, memory_per_rank(options));
  if (from_job) return *from_job;
  if (cluster.name != "this-machine") return cluster.device.memory;
  return Bytes(static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE) / ranks_of_a_host);
}

namespace {

struct Considered {
  std::vector<ConsideredPlan>& plans;
  LastLowered& last;
};

/// Says that planning goes on, now and then.
class PlanningProgress {
 public:
  void tell(size_t num_considered) {
    const auto now = std::chrono::steady_clock::now();
    if (now - told_ < kEvery) return;
    told_ = now;
    print_err("planning  {} considered in {}\n", counted(static_cast<int64_t>(num_considered), "plan"),
              to_string(Seconds(std::chrono::duration<double>(now - start_).count())));
  }

 private:
  static constexpr std::chrono::seconds kEvery{5};
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), told_ = start_;
};

/// Of a plan for the job's own ranks.
Result<PlanEstimate> estimate_and_note(const Job& job, const Plan& plan, const Timetable& timetable,
                                       const LoweringOptions& options, Bytes memory, const Considered& considered) {
  LastLowered lowered{plan_itself(plan), options.only_first_of_stage, {}};
  ALTIPLANO_ASSIGN(lowered.programs, lower(*job.graph, plan, timetable, Binding::identity(plan.num_slots()), options));
  ALTIPLANO_ASSIGN(PlanEstimate found, estimate_programs(*job.graph, plan, job.cluster, timetable, lowered.programs));
  const Bytes peak = *std::ranges::max_element(found.peak_per_rank);
  considered.plans.push_back({plan, peak, peak <= memory, options.only_first_of_stage});
  considered.plans.back().plan.predicted = found.prediction;
  considered.last = std::move(lowered);
  return found;
}

/// What planners ask; every plan they ask about for the job's own ranks is noted.
PlannerServices services_for(const Job& job, JobDevice& device, const SharedFacts& facts, bool only_previews,
                             Bytes memory, Considered considered) {
  auto progress = std::make_shared<PlanningProgress>();
  auto estimate = [&job, &device, considered, memory, progress, facts](Plan plan,
                                                                       bool is_preview) -> Result<PlanEstimate> {
    progress->tell(considered.plans.size());
    state_recompute(*job.graph, plan);
    ALTIPLANO_ASSIGN(Timetable timetable, build_timetable(plan));
    LoweringOptions options = device.lowering();
    options.only_first_of_stage = is_preview;
    options.facts = facts;
    if (plan.num_slots() == job.num_ranks) return estimate_and_note(job, plan, timetable, options, memory, considered);
    // Planners ask about more ranks than the job has when they look for a change that fits.
    return estimate_plan(*job.graph, plan, job.cluster.resized(plan.num_slots()), timetable, options);
  };
  PlannerServices services;
  services.estimate = [estimate, only_previews](const Plan& plan) { return estimate(plan, only_previews); };
  services.preview = [estimate](const Plan& plan) { return estimate(plan, true); };
  services.schedule = [](const std::string& name) { return PluginRegistry::instance().schedule(name); };
  return services;
}

/// What planners are asked, as long as this lives.
struct Question {
  PlannerServices services;
  PlanRequest request;
};

/// Where the model takes samples together, the number of microbatches is the model's.
Status keep_samples_together(const Job& job, PlanRequest& request) {
  ALTIPLANO_ASSIGN(const int64_t together, samples_together(job.graph->graph));
  if (together == 0) return Status::ok();
  const Options& options = job.config.options;
  const int64_t wanted = request.global_batch / together;
  const char* key = "train.gradient_accumulation_steps";
  if (request.accumulation > 0 && options.has(key) && request.accumulation != wanted)
    return invalid_argument("{}: {} microbatches of {} samples take {} at once; model/{}'s statistics are over {}: {}",
                            options.where(key), request.accumulation, request.global_batch,
                            request.global_batch / request.accumulation, options.get_string("model.kind"), together,
                            counted(wanted, "microbatch", "microbatches"));
  if (request.microbatch == 0) request.accumulation = wanted;
  return Status::ok();
}

Result<std::unique_ptr<Question>> question_of(const Job& job, const PlanningSizes& sizes,
                                              std::vector<ConsideredPlan>& noted, LastLowered& last) {
  const Options& options = job.config.options;
  ALTIPLANO_ASSIGN(const Bytes memory, memory_limit(options, job.cluster, job.ranks_of_a_host));
  auto question = std::make_unique<Question>();
  PlanRequest& request = question->request;
  ALTIPLANO_ASSIGN(request.facts, facts_of(*job.graph));
  question->services = services_for(job, *job.device, request.facts, sizes.only_first_of_stage, memory, {noted, last});
  request.graph = job.graph.get();
  request.cluster = &job.cluster;
  request.services = &question->services;
  request.options = options.section("parallel");
  request.num_ranks = job.num_ranks;
  request.global_batch = sizes.batch.global;
  request.microbatch = sizes.batch.micro;
  request.accumulation = sizes.batch.accumulation;
  ALTIPLANO_RETURN_IF_ERROR(keep_samples_together(job, request));
  request.memory_per_rank = memory;
  if (options.has("parallel.zero_stage")) request.zero = static_cast<int>(options.get_int("parallel.zero_stage"));
  return question;
}

struct Planners {
  const StagePlanner* stages;
  const ShardingPlanner* sharding;
  bool are_one;  ///< halves of one planner
};

/// Both halves by the planners that the job file names; one name for both: what that planner does not plan is the
/// default's.
Result<Planners> planners_of(const Options& options) {
  const std::string stages_name = options.get_string("parallel.planner.stages"),
                    sharding_name = options.get_string("parallel.planner.sharding");
  ALTIPLANO_ASSIGN(const Planner* stages, PluginRegistry::instance().planner(stages_name));
  ALTIPLANO_ASSIGN(const Planner* sharding, PluginRegistry::instance().planner(sharding_name));
  auto by_default = [&](const char* key) {
    return PluginRegistry::instance().planner(std::get<std::string>(options.default_value(key)));
  };
  if (stages_name == sharding_name && !stages->stages()) {
    ALTIPLANO_ASSIGN(stages, by_default("parallel.planner.stages"));
  }
  if (stages_name == sharding_name && !sharding->sharding()) {
    ALTIPLANO_ASSIGN(sharding, by_default("parallel.planner.sharding"));
  }
  if (!stages->stages())
    return invalid_argument("parallel.planner.stages: planner/{} does not plan stages", stages_name);
  if (!sharding->sharding())
    return invalid_argument("parallel.planner.sharding: planner/{} does not plan sharding", sharding_name);
  return Planners{stages->stages(), sharding->sharding(), stages == sharding};
}

/// Divisions of the ranks with the tensor axis inside a node, least tensor x pipeline first.
std::vector<Degrees> all_degrees(const Job& job) {
  std::vector<Degrees> all;
  const auto num_layers = static_cast<int>(job.graph->graph.layers().size());
  for (int model = 1; model <= job.num_ranks; ++model) {
    if (job.num_ranks % model != 0) continue;
    for (int tensor = std::min(model, job.cluster.devices_per_node()); tensor >= 1; --tensor)
      if (model % tensor == 0 && model / tensor <= num_layers)
        all.push_back({job.num_ranks / model, tensor, model / tensor});
  }
  return all;
}

}  // namespace

Status ask_planners(Job& job, const PlanningSizes& sizes, int zero, bool wants_advice, LastLowered& last) {
  ALTIPLANO_ASSIGN(const auto question, question_of(job, sizes, job.considered, last));
  ALTIPLANO_ASSIGN(const Planners planners, planners_of(job.config.options));
  PlanRequest& request = question->request;
  if (!job.config.options.has("parallel.zero_stage")) request.zero = zero;
  request.wants_advice = wants_advice;
  ALTIPLANO_ASSIGN(job.plan, planners.stages->plan_stages(request));
  if (!planners.are_one) forget_shardings(job.plan);
  ALTIPLANO_RETURN_IF_ERROR(planners.sharding->plan_sharding(request, job.plan));
  state_recompute(*job.graph, job.plan);
  return Status::ok();
}

Status ask_sharding_planner(Job& job, const PlanningSizes& sizes, LastLowered& last) {
  ALTIPLANO_ASSIGN(const auto question, question_of(job, sizes, job.considered, last));
  ALTIPLANO_ASSIGN(const Planners planners, planners_of(job.config.options));
  question->request.zero = job.plan.stages[0].zero;
  forget_shardings(job.plan);
  return planners.sharding->plan_sharding(question->request, job.plan);
}

Result<PlanEstimate> estimate_for(Job& job, const Plan& plan, const PlanningSizes& sizes, LastLowered& last) {
  ALTIPLANO_ASSIGN(const auto question, question_of(job, sizes, job.considered, last));
  return question->services.estimate(plan);
}

std::vector<ConsideredPlan> plans_of_other_degrees(const Job& job, int most) {
  std::vector<ConsideredPlan> considered;
  const auto batch = job_batch(job.config.options, job.num_ranks);
  if (!batch.is_ok()) return considered;
  LastLowered last;
  const auto question = question_of(job, {*batch, 0, true}, considered, last);
  if (!question.is_ok()) return considered;
  PlanRequest& request = (*question)->request;
  request.zero = job.plan.stages[0].zero;
  for (const Degrees& degrees : all_degrees(job)) {
    DegreePlanOptions wanted = degree_options(request, job.plan.planner);
    wanted.degrees = degrees;
    wanted.split.clear();
    if (cannot_fit(request, wanted)) continue;
    const auto tried = fit_plan(request, wanted);
    if (tried.is_ok() && --most == 0) break;
  }
  return considered;
}

}  // namespace altiplano
