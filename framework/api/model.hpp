#pragma once
// Model plugins: build a Graph from options, as for one device.
#include <string>
#include <vector>

#include "framework/api/plugin.h"
#include "framework/base/status.hpp"
#include "framework/graph/training_graph.hpp"
#include "framework/options/option.hpp"

namespace altiplano {

/// What the job asks of the model besides its own options.
struct ModelRequest {
  int64_t global_batch = 1;  ///< samples per step: dim 0 of the inputs
  int64_t sequence_length = 1;
  /// Attention stays within a document: the model takes the input kDocumentStartInput.
  bool separates_documents = false;
  /// Positions count from 0 in each document of a sample: the model takes the input kPositionsInput.
  bool restarts_positions = false;
};

class Model {
 public:
  static constexpr uint32_t kKind = ALTIPLANO_PLUGIN_MODEL;
  static constexpr uint32_t kInterfaceVersion = 1;
  virtual ~Model() = default;
  /// Records of the `model:` section (keys without the prefix); HF names where HF has one.
  virtual std::vector<OptionRecord> option_records() const = 0;
  /// Refuses wrong combinations with the numbers ("model.hidden_size: 50 is not a multiple of num_attention_heads 12;
  /// nearest: 48, 60").
  virtual Result<ModelGraph> build(const Options& options, const ModelRequest& request) const noexcept = 0;
};

}  // namespace altiplano
