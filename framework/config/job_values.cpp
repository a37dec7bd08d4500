#include "framework/config/job_values.hpp"

#include <cmath>

namespace altiplano {

DType job_dtype(const Options& options) {
  const std::string& precision = options.get_string("train.precision");
  if (precision == "fp64") return DType::kF64;
  return precision == "bf16" ? DType::kBF16 : DType::kF32;
}

OptimizerOptions job_optimizer(const Options& options) {
  const auto& betas = options.get_floats("optimizer.betas");
  return {.name = options.get_string("optimizer.name"),
          .beta1 = betas[0],
          .beta2 = betas[1],
          .epsilon = options.get_float("optimizer.eps"),
          .weight_decay = options.get_float("optimizer.weight_decay"),
          .momentum = options.get_float("optimizer.momentum")};
}

namespace {

MessageAlgorithm collective_algorithm(const std::string& name) {
  if (name == "direct") return MessageAlgorithm::kDirect;
  if (name == "ring") return MessageAlgorithm::kRing;
  return name == "recursive" ? MessageAlgorithm::kRecursive : MessageAlgorithm::kAuto;
}

}  // namespace

CommOptions job_comm_options(const Options& options) {
  double milliseconds = options.get_float("comm.timeout_seconds") * 1e3;
  return {.deadline = std::chrono::milliseconds(std::llround(milliseconds)),
          .chunk_bytes = options.get_int("comm.chunk_bytes"),
          .check_calls = options.get_bool("comm.check_calls"),
          .algorithm = collective_algorithm(options.get_string("comm.algorithm")),
          .two_level = options.get_bool("comm.two_level")};
}

DeviceOptions job_device_options(const Options& options, int ranks_on_host) {
  int threads = options.has("device.threads") ? static_cast<int>(options.get_int("device.threads")) : 0;
  return {.threads = threads, .ranks_on_host = ranks_on_host};
}

}  // namespace altiplano
