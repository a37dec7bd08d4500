#include "framework/runtime/job.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/config/job_values.hpp"
#include "framework/plan/degrees.hpp"
#include "framework/plugin/registry.hpp"
#include "framework/runtime/batch_input.hpp"
#include "framework/runtime/job_cluster.hpp"
#include "framework/runtime/job_graph.hpp"
#include "framework/runtime/job_plan.hpp"
#include "framework/runtime/memory_saving.hpp"
#include "framework/runtime/plan_cache.hpp"
#include "framework/simulate/plan_estimate.hpp"
#include "framework/storage/atomic_file.hpp"
#include "framework/storage/file_kind.hpp"
#include "framework/storage/input_file.hpp"

namespace altiplano {

namespace {

int64_t given(const Options& options, const char* key) {
  return options.has(key) ? options.get_int(key) : 0;
}

}  // namespace

Result<Timetable> build_timetable(const Plan& plan) {
  auto found = PluginRegistry::instance().schedule(plan.schedule);
  if (!found.is_ok()) {
    if (plan.file.empty()) return found.status();
    return invalid_argument("{}{}", plan.where("schedule.kind"), found.status().message());
  }
  const Schedule* schedule = *found;
  ScheduleRequest request;
  request.num_stages = static_cast<int>(plan.stages.size());
  request.num_microbatches = plan.num_microbatches;
  request.chunks_per_worker = plan.chunks;
  ALTIPLANO_ASSIGN(Timetable timetable, schedule->build(request));
  ALTIPLANO_RETURN_IF_ERROR(verify_timetable(timetable));
  return timetable;
}

namespace {

/// A plan is portable, so another cluster is no mistake; but it was chosen for that one.
void note_other_cluster(Job& job) {
  const Plan& plan = job.plan;
  if (plan.cluster_fingerprint == 0 || plan.cluster_fingerprint == job.cluster.fingerprint()) return;
  job.notices.push_back(fmt::format(
      "{}the plan was made for {} ({:016x}), the job's cluster is {} ({:016x}); it is run as it stands, its "
      "predictions are made anew",
      plan.where("cluster.fingerprint"), plan.cluster_shape, plan.cluster_fingerprint, job.cluster.shape_text(),
      job.cluster.fingerprint()));
}

/// Layers that ride along at the ends are not counted in a split.
bool is_split_so(const Plan& plan, const std::vector<int64_t>& split) {
  if (split.size() != plan.stages.size()) return false;
  for (size_t s = 0; s < split.size(); ++s) {
    const auto layers = static_cast<int64_t>(plan.stages[s].layers.size());
    const bool is_end = s == 0 || s + 1 == split.size();
    if (is_end ? layers < split[s] : layers != split[s]) return false;
  }
  return true;
}

bool has_spec(const Plan& plan, const std::string& pattern, const std::string& spec) {
  return std::ranges::any_of(plan.sharding, [&](const auto& entry) {
    const auto asked = ShardingSpec::parse(spec);
    return entry.first == pattern && asked.is_ok() && entry.second.to_string() == asked->to_string();
  });
}

/// What the plan says is the plan's to say: keys of the job file that say otherwise have no effect.
void note_overridden(Job& job) {
  const Options& options = job.config.options;
  const Plan& plan = job.plan;
  const PlanStage& stage = plan.stages[0];
  std::vector<std::string> keys;
  auto compare = [&](const char* key, auto given, auto in_plan) {
    if (options.is_set(key) && given != in_plan)
      keys.push_back(fmt::format("{} {} (the plan has {})", options.where(key), given, in_plan));
  };
  auto compare_count = [&](const char* key, int64_t in_plan) {
    if (options.has(key)) compare(key, options.get_int(key), in_plan);
  };
  compare_count("parallel.data_parallel_size", stage.mesh.degree(Axis::kData));
  compare_count("parallel.tensor_parallel_size", stage.mesh.degree(Axis::kTensor));
  compare_count("parallel.pipeline_parallel_size", static_cast<int64_t>(plan.stages.size()));
  if (stage.mesh.degree(Axis::kData) > 1) compare_count("parallel.zero_stage", stage.zero);
  if (stage.mesh.degree(Axis::kTensor) > 1)
    compare("parallel.sequence_parallel", options.get_bool("parallel.sequence_parallel"), plan.sequence_parallel);
  if (const std::string schedule = options.get_string("parallel.schedule"); schedule != "auto")
    compare("parallel.schedule", schedule, plan.schedule);
  if (options.is_set("parallel.recompute") && options.get_string("parallel.recompute") != "auto")
    compare("parallel.recompute", wanted_recompute(options).empty(),
            std::ranges::all_of(plan.stages, [](const PlanStage& s) { return s.recompute.empty(); }));
  compare_count("train.micro_batch_size", plan.microbatch);
  compare_count("train.gradient_accumulation_steps", plan.num_microbatches);
  if (const char* key = "parallel.pipeline.split"; options.has(key) && !is_split_so(plan, options.get_ints(key)))
    keys.push_back(options.where(key));
  for (size_t i = 0; const auto& [pattern, spec] : options.get_map("parallel.sharding")) {
    const std::string where = options.where("parallel.sharding", i++, pattern);
    if (!has_spec(plan, pattern, spec)) keys.push_back(where);
  }
  if (keys.empty()) return;
  job.notices.push_back(fmt::format("--plan {} is run as it stands; without effect: {}", plan.file, join(keys, ", ")));
}

/// How many ranks a plan wants, when its stages agree with themselves; else verify_plan() says what is wrong with them.
Status check_given_plan_size(const Plan& plan, int num_ranks) {
  const int slots = plan.num_slots();
  const bool agrees = std::ranges::all_of(plan.stages, [](const PlanStage& stage) {
    return stage.mesh.num_devices() == static_cast<int>(stage.slots.size());
  });
  if (slots == num_ranks || !agrees) return Status::ok();
  return invalid_argument("{}the plan has {}, the job {}; start it with -n {} (`altiplano launch -n {}` trains)",
                          plan.where("stages"), counted(slots, "slot"), counted(num_ranks, "rank"), slots, slots);
}

/// Planners look at the memory themselves; a plan from a file has not met this job's limit yet.
Status check_given_plan_fits(const Job& job) {
  ALTIPLANO_ASSIGN(const Bytes limit, memory_limit(job.config.options, job.cluster, job.ranks_of_a_host));
  for (size_t s = 0; s < job.plan.stages.size(); ++s) {
    const Bytes peak = job.estimate.prediction.peak_memory[s];
    if (peak > limit)
      return infeasible("{}stage {} needs {} on a rank, which has {}; make the plan anew without --plan",
                        job.plan.where(fmt::format("stages[{}]", s)), job.plan.stages[s].name, to_string(peak),
                        to_string(limit));
  }
  return Status::ok();
}

}  // namespace

Result<BatchSizes> job_batch(const Options& options, int num_ranks) {
  int64_t data = given(options, "parallel.data_parallel_size");
  if (data == 0) {
    int64_t others = std::max<int64_t>(1, given(options, "parallel.tensor_parallel_size")) *
                     std::max<int64_t>(1, given(options, "parallel.pipeline_parallel_size"));
    // Only a job file that leaves the global batch open needs the replicas here; the planner gives them otherwise.
    data = num_ranks % others == 0 ? num_ranks / others : 1;
    bool is_fixed = options.has("parallel.tensor_parallel_size") && options.has("parallel.pipeline_parallel_size");
    if (options.has("train.global_batch_size") && !is_fixed) {
      return BatchSizes{options.get_int("train.global_batch_size"), given(options, "train.micro_batch_size"),
                        given(options, "train.gradient_accumulation_steps")};
    }
  }
  return resolve_batch(options, data);
}

namespace {

/// A refusal that starts with a key starts with the key's place in the job file.
Status with_place(const Options& options, const Status& status) {
  const std::string& message = status.message();
  const size_t colon = message.find(": ");
  if (status.code() != StatusCode::kInvalidArgument || colon == std::string::npos) return status;
  const std::string key = message.substr(0, colon);
  if (options.find_record(key) == nullptr) return status;
  return {status.code(), options.where(key) + status.to_string().substr(colon)};
}

/// Plugins that the job names are looked for first of all.
Status check_plugins(const Options& options) {
  auto& registry = PluginRegistry::instance();
  auto check = [&](const char* key, const Status& found) {
    if (found.is_ok()) return found;
    return Status(found.code(), fmt::format("{}: {}", options.where(key), found.message()));
  };
  auto named = [&](const char* key) { return options.get_string(key); };
  for (const char* key : {"parallel.planner.stages", "parallel.planner.sharding"})
    ALTIPLANO_RETURN_IF_ERROR(check(key, registry.planner(named(key)).status()));
  if (named("parallel.schedule") != "auto")
    ALTIPLANO_RETURN_IF_ERROR(check("parallel.schedule", registry.schedule(named("parallel.schedule")).status()));
  if (named("comm.backend") != "auto")
    ALTIPLANO_RETURN_IF_ERROR(check("comm.backend", registry.comm(named("comm.backend")).status()));
  return check("device.kind", registry.device(named("device.kind")).status());
}

/// A device that has no kernel for the job's model or precision: what the user chose is one of the two.
Status with_choice(const Options& options, const Status& status) {
  const std::string& message = status.message();
  const bool is_of_kind = message.find(kNoKernelForKind) != std::string::npos;
  if (!message.starts_with("device/") || (!is_of_kind && message.find(" has no kernel ") == std::string::npos))
    return status;
  const char* key = is_of_kind ? "model.kind" : "train.precision";
  return invalid_argument("{}: {}: {}", options.where(key), options.get_string(key), message);
}

void note_missing_kernel(Job& job) {
  const std::string& missing = job.device->missing_kernel();
  if (missing.empty()) return;
  job.notices.push_back(
      fmt::format("{}: {}; such ops are planned without scratch memory, and the job cannot be trained there",
                  job.config.options.where("device.kind"), missing));
}

/// The device multiplies this type in a wider one: what was chosen for speed is slower here.
void note_slow_precision(Job& job) {
  const std::vector<DType>& widened = job.device->device().info().widened;
  if (std::ranges::find(widened, job.graph->compute_dtype) == widened.end()) return;
  job.notices.push_back(
      fmt::format("{}: {}: {} has no such products and computes them in a wider type; that saves memory, no time",
                  job.config.options.where("train.precision"), job.config.options.get_string("train.precision"),
                  job.device->device().info().name));
}

/// Of a launched rank: the launcher has planned, proved and estimated.
Status take_proved_plan(Job& job, const JobRequest& request) {
  job.plan_was_given = !request.plan_file.empty();
  job.binding = request.proved->binding;
  if (job.binding.rank_of_slot.empty()) job.binding = Binding::identity(job.plan.num_slots());
  ALTIPLANO_RETURN_IF_ERROR(verify_plan(job.plan, *job.graph));
  ALTIPLANO_ASSIGN(job.timetable, build_timetable(job.plan));
  job.device->kernels().choose(job.plan.kernels);
  ALTIPLANO_ASSIGN(Program program, lower_rank(*job.graph, job.plan, job.timetable, job.binding, request.proved->rank,
                                               job.device->lowering()));
  ALTIPLANO_RETURN_IF_ERROR(verify_program(program));
  job.programs.push_back(std::move(program));
  job.is_proved = true;
  return Status::ok();
}

/// Lowers the plan, and says what it needs.
Status lower_plan(Job& job, bool only_first_of_stage, LastLowered last) {
  ALTIPLANO_RETURN_IF_ERROR(verify_plan(job.plan, *job.graph));
  ALTIPLANO_ASSIGN(job.timetable, build_timetable(job.plan));
  job.binding = Binding::identity(job.plan.num_slots());
  LoweringOptions options = job.device->lowering();
  options.only_first_of_stage = only_first_of_stage;
  if (last.plan == plan_itself(job.plan) && last.only_first_of_stage == only_first_of_stage) {
    job.programs = std::move(last.programs);
  } else {
    ALTIPLANO_ASSIGN(job.programs, lower(*job.graph, job.plan, job.timetable, job.binding, options));
  }
  ALTIPLANO_ASSIGN(job.estimate, estimate_programs(*job.graph, job.plan, job.cluster, job.timetable, job.programs));
  if (job.plan_was_given) ALTIPLANO_RETURN_IF_ERROR(check_given_plan_fits(job));
  job.plan.predicted = job.estimate.prediction;
  return Status::ok();
}

/// From the launcher or from a file, into job.plan; false: there is none.
Result<bool> read_given_plan(Job& job, const JobRequest& request) {
  if (!request.needs_plan || (!request.proved && request.plan_file.empty())) return false;
  std::string text;
  if (request.proved) {
    text = request.proved->text;
  } else {
    ALTIPLANO_RETURN_IF_ERROR(check_file_kind(request.plan_file, FileKind::kPlan));
    ALTIPLANO_ASSIGN(text, read_input_file(request.plan_file, kMostWrittenBytes));
    job.plan_was_given = true;
  }
  ALTIPLANO_ASSIGN(job.plan, Plan::from_yaml(text, request.plan_file));
  return true;
}

/// What a plan that is given recomputes.
std::optional<std::set<std::string>> recomputed_by(const Job& job, bool is_planned) {
  if (!is_planned) return std::nullopt;
  std::set<std::string> layers;
  for (const PlanStage& stage : job.plan.stages) layers.insert(stage.recompute.begin(), stage.recompute.end());
  return layers;
}

/// A plan that an equal job has found before, on the graph that recomputes what it says.
Result<bool> take_cached_plan(Job& job, const PlanningSizes& sizes, const PlanCache& cache) {
  std::optional<CachedPlan> found = cache.find();
  if (!found) return false;
  job.plan = std::move(found->plan);
  if (const auto recomputed = recomputed_by(job, true); *recomputed != job.graph->recomputed) {
    ALTIPLANO_ASSIGN(*job.graph, build_job_graph(job.config.options, sizes.batch.global, sizes.sequence, recomputed));
  }
  job.notices.push_back(fmt::format("the plan is one that was found before for an equal job: {}", found->file));
  return true;
}

Status find_plan(Job& job, const PlanningSizes& sizes, const JobRequest& request, LastLowered& last) {
  const PlanCache cache(job, sizes, plan_cache_folder());
  if (request.takes_cached_plan) {
    ALTIPLANO_ASSIGN(const bool is_found, take_cached_plan(job, sizes, cache));
    if (is_found) return Status::ok();
  }
  const auto start = std::chrono::steady_clock::now();
  ALTIPLANO_RETURN_IF_ERROR(plan_within_memory(job, sizes, last));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (took.count() >= PlanCache::kWorthKeeping) cache.keep(job.plan);
  return Status::ok();
}

Result<Job> prepare(JobConfig config, const JobRequest& request) {
  Job job;
  job.config = std::move(config);
  job.num_ranks = request.num_ranks;
  job.ranks_of_a_host = most_ranks_of_a_host(request.places, request.num_ranks);
  const Options& options = job.config.options;
  ALTIPLANO_ASSIGN(auto ops, PluginRegistry::instance().ops());  // their kinds must be known before a model is built
  (void)ops;
  ALTIPLANO_RETURN_IF_ERROR(check_plugins(options));
  BatchSizes batch{request.batch.value_or(0), 0, 0};
  if (!request.batch) {
    ALTIPLANO_ASSIGN(batch, job_batch(options, request.num_ranks));
  }
  const int64_t sequence = request.sequence.value_or(options.get_int("train.seq_length"));
  ALTIPLANO_ASSIGN(const bool is_planned, read_given_plan(job, request));
  ALTIPLANO_ASSIGN(TrainingGraph graph,
                   build_job_graph(options, batch.global, sequence, recomputed_by(job, is_planned)));
  job.graph = std::make_unique<TrainingGraph>(std::move(graph));
  if (!request.is_only_shown && request.needs_plan) ALTIPLANO_RETURN_IF_ERROR(check_data_for(*job.graph));
  if (!request.needs_plan) {
    ALTIPLANO_RETURN_IF_ERROR(find_cluster(job, request));
    return job;
  }

  auto start = std::chrono::steady_clock::now();
  ALTIPLANO_ASSIGN(job.device, JobDevice::open(options, request.num_ranks, request.threads, job.graph->seed));
  if (request.is_only_shown) job.device->pass_over_missing_kernels();
  ALTIPLANO_RETURN_IF_ERROR(find_cluster(job, request));
  note_slow_precision(job);
  LastLowered last;
  if (request.proved) {
    ALTIPLANO_RETURN_IF_ERROR(take_proved_plan(job, request));
  } else if (!is_planned) {
    ALTIPLANO_RETURN_IF_ERROR(find_plan(job, {batch, sequence, request.only_first_of_stage}, request, last));
  } else {
    ALTIPLANO_RETURN_IF_ERROR(check_given_plan_size(job.plan, request.num_ranks));
    note_other_cluster(job);
    note_overridden(job);
  }
  if (!request.proved) ALTIPLANO_RETURN_IF_ERROR(lower_plan(job, request.only_first_of_stage, std::move(last)));
  note_missing_kernel(job);
  if (!is_planned && !request.proved) job.plan.cluster_figures = job.figures;
  job.planning_time = Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return job;
}

}  // namespace

Result<JobRequest> job_request_of(const RankEnvironment& environment, const std::string& plan_file) {
  JobRequest request;
  request.num_ranks = environment.world_size;
  request.threads = environment.threads;
  request.places = environment.places;
  request.plan_file = plan_file;
  request.takes_cached_plan = true;
  if (environment.plan.empty()) return request;
  auto text = read_file(environment.plan);
  if (!text) return runtime_failure("ALTIPLANO_PLAN: {}; is the launcher still running?", text.status().message());
  request.proved = ProvedPlan{std::move(text).value(), environment.rank};
  return request;
}

Result<Job> prepare_job(JobConfig config, const JobRequest& request) {
  const Options options = config.options;
  auto job = prepare(std::move(config), request);
  if (!job.is_ok()) return with_place(options, with_choice(options, job.status()));
  return job;
}

std::map<std::string, std::string> model_architecture(const Options& options) {
  std::map<std::string, std::string> fields = {{"kind", options.get_string("model.kind")}};
  Options model = options.section("model");
  for (const OptionRecord& record : model.records()) {
    bool shapes_nothing = record.key.find("pdrop") != std::string::npos || record.key == "initializer_range" ||
                          record.key == "frozen" || record.key == "kind";
    if (!shapes_nothing && model.has(record.key)) fields[record.key] = to_string(model.value(record.key));
  }
  return fields;
}

std::string model_fingerprint(const Options& options) {
  std::string text;
  for (const auto& [key, value] : model_architecture(options)) text += key + "=" + value + "\n";
  return fmt::format("{:016x}", fingerprint(text));
}

std::string plan_summary(const Plan& plan) {
  const MeshShape& mesh = plan.stages[0].mesh;
  std::vector<std::string> parts;
  if (plan.stages.size() > 1) parts.push_back(fmt::format("pipeline {}", plan.stages.size()));
  for (const auto& [axis, degree] : mesh.axes)
    if (degree > 1) parts.push_back(fmt::format("{} {}", to_string(axis), degree));
  std::string text = parts.empty() ? "one rank" : join(parts, " x ");
  if (plan.stages.size() > 1 || plan.num_microbatches > 1) text += ", " + plan.schedule;
  if (plan.stages[0].zero > 0) text += fmt::format(", ZeRO-{}", plan.stages[0].zero);
  if (plan.sequence_parallel) text += ", sequence parallel";
  if (const size_t layers = std::accumulate(plan.stages.begin(), plan.stages.end(), size_t{0},
                                            [](size_t n, const PlanStage& s) { return n + s.recompute.size(); }))
    text += fmt::format(", recomputing {}", counted(static_cast<int64_t>(layers), "layer"));
  return text;
}

int64_t num_parameters(const Graph& graph) {
  int64_t count = 0;
  for (const Parameter& p : graph.parameters()) count += num_elements(graph.value(p.value).shape);
  return count;
}

}  // namespace altiplano
