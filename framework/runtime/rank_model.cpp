#include "framework/runtime/rank_model.hpp"

#include "framework/base/console.hpp"
#include "framework/config/job_values.hpp"
#include "framework/launch/task_ranks.hpp"
#include "framework/plugin/registry.hpp"
#include "framework/program/lowering.hpp"
#include "framework/runtime/comm_choice.hpp"
#include "framework/runtime/rank_state.hpp"

namespace altiplano {

Result<std::unique_ptr<RankModel>> RankModel::open(const Job& job, const RankEnvironment& environment,
                                                   Rendezvous& rendezvous, bool fetch_logits) {
  std::unique_ptr<RankModel> model(new RankModel(job));
  Status status = model->prepare(environment, rendezvous, fetch_logits);
  if (status.is_ok()) return model;
  model->abort(status);
  return status;
}

/// A program that the job has not: with logits at its end.
Status RankModel::lower_again(const RankEnvironment& environment) {
  LoweringOptions lowering = device_->lowering();
  lowering.fetch_logits = true;
  ALTIPLANO_ASSIGN(auto programs, lower(*job_.graph, job_.plan, job_.timetable, job_.binding, lowering));
  ALTIPLANO_RETURN_IF_ERROR(verify_programs(programs));
  program_ = std::move(programs[environment.rank.index()]);
  return Status::ok();
}

Status RankModel::prepare(const RankEnvironment& environment, Rendezvous& rendezvous, bool fetch_logits) {
  auto& registry = PluginRegistry::instance();
  const Options& options = job_.config.options;
  device_ = job_.device;
  if (fetch_logits) {
    ALTIPLANO_RETURN_IF_ERROR(lower_again(environment));
  } else {
    if (!job_.is_proved) ALTIPLANO_RETURN_IF_ERROR(verify_programs(job_.programs));
    program_ = job_.programs[job_.programs.size() == 1 ? 0 : environment.rank.index()];
  }

  ALTIPLANO_ASSIGN(comm_name_, choose_comm_backend(options, {environment.world_size, num_hosts(environment.hosts)}));
  ALTIPLANO_ASSIGN(CommBackend * comm, registry.comm(comm_name_));
  ALTIPLANO_ASSIGN(communicator_, comm->connect(rendezvous, job_comm_options(options)));
  ALTIPLANO_ASSIGN(executor_, Executor::create(program_, device_->device(), *communicator_, device_->kernels()));
  return Status::ok();
}

Status RankModel::load(const Checkpoint& checkpoint) {
  const Options& options = job_.config.options;
  ALTIPLANO_RETURN_IF_ERROR(
      check_architecture(checkpoint.manifest().info, model_fingerprint(options), model_architecture(options)));
  return restore_parameters(*executor_, checkpoint).with_context("while reading " + checkpoint.path());
}

void RankModel::abort(const Status& status) {
  if (communicator_) communicator_->abort(status.to_string());
}

Status plan_for_one_rank(JobConfig& config) {
  for (const char* key :
       {"parallel.data_parallel_size", "parallel.tensor_parallel_size", "parallel.pipeline_parallel_size"})
    ALTIPLANO_RETURN_IF_ERROR(config.options.set(key, int64_t{1}, {}));
  return config.options.set("parallel.pipeline.split", std::vector<int64_t>{}, {});
}

Result<Checkpoint> find_model_checkpoint(const Options& options, const std::string& path) {
  ALTIPLANO_ASSIGN(FoundCheckpoint found, find_checkpoint(options.get_string("checkpoint.dir"),
                                                          path.empty() ? "must" : path, CheckLevel::kChecksums));
  for (const SkippedCheckpoint& skipped : found.skipped)
    print_err("note: checkpoint {} skipped: {}\n", skipped.path, skipped.reason);
  return std::move(*found.checkpoint);
}

}  // namespace altiplano
