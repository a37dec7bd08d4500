#pragma once
// Batches of a run: windows of seq_length + 1 tokens in sample order; labels are the tokens one later. Samples are
// addressed by their global running count, so what a sample holds does not depend on how many ranks share the batch.
//
// Split: with a fraction, the last windows of data.train are for validation and are in no training sample, not even as
// a label.
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/runtime/data/token_file.hpp"

namespace altiplano {

/// Labels below 0 count nowhere.
inline constexpr int32_t kIgnoredLabel = -1;

struct BatchSourceOptions {
  std::string train_path;
  std::string validation_path;     ///< own file; empty: use the fraction
  double validation_fraction = 0;  ///< of the windows of train_path; 0: no validation
  int64_t seq_length = 0;
  int64_t global_batch_size = 1;
  int64_t model_vocab_size = 0;
  uint64_t seed = 0;
};

struct Batch {
  int64_t count = 0, seq_length = 0;
  std::vector<int32_t> tokens, labels;  ///< [count, seq_length]
};

/// `count` windows that follow each other from token `begin` of a file.
struct WindowRange {
  int64_t begin = 0, count = 0;
};

class BatchSource {
 public:
  /// Refuses, with the numbers: data smaller than one global batch, ids the model's vocabulary does not have, a
  /// validation part without a whole sample.
  static Result<BatchSource> open(const BatchSourceOptions& options);

  int64_t num_training_samples() const { return training_.count; }  ///< per epoch
  int64_t num_validation_samples() const { return validation_.count; }
  const TokenFile& train_file() const { return train_; }

  /// Samples first .. first+count of the run, counted over all epochs and ranks: step s of a run begins at s *
  /// global_batch_size, and a rank asks for its part of them. Sizes of the spans: count * seq_length.
  Status training_samples(int64_t first, int64_t count, std::span<int32_t> tokens, std::span<int32_t> labels) const;
  Result<Batch> training_batch(int64_t first, int64_t count) const;
  /// Validation windows first .. first+count in file order. Past the last one: token 0, labels kIgnoredLabel.
  Status validation_samples(int64_t first, int64_t count, std::span<int32_t> tokens, std::span<int32_t> labels) const;
  Result<Batch> validation_batch(int64_t first, int64_t count) const;

 private:
  BatchSource(BatchSourceOptions options, TokenFile train) : options_(std::move(options)), train_(std::move(train)) {}
  Status split();
  Status read_window(const TokenFile& file, const WindowRange& range, int64_t window, std::span<int32_t> tokens,
                     std::span<int32_t> labels) const;

  BatchSourceOptions options_;
  TokenFile train_;
  std::optional<TokenFile> own_validation_;
  WindowRange training_, validation_;
};

}  // namespace altiplano
