// Planners: every plan is legal, can be lowered, is proved and fits; everything else is a refusal; equal requests give
// equal plans.
#include <algorithm>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/cluster/presets.hpp"
#include "framework/config/job_config.hpp"
#include "framework/conformance/check.hpp"
#include "framework/graph/builder.hpp"
#include "framework/plugin/registry.hpp"
#include "framework/program/lowering.hpp"
#include "framework/simulate/fit.hpp"
#include "framework/simulate/plan_estimate.hpp"

namespace altiplano::conformance {
namespace {

constexpr int64_t kGraphBatch = 24, kGraphSequence = 8, kHidden = 24, kWide = 48, kVocabulary = 96;
constexpr int kBlocks = 6;
constexpr Bytes kPlenty(int64_t{1} << 30);

/// A stack of equal blocks between an embedding and a head: enough to split along every axis.
Result<TrainingGraph> make_stack() {
  GraphBuilder b("stack");
  const Initializer normal{Initializer::Kind::kNormal, 0, 0.02};
  b.layer("embedding");
  const ValueId tokens = b.input("tokens", {kGraphBatch, kGraphSequence}, DType::kI32);
  ValueId x = b.embedding("embedding", b.parameter("embedding.weight", {kVocabulary, kHidden}, normal), tokens);
  for (int i = 0; i < kBlocks; ++i) {
    const std::string name = fmt::format("block.{}", i);
    b.layer(name);
    const ValueId up = b.parameter(name + ".up.weight", {kHidden, kWide}, normal);
    const ValueId down = b.parameter(name + ".down.weight", {kWide, kHidden}, normal);
    const ValueId wide = b.gelu(name + ".gelu", b.matmul(name + ".up", "[b,s,d] [d,f] -> [b,s,f]", x, up));
    x = b.add(name + ".residual", x, b.matmul(name + ".down", "[b,s,f] [f,d] -> [b,s,d]", wide, down));
  }
  b.layer("head");
  const ValueId labels = b.input("labels", {kGraphBatch, kGraphSequence}, DType::kI32);
  const ValueId weight = b.parameter("head.weight", {kVocabulary, kHidden}, normal);
  const ValueId logits = b.matmul("head", "[b,s,d] [v,d] -> [b,s,v]", x, weight);
  const auto [loss, count] = b.cross_entropy("loss", logits, labels);
  ALTIPLANO_ASSIGN(ModelGraph model, b.finish({tokens, labels}, loss, count, logits));
  return make_training_graph(std::move(model), DType::kF32, {}, 7);
}

/// What the host hands to planners, over the stack.
struct Bench {
  TrainingGraph graph;
  Cluster cluster;
  PlannerServices services;

  static Result<std::unique_ptr<Bench>> make() {
    auto bench = std::make_unique<Bench>();
    ALTIPLANO_ASSIGN(bench->graph, make_stack());
    ALTIPLANO_ASSIGN(bench->cluster, load_cluster("this-machine"));
    Bench* self = bench.get();
    self->services.schedule = [](const std::string& name) { return PluginRegistry::instance().schedule(name); };
    self->services.estimate = [self](const Plan& plan) -> Result<PlanEstimate> {
      ALTIPLANO_ASSIGN(const Timetable timetable, self->timetable_of(plan));
      return estimate_plan(self->graph, plan, self->cluster.resized(plan.num_slots()), timetable);
    };
    self->services.preview = self->services.estimate;
    return bench;
  }

