#include "tests/support/alpa_quality.hpp"

#include <algorithm>

#include "framework/base/text.hpp"
#include "framework/plan/degrees.hpp"
#include "framework/runtime/job_graph.hpp"
#include "framework/runtime/job_plan.hpp"
#include "framework/simulate/plan_estimate.hpp"
#include "framework/simulate/plan_simulation.hpp"

namespace altiplano::test {

namespace {

LoweringOptions lowering_of(Job& job) {
  LoweringOptions options = job.device->lowering();
  options.only_first_of_stage = true;
  return options;
}

/// Step and memory of job.plan, which is stated and verified.
Status cost(Job& job, Bytes memory, CostedPlan& costed) {
  ALTIPLANO_ASSIGN(const Timetable timetable, build_timetable(job.plan));
  ALTIPLANO_ASSIGN(const PlanEstimate estimate,
                   estimate_plan(*job.graph, job.plan, job.cluster, timetable, lowering_of(job)));
  costed.plan = job.plan;
  costed.peak = *std::ranges::max_element(estimate.peak_per_rank);
  costed.fits = costed.peak <= memory;
  ALTIPLANO_ASSIGN(const ProgramSimulation simulation,
                   simulate_plan(*job.graph, job.plan, job.cluster, timetable, job.device->lowering()));
  costed.seconds = simulation.step.value;
  return Status::ok();
}

/// A job without a plan, for plans that are made here.
class Workbench {
 public:
  static Result<Workbench> open(const AlpaMember& member, std::vector<std::string> overrides) {
    overrides.emplace_back("parallel.planner.sharding=ilp");
    ALTIPLANO_ASSIGN(JobConfig config, alpa_job(member, "dp", overrides));
    JobRequest request;
    request.num_ranks = member.gpus;
    request.needs_plan = false;
    Workbench bench;
    ALTIPLANO_ASSIGN(bench.job_, prepare_job(std::move(config), request));
    bench.sizes_ = {{member.batch, 0, 0}, member.sequence, true};
    const Options& options = bench.job_.config.options;
    ALTIPLANO_ASSIGN(bench.job_.device, JobDevice::open(options, member.gpus, 1, bench.job_.graph->seed));
    bench.job_.device->pass_over_missing_kernels();
    ALTIPLANO_ASSIGN(bench.memory_, memory_limit(options, bench.job_.cluster, member.gpus));
    return bench;
  }

  const Graph& graph() const { return job_.graph->graph; }
  Bytes memory() const { return memory_; }

  /// All layers whose backward needs something of them are recomputed from now on, or none.
  Status recompute(bool all) {
    std::set<std::string> layers;
    const std::vector<std::string>& names = graph().layers();
    if (all) layers.insert(names.begin(), std::prev(names.end()));
    ALTIPLANO_ASSIGN(TrainingGraph graph,
                     build_job_graph(job_.config.options, sizes_.batch.global, sizes_.sequence, layers));
    *job_.graph = std::move(graph);
    return Status::ok();
  }

  /// With a sharding by planner/ilp. A refusal is in the result.
  Result<CostedPlan> cost_of(Plan plan, const std::string& name) {
    CostedPlan costed;
    costed.planner = name;
    job_.plan = std::move(plan);
    job_.plan.graph_fingerprint = job_.graph->fingerprint;
    state_recompute(*job_.graph, job_.plan);
    job_.considered.clear();
    LastLowered last;
    Status made = ask_sharding_planner(job_, sizes_, last);
    if (made.is_ok()) made = verify_plan(job_.plan, *job_.graph);
    if (made.code() == StatusCode::kInfeasible || made.code() == StatusCode::kInvalidArgument) {
      costed.refusal = made.message();
      return costed;
    }
    ALTIPLANO_RETURN_IF_ERROR(made);
    ALTIPLANO_RETURN_IF_ERROR(cost(job_, memory_, costed));
    return costed;
  }

  /// Everything of a plan but its stages.
  Plan frame(int data, int64_t microbatch) const {
    Plan plan;
    plan.model_name = graph().name;
    plan.cluster_shape = job_.cluster.shape_text();
    plan.cluster_fingerprint = job_.cluster.fingerprint();
    plan.global_batch = sizes_.batch.global;
    plan.microbatch = microbatch;
    plan.num_microbatches = static_cast<int>(sizes_.batch.global / data / microbatch);
    plan.compute_dtype = job_.graph->compute_dtype;
    plan.planner = "planner/ilp";
    return plan;
  }

