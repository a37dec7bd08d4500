#pragma once
// The suites of the Alpa paper (Zheng et al., OSDI 2022, section 8 and its artifact): models whose size grows with the
// number of V100 GPUs, with the plans that were published for them. Data and job files only.
#include <string>
#include <vector>

#include "framework/base/status.hpp"

namespace altiplano::test {

/// A stage of a published plan: its share of the model's layers and the GPUs it has.
struct AlpaStage {
  int layers = 0;   ///< blocks of the model; the ends ride along
  int devices = 1;  ///< of one node
  int data = 1;     ///< of them, replicas that Alpa's logical mesh names as such
};

struct AlpaPlan {
  std::vector<AlpaStage> stages;
  int microbatches = 0;
};

struct AlpaMember {
  std::string family;  ///< "GPT", "MoE", "Wide-ResNet"
  std::string size;    ///< as published: "0.35B"
  double parameters;   ///< published, rounded
  int gpus = 1;
  std::string model;  ///< YAML of the `model:` section
  int blocks = 1;
  int64_t batch = 1024, sequence = 1024;
  std::string precision = "bf16";
  AlpaPlan plan = {};          ///< without stages: none was published
  std::string published = {};  ///< TFLOP/s per GPU of Alpa's plan and of its best baseline there; may be empty
  int64_t hidden = 0;          ///< of transformers
  int64_t vocabulary = 0;

  std::string name() const { return family + " " + size; }
  /// Of a job on the cluster preset p3.16xlarge with `planner`. Nothing of it is run.
  std::string job(const std::string& planner) const;
};

/// In the order of the paper's figures; each family from the smallest on.
const std::vector<AlpaMember>& alpa_suite();

/// Seconds of a step at `tflops` per GPU, counted as that paper counts GPT's: with everything computed twice forward.
double seconds_of_gpt(const AlpaMember& member, double tflops);

}  // namespace altiplano::test