  Result<Timetable> timetable_of(const Plan& plan) const {
    ALTIPLANO_ASSIGN(const Schedule* schedule, services.schedule(plan.schedule));
    ScheduleRequest request;
    request.num_stages = static_cast<int>(plan.stages.size());
    request.num_microbatches = plan.num_microbatches;
    request.chunks_per_worker = plan.chunks;
    return schedule->build(request);
  }
};

using Settings = std::vector<std::pair<std::string, int64_t>>;

std::string text_of(int ranks, const Settings& settings) {
  std::string text = counted(ranks, "rank");
  for (const auto& [key, value] : settings) text += fmt::format(", {} {}", key, value);
  return text;
}

Result<PlanRequest> request_of(const Bench& bench, int ranks, const Settings& settings, Bytes memory) {
  Options options(job_option_records());
  for (const auto& [key, value] : settings) ALTIPLANO_RETURN_IF_ERROR(options.set("parallel." + key, value, {}));
  PlanRequest request;
  request.graph = &bench.graph;
  request.services = &bench.services;
  request.options = options.section("parallel");
  request.num_ranks = ranks;
  request.global_batch = kGraphBatch;
  request.memory_per_rank = memory;
  return request;
}

/// Both halves; where the planner has only one, the other is the framework's own rule of degrees.
Result<Plan> plan_with(const Planner& planner, const PlanRequest& request) {
  Plan plan;
  if (planner.stages() != nullptr) {
    ALTIPLANO_ASSIGN(plan, planner.stages()->plan_stages(request));
  } else {
    DegreePlanOptions options = degree_options(request, "conformance");
    options.degrees.data = request.num_ranks;
    options.microbatch = 1;
    ALTIPLANO_ASSIGN(plan, plan_from_degrees(*request.graph, *request.cluster, options));
  }
  if (planner.sharding() != nullptr) {
    ALTIPLANO_RETURN_IF_ERROR(planner.sharding()->plan_sharding(request, plan));
  } else {
    ALTIPLANO_RETURN_IF_ERROR(add_degree_sharding(request, plan));
  }
  return plan;
}

Status prove(const Bench& bench, const Plan& plan, int ranks, Bytes memory) {
  if (plan.num_slots() != ranks) return broken("the plan has {}", counted(plan.num_slots(), "slot"));
  ALTIPLANO_RETURN_IF_ERROR(verify_plan(plan, bench.graph));
  auto parsed = Plan::from_yaml(plan.to_yaml(), "plan.yaml");
  if (!parsed.is_ok() || parsed->to_yaml() != plan.to_yaml())
    return broken("the plan's text does not parse back:\n{}", plan.to_yaml());
  ALTIPLANO_ASSIGN(const Timetable timetable, bench.timetable_of(plan));
  ALTIPLANO_RETURN_IF_ERROR(verify_timetable(timetable));
  ALTIPLANO_ASSIGN(const auto programs, lower(bench.graph, plan, timetable, Binding::identity(ranks)));
  ALTIPLANO_RETURN_IF_ERROR(verify_programs(programs));
  for (const Program& program : programs)
    if (program.peak() > memory)
      return broken("rank {} needs {}, the limit is {}", program.rank, to_string(program.peak()), to_string(memory));
  return Status::ok();
}

std::vector<Settings> settings_for(int ranks) {
  std::vector<Settings> all = {{}};
  for (int64_t tensor : {1, 2})
    for (int64_t pipeline : {1, 2, 4})
      if (ranks % (tensor * pipeline) == 0)
        all.push_back({{"tensor_parallel_size", tensor}, {"pipeline_parallel_size", pipeline}});
  all.push_back({{"data_parallel_size", ranks}});
  all.push_back({{"tensor_parallel_size", 5}});
  return all;
}

/// Calls body(bench, request, text) for every number of ranks x settings.
template <typename Body>
Status for_every_request(std::initializer_list<int> rank_counts, Bytes memory, Body body) {
  ALTIPLANO_ASSIGN(const auto bench, Bench::make());
  for (int ranks : rank_counts)
    for (const Settings& settings : settings_for(ranks)) {
      const Cluster cluster = bench->cluster.resized(ranks);
      ALTIPLANO_ASSIGN(PlanRequest request, request_of(*bench, ranks, settings, memory));
      request.cluster = &cluster;
      ALTIPLANO_RETURN_IF_ERROR(body(*bench, request).with_context("for " + text_of(ranks, settings)));
    }
  return Status::ok();
}

Finding check_halves(Planner& planner) {
  if (planner.stages() == nullptr && planner.sharding() == nullptr)
    return broken("it plans neither stages nor sharding");
  if (planner.stages() == nullptr) return "sharding only";
  return planner.sharding() == nullptr ? "stages only" : "stages and sharding";
}

Finding check_plans(Planner& planner) {
  int num_plans = 0, num_refused = 0;
  ALTIPLANO_RETURN_IF_ERROR(
      for_every_request({1, 2, 3, 4, 8}, kPlenty, [&](const Bench& bench, const PlanRequest& request) -> Status {
        auto plan = plan_with(planner, request);
        ++(plan.is_ok() ? num_plans : num_refused);
        if (plan.is_ok()) return prove(bench, *plan, request.num_ranks, kPlenty);
        return plan.status().message().empty() ? broken("a refusal without a word") : Status::ok();
      }));
  if (num_plans == 0) return broken("it refuses every number of ranks from 1 to 8");
  return fmt::format("{} plans proved, {} refused", num_plans, num_refused);
}

Finding check_repeats(Planner& planner) {
  int num_equal = 0;
  ALTIPLANO_RETURN_IF_ERROR(for_every_request({1, 4}, kPlenty, [&](const Bench&, const PlanRequest& request) -> Status {
    auto first = plan_with(planner, request), second = plan_with(planner, request);
    if (first.is_ok() != second.is_ok()) return broken("planned once and refused once");
    if (first.is_ok() && first->to_yaml() != second->to_yaml())
      return broken("two plans for one request:\n{}and\n{}", first->to_yaml(), second->to_yaml());
    ++num_equal;
    return Status::ok();
  }));
  return fmt::format("{} requests asked twice", num_equal);
}

/// From far too little to enough: never a plan above the limit, and infeasible is said as such.
Finding check_memory(Planner& planner) {
  int num_plans = 0, num_infeasible = 0;
  for (int64_t kib : {1, 256, 1024}) {
    const Bytes memory(kib << 10);
    ALTIPLANO_RETURN_IF_ERROR(
        for_every_request({1, 4}, memory, [&](const Bench& bench, const PlanRequest& request) -> Status {
          auto plan = plan_with(planner, request);
          if (plan.is_ok()) return ++num_plans, prove(bench, *plan, request.num_ranks, memory);
          num_infeasible += plan.status().code() == StatusCode::kInfeasible;
          return Status::ok();
        }).with_context(fmt::format("with {} per rank", to_string(memory))));
  }
  if (num_infeasible == 0) return broken("1 KiB per rank is not refused as infeasible");
  return fmt::format("{} plans fit, {} infeasible", num_plans, num_infeasible);
}

}  // namespace

std::vector<Check> planner_checks() {
  std::vector<Check> checks = {
      check_of<Planner>("it plans stages, sharding or both", check_halves),
      check_of<Planner>("every plan is legal, lowered, proved free of deadlock, or refused", check_plans),
      check_of<Planner>("equal requests give equal plans", check_repeats),
      check_of<Planner>("no plan needs more memory than there is", check_memory),
  };
  checks.back().not_owed = [](const Subject& subject) -> std::string {
    return subject.as<Planner>().stages() == nullptr ? "it plans no stages" : "";
  };
  return checks;
}

}  // namespace altiplano::conformance