 private:
  Job job_;
  PlanningSizes sizes_;
  Bytes memory_;
};

void add_stage(const Graph& graph, size_t first, size_t end, int data, int tensor, Plan& plan) {
  PlanStage stage;
  stage.name = fmt::format("s{}", plan.stages.size());
  for (size_t l = first; l < end; ++l) stage.layers.push_back(graph.layers()[l]);
  stage.mesh.axes = {{Axis::kData, data}, {Axis::kTensor, tensor}};
  const int slots = plan.num_slots();
  for (int i = 0; i < data * tensor; ++i) stage.slots.emplace_back(slots + i);
  stage.zero = 1;
  plan.sequence_parallel = plan.sequence_parallel || tensor > 1;
  plan.stages.push_back(std::move(stage));
}

bool is_better(const CostedPlan& a, const CostedPlan& b) {
  if (a.has_plan() != b.has_plan()) return a.has_plan();
  if (a.fits != b.fits) return a.fits;
  return a.fits ? a.seconds < b.seconds : a.peak < b.peak;
}

/// The published stages; `data`: replicas of every stage. Nothing where that is not whole.
std::optional<Plan> published_plan(const AlpaMember& member, const Workbench& bench, int data) {
  const int64_t at_once = member.batch / member.plan.microbatches;
  if (at_once % data != 0) return std::nullopt;
  Plan plan = bench.frame(data, at_once / data);
  size_t first = 0;
  for (size_t s = 0; s < member.plan.stages.size(); ++s) {
    const AlpaStage& stage = member.plan.stages[s];
    if (stage.devices % data != 0) return std::nullopt;
    const bool is_last = s + 1 == member.plan.stages.size();
    const size_t end = is_last ? bench.graph().layers().size() : first + static_cast<size_t>(stage.layers + (s == 0));
    add_stage(bench.graph(), first, end, data, stage.devices / data, plan);
    first = end;
  }
  return plan;
}

/// Degrees that occur as replicas in the published plan, and none.
std::set<int> published_replicas(const AlpaPlan& plan) {
  std::set<int> degrees = {1};
  for (const AlpaStage& stage : plan.stages) degrees.insert(stage.data);
  return degrees;
}

}  // namespace

std::string CostedPlan::summary() const {
  if (!has_plan()) return "none";
  return fmt::format("{}, {} x {}", plan_summary(plan), plan.num_microbatches, plan.microbatch);
}

Result<CostedPlan> planned(const AlpaMember& member, const std::string& planner,
                           const std::vector<std::string>& overrides) {
  CostedPlan costed;
  costed.planner = planner;
  ALTIPLANO_ASSIGN(JobConfig config, alpa_job(member, planner, overrides));
  JobRequest request;
  request.num_ranks = member.gpus;
  request.is_only_shown = true;
  request.only_first_of_stage = true;
  auto job = prepare_job(std::move(config), request);
  if (job.status().code() == StatusCode::kInfeasible) {
    costed.refusal = job.status().message();
    return costed;
  }
  ALTIPLANO_RETURN_IF_ERROR(job.status());
  ALTIPLANO_ASSIGN(const Bytes memory, memory_limit(job->config.options, job->cluster, member.gpus));
  ALTIPLANO_RETURN_IF_ERROR(cost(*job, memory, costed));
  return costed;
}

Result<CostedPlan> published(const AlpaMember& member) {
  CostedPlan best;
  best.planner = "published";
  best.refusal = "no plan was published";
  if (member.plan.stages.empty() || member.plan.microbatches == 0) return best;
  best.refusal = "plans cannot say it";
  ALTIPLANO_ASSIGN(Workbench bench, Workbench::open(member, {}));
  for (bool all : {false, true}) {
    ALTIPLANO_RETURN_IF_ERROR(bench.recompute(all));
    for (int data : published_replicas(member.plan)) {
      auto plan = published_plan(member, bench, data);
      if (!plan) continue;
      ALTIPLANO_ASSIGN(CostedPlan costed, bench.cost_of(std::move(*plan), "published"));
      if (is_better(costed, best) || !best.has_plan()) best = std::move(costed);
    }
  }
  return best;
}

namespace {

/// Walks all divisions of layers and ranks into stages.
class AllPlans {
 public:
  AllPlans(const AlpaMember& member, Workbench& bench) : member_(member), bench_(bench) {}

  Result<Exhaustive> run() {
    found_.best.refusal = "nothing fits";
    for (int data = 1; data <= member_.gpus; ++data) {
      if (member_.gpus % data != 0 || member_.batch % data != 0) continue;
      for (int64_t microbatch = 1; microbatch <= member_.batch / data; ++microbatch)
        if (member_.batch / data % microbatch == 0)
          ALTIPLANO_RETURN_IF_ERROR(extend(bench_.frame(data, microbatch), data, 0, member_.gpus / data));
    }
    return std::move(found_);
  }

