#pragma once
// Published measurements that the simulator is held against (tests/fixtures/published), and the simulation of the same
// settings. Used by tests and by tests/bench/fidelity.
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "framework/cluster/cluster.hpp"
#include "framework/graph/training_graph.hpp"
#include "framework/simulate/simulate_programs.hpp"

namespace altiplano::test {

/// One training run of a GPT: settings and the seconds of an iteration.
struct PublishedRow {
  int gpus = 1;
  int64_t batch = 1, microbatch = 1, hidden = 1, heads = 1, layers = 1, sequence = 1;
  int tensor = 1, data = 1, pipeline = 1;
  double seconds = 0;
  std::string label = {};  ///< what stands in a column before those of vTrain, if there is one

  std::string settings() const;  ///< "h 6144, 40 layers, 256 GPUs, batch 1024: mbs 8, tensor 8, data 32, pipeline 1"
};

/// A CSV file of vTrain's columns; lines that start with '#' say where it is from. A column before them is the
/// label.
Result<std::vector<PublishedRow>> read_published_rows(const std::string& file);

/// How the models of some rows were trained, as far as it changes what is computed.
struct TrainingStyle {
  std::set<std::string> recompute = {"full"};
  bool sequence_parallel = false;
  int zero = 0;
  int64_t vocabulary = 50257;  ///< before padding
};

/// The rows on one node fit no recomputation (docs/fidelity-published.md says why), those on several do not run
/// without.
inline const TrainingStyle kSingleNodeStyle{{}};
inline const TrainingStyle kMultiNodeStyle{{"full"}};
/// Megatron-LM's own rows, and those of BLOOM.
inline const TrainingStyle kMegatronStyle{{"full"}, false, 0, 51200};
inline const TrainingStyle kBloomStyle{{"full"}, false, 1, 250880};

/// Rows of the table that `tensor` ranks share: a multiple of 128 on each; one that is not divided is left as it is.
int64_t padded_vocabulary(int64_t vocabulary, int tensor);

/// What a row's settings lower to: the first rank's program of every stage.
struct LoweredRow {
  std::vector<Program> programs;
  std::vector<std::vector<RankId>> alike;
};

Result<ProgramSimulation> simulate_row(const PublishedRow& row, const LoweredRow& lowered, const Cluster& cluster);

/// Builds graphs, plans and programs of rows, those of a graph once.
class PublishedSimulator {
 public:
  explicit PublishedSimulator(TrainingStyle style = {}) : style_(std::move(style)) {}

  Result<LoweredRow> lowered(const PublishedRow& row);

 private:
  Result<const TrainingGraph*> graph(const PublishedRow& row);

  TrainingStyle style_;
  using GraphKey = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t>;
  std::map<GraphKey, std::unique_ptr<TrainingGraph>> graphs_;
};

}  // namespace altiplano::test
