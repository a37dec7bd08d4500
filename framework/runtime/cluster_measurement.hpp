#pragma once
// What `altiplano profile --cluster` does: measures the cluster model of the machine it runs on.
//
//   alone      rank 0 while the others sleep: training steps of the job's model on one rank, of one sample and of as
//   many
//              as make a good second, in every type the device has; products and copies of many sizes
//   together   as many ranks as there are processors for at the same time: the larger steps again
//   exchanges  collectives and messages among the ranks
#include <functional>

#include "framework/config/job_config.hpp"
#include "framework/cost/cluster_database.hpp"
#include "framework/launch/rank_environment.hpp"

namespace altiplano {

/// Collective over the ranks of this host. The result is rank 0's; others give an empty one. `tell`: progress, of
/// rank 0.
Result<MeasuredCluster> measure_cluster(const JobConfig& config, const RankEnvironment& environment,
                                        Rendezvous& rendezvous, const std::function<void(const std::string&)>& tell);

/// Lines for people: the rates and times of a measured cluster.
std::string measured_in_words(const MeasuredCluster& measured);

/// Where the profile database keeps measured clusters; empty where neither XDG_CACHE_HOME nor HOME is set.
std::string cluster_database_path();

}  // namespace altiplano