 private:
  /// Adds a stage of every kind to `plan`, whose stages have the layers before `first`.
  Status extend(const Plan& plan, int data, size_t first, int devices) {
    const size_t layers = bench_.graph().layers().size();
    if (first == layers && devices == 0) return take(plan);
    if (first == layers || devices == 0) return Status::ok();
    for (int tensor = 1; tensor <= devices; ++tensor) {
      if (member_.gpus / data % tensor != 0) continue;
      for (size_t end = first + 1; end <= layers; ++end) {
        Plan longer = plan;
        add_stage(bench_.graph(), first, end, data, tensor, longer);
        ALTIPLANO_RETURN_IF_ERROR(extend(longer, data, end, devices - tensor));
      }
    }
    return Status::ok();
  }

  Status take(const Plan& plan) {
    ALTIPLANO_ASSIGN(CostedPlan costed, bench_.cost_of(plan, "all"));
    ++found_.num_plans;
    found_.num_fit += costed.fits;
    if (costed.fits && is_better(costed, found_.best)) found_.best = std::move(costed);
    return Status::ok();
  }

  const AlpaMember& member_;
  Workbench& bench_;
  Exhaustive found_;
};

}  // namespace

Result<Exhaustive> search_all(const AlpaMember& member, const std::vector<std::string>& overrides) {
  ALTIPLANO_ASSIGN(Workbench bench, Workbench::open(member, overrides));
  return AllPlans(member, bench).run();
}

namespace {

/// `model`: what of it is changed. Nothing is given up for memory that search_all does not try: no recomputation, and
/// the ZeRO stage that is the default.
ReducedCase reduced(const std::string& name, int gpus, int64_t batch, const std::vector<std::string>& model,
                    const std::string& memory = "") {
  const auto found = std::ranges::find_if(alpa_suite(), [&](const AlpaMember& m) { return m.name() == name; });
  ALTIPLANO_ASSERT(found != alpa_suite().end(), "no member {}", name);
  ReducedCase reduced{*found, {"parallel.recompute=none", "parallel.zero_stage=1"}, {}};
  reduced.member.gpus = gpus;
  reduced.member.batch = batch;
  std::vector<std::string> words;
  for (const std::string& change : model) {
    reduced.overrides.push_back("model." + change);
    words.push_back(change);
  }
  if (!memory.empty()) reduced.overrides.push_back("memory.per_rank=" + memory);
  reduced.name = fmt::format("{}, {}, batch {}, {} GPUs{}", name, join(words, ", "), batch, gpus,
                             memory.empty() ? "" : ", " + memory);
  return reduced;
}

}  // namespace

std::vector<ReducedCase> reduced_suite() {
  const std::vector<std::string> two = {"num_hidden_layers=2"}, three = {"num_hidden_layers=3"};
  const std::vector<std::string> images = {"depths=[1,1]", "batch_norm_samples=8"};
  const std::vector<std::string> more_images = {"depths=[2,1]", "batch_norm_samples=16"};
  std::vector<ReducedCase> cases;
  for (const char* name : {"GPT 0.35B", "GPT 1.3B", "GPT 6.7B"}) {
    cases.push_back(reduced(name, 2, 8, two));
    cases.push_back(reduced(name, 4, 8, two));
    cases.push_back(reduced(name, 4, 16, three));
  }
  cases.push_back(reduced("GPT 0.35B", 4, 8, two, "1.5 GB"));
  cases.push_back(reduced("GPT 1.3B", 4, 8, two, "3 GB"));
  cases.push_back(reduced("GPT 6.7B", 4, 8, two, "8 GB"));
  for (const char* name : {"MoE 380M", "MoE 2.4B"}) {
    cases.push_back(reduced(name, 2, 8, two));
    cases.push_back(reduced(name, 4, 8, two));
  }
  cases.push_back(reduced("MoE 380M", 4, 16, three));
  for (const char* name : {"Wide-ResNet 250M", "Wide-ResNet 1B"}) {
    cases.push_back(reduced(name, 2, 16, images));
    cases.push_back(reduced(name, 4, 16, images));
    cases.push_back(reduced(name, 4, 32, more_images));
  }
  return cases;
}

std::optional<Comparison> compare(const CostedPlan& plan, const std::vector<CostedPlan>& baselines) {
  const CostedPlan* best = nullptr;
  for (const CostedPlan& baseline : baselines)
    if (baseline.has_plan() && baseline.fits && (best == nullptr || baseline.seconds < best->seconds)) best = &baseline;
  if (best == nullptr) return std::nullopt;
  if (!plan.has_plan() || !plan.fits) return Comparison{best->planner, 1e9};
  return Comparison{best->planner, plan.seconds / best->seconds - 1};
}

}  // namespace altiplano::test
