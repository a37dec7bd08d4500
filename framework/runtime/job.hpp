#pragma once
// From a job file to what a rank runs: model -> TrainingGraph -> Plan -> timetable -> programs. One way for every
// command (train, plan, validate, estimate), so that what is shown is what runs.
#include <memory>
#include <optional>
#include <string>

#include "framework/api/planner.hpp"
#include "framework/cluster/cluster.hpp"
#include "framework/config/job_config.hpp"
#include "framework/launch/rank_environment.hpp"
#include "framework/plan/plan.hpp"
#include "framework/program/lowering.hpp"
#include "framework/runtime/job_device.hpp"

namespace altiplano {

/// A plan that the planner had estimated on its way to the one it took.
struct ConsideredPlan {
  Plan plan;   ///< with the estimate as `predicted`
  Bytes peak;  ///< of the fullest rank
  bool fits = false;
  bool is_preview = false;  ///< of the first rank of every stage
};

struct Job {
  JobConfig config;
  int num_ranks = 1;
  int ranks_of_a_host = 1;  ///< of the fullest
  std::unique_ptr<TrainingGraph> graph;
  Cluster cluster;
  /// "measured on this machine 2026-12-01"; empty: as the preset or file that the job names has them.
  std::string figures;
  Plan plan;
  Binding binding;        ///< of the plan's slots to ranks
  std::string placement;  ///< what that saves, for the log; empty: all ranks share a host
  Timetable timetable;
  std::shared_ptr<JobDevice> device;            ///< with the kernels of the programs; null without a plan
  std::vector<Program> programs;                ///< of all ranks, by rank; of a launched rank its own alone
  bool is_proved = false;                       ///< by the launcher (verify_programs); else it is up to who runs them
  PlanEstimate estimate;                        ///< not of a launched rank
  std::vector<ConsideredPlan> considered = {};  ///< in the order in which they were asked about
  Seconds planning_time;
  bool plan_was_given = false;
  std::vector<std::string> notices = {};  ///< of planning, to print once; those of the job file are in config
};

/// A plan that a launcher has proved for all ranks; it is taken as it is by the rank `rank`, which lowers its own
/// program only.
struct ProvedPlan {
  std::string text;
  RankId rank;
  Binding binding = {};  ///< empty: ranks are on the slots of their number
};

struct JobRequest {
  int num_ranks = 1;
  int threads = 0;                         ///< of a rank, where device.threads is auto; 0: the device's own choice
  std::optional<ProvedPlan> proved = {};   ///< instead of planning
  std::string plan_file;                   ///< replay this plan; empty: plan
  std::optional<int64_t> batch, sequence;  ///< instead of the job file's (generation)
  bool needs_plan = true;
  /// The first rank of every stage speaks for all: `programs` holds those alone, memory is theirs. For what is only
  /// shown, of many ranks.
  bool only_first_of_stage = false;
  RankPlaces places = {};  ///< of the ranks; empty: they share one host
  /// Nothing of it will run here: ops that the device has no kernel for are planned without their scratch, with a
  /// notice.
  bool is_only_shown = false;
  bool takes_cached_plan = false;  ///< one that an equal job has found before (plan_cache.hpp), instead of planning
};

/// What a rank asks prepare_job for: its launcher's plan if there is one, else a plan of its own. Fails when the
/// launcher is gone.
Result<JobRequest> job_request_of(const RankEnvironment& environment, const std::string& plan_file);

/// Reads nothing but plugins, the cluster (for this-machine what the profile database has of it) and the plan file.
/// Refusals name key, numbers and valid alternatives; kInfeasible with the smallest change that fits.
Result<Job> prepare_job(JobConfig config, const JobRequest& request);

/// Samples per step, from the job file (any two of the three batch sizes); the data degree is taken from it or from the
/// ranks.
Result<BatchSizes> job_batch(const Options& options, int num_ranks);

/// What the job's ranks could also be divided into, whatever degrees the job file gives: plans by degrees and the rule
/// for the tensor axis, each with the largest microbatch that fits (the smallest where none does), estimated by the
/// first rank of every stage. At most `most` divisions, those that split the model least first.
std::vector<ConsideredPlan> plans_of_other_degrees(const Job& job, int most);

/// What the plan's schedule makes of its stages and microbatches, verified.
Result<Timetable> build_timetable(const Plan& plan);

/// Fields that make two models the same for a checkpoint, and their hash.
std::map<std::string, std::string> model_architecture(const Options& options);
std::string model_fingerprint(const Options& options);

/// "data 2 x tensor 2, 1f1b, ZeRO-1"
std::string plan_summary(const Plan& plan);
int64_t num_parameters(const Graph& graph);

}  // namespace altiplano
