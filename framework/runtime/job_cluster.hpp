#pragma once
// The hardware that a job is planned for.
#include "framework/cluster/network.hpp"
#include "framework/runtime/job.hpp"

namespace altiplano {

/// Sets job.cluster and job.figures. What the job names, with as many devices as ranks. `cluster: this-machine` is what
/// was measured of it, where something was, and its hosts are joined by a network where ranks are on several: that is
/// what `doctor --comm` has measured, else NetworkFigures as they stand. Needs job.device where the job is to be
/// planned.
Status find_cluster(Job& job, const JobRequest& request);

/// Of the newest `doctor --comm` between hosts, in the user's cache.
std::string network_path();

}  // namespace altiplano
