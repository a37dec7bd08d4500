#pragma once
// Parts of a job's options as the types that the layers below take. Pure; the options are those of a loaded JobConfig.
#include "framework/api/comm.hpp"
#include "framework/api/device.hpp"
#include "framework/config/job_config.hpp"
#include "framework/graph/training_graph.hpp"

namespace altiplano {

/// train.precision.
DType job_dtype(const Options& options);
/// The optimizer section; momentum is 0 for adamw.
OptimizerOptions job_optimizer(const Options& options);
/// comm.timeout_seconds, comm.chunk_bytes and comm.check_calls.
CommOptions job_comm_options(const Options& options);
/// device.threads; auto is 0, which the device resolves with the number of ranks on its host.
DeviceOptions job_device_options(const Options& options, int ranks_on_host);

}  // namespace altiplano
