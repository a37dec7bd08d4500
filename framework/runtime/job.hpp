#pragma once
// From a job file to what a rank runs: model -> TrainingGraph -> Plan -> timetable -> programs. One way for every
// command (train, plan, validate, estimate), so that what is shown is what runs.
#include <memory>
#include <optional>
#include <string>

#include "framework/api/planner.hpp"
#include "framework/cluster/cluster.hpp"
#include "framework/config/job_config.hpp"
#include "framework/plan/plan.hpp"
#include "framework/program/lowering.hpp"

namespace altiplano {

struct Job {
  JobConfig config;
  int num_ranks = 1;
  std::unique_ptr<TrainingGraph> graph;
  Cluster cluster;
  Plan plan;
  Timetable timetable;
  PlanEstimate estimate;
  Seconds planning_time;
  bool plan_was_given = false;
  std::vector<std::string> notices = {};  ///< of planning, to print once; those of the job file are in config
};

struct JobRequest {
  int num_ranks = 1;
  std::string plan_file;                   ///< replay this plan; empty: plan
  std::optional<int64_t> batch, sequence;  ///< instead of the job file's (generation)
  bool needs_plan = true;
};

/// Reads nothing but plugins, the cluster and the plan file. Refusals name key, numbers and valid alternatives;
/// kInfeasible with the smallest change that fits.
Result<Job> prepare_job(JobConfig config, const JobRequest& request);

/// Samples per step, from the job file (any two of the three batch sizes); the data degree is taken from it or from the
/// ranks.
Result<BatchSizes> job_batch(const Options& options, int num_ranks);

/// Fields that make two models the same for a checkpoint, and their hash.
std::map<std::string, std::string> model_architecture(const Options& options);
std::string model_fingerprint(const Options& options);

/// "data 2 x tensor 2, 1f1b, ZeRO-1"
std::string plan_summary(const Plan& plan);
int64_t num_parameters(const Graph& graph);

}  // namespace altiplano
