#pragma once
// Batches of a run: windows of seq_length + 1 tokens in sample order; labels are the tokens one later. Samples are
// addressed by their global running count, so what a sample holds does not depend on how many ranks share the batch.
//
// Several files: sample n comes from the file that MixOrder gives, and is that file's next one in its own order; each
// file has its own epochs. Split: with a fraction, the last windows of each training file are for validation and are in
// no training sample, not even as a label; those of several files take turns in proportion to their number.
#include <optional>
#include <string>
#include <vector>

#include "framework/runtime/data/mix_order.hpp"
#include "framework/runtime/data/token_windows.hpp"

namespace altiplano {

struct BatchSourceOptions {
  std::vector<WeightedFile> train;  ///< empty: validation only
  std::string validation_path;      ///< own file; empty: use the fraction
  double validation_fraction = 0;   ///< of the windows of each training file; 0: no validation
  int64_t seq_length = 0;
  int64_t global_batch_size = 1;
  int64_t model_vocab_size = 0;
  uint64_t seed = 0;
  bool separates_documents = false;  ///< document_start and positions tell documents apart; else one per sample
  /// How refusals name the keys: "job.yaml:3:9: data.train".
  std::string train_key = "data.train", validation_key = "data.validation.file",
              fraction_key = "data.validation.fraction";
};

/// All [count, seq_length], row-major.
struct Batch {
  int64_t count = 0, seq_length = 0;
  std::vector<int32_t> tokens, labels, document_start, positions;
};

class BatchSource {
 public:
  /// Refuses, with the key and the numbers: files that are no token files or damaged, data smaller than one global
  /// batch, ids the model's vocabulary does not have, files of different tokenizers, a validation part without a
  /// sample.
  static Result<BatchSource> open(const BatchSourceOptions& options);

  int64_t num_training_samples() const;  ///< of all files, each once
  int64_t num_validation_samples() const;
  int64_t seq_length() const { return options_.seq_length; }
  int64_t num_training_tokens() const;
  /// "a.h5" or "a.h5 (75.0 %) + b.h5 (25.0 %)".
  std::string training_name() const;
  /// The file whose tokenizer all share.
  const TokenFile& first_file() const;
  /// In the order of the options.
  std::vector<const TokenFile*> training_files() const;

  /// Samples first .. first+count of the run, counted over all epochs and ranks: step s of a run begins at s *
  /// global_batch_size, and a rank asks for its part of them. Reuses the batch's memory.
  Status read_training(int64_t first, int64_t count, Batch& batch) const;
  Result<Batch> training_batch(int64_t first, int64_t count) const;
  /// Validation windows first .. first+count. Past the last one: token 0, labels kIgnoredLabel.
  Status read_validation(int64_t first, int64_t count, Batch& batch) const;
  Result<Batch> validation_batch(int64_t first, int64_t count) const;

 private:
  /// A file and the parts of it that are used.
  struct Source {
    TokenWindows windows;
    WindowRange training, validation;
  };
  explicit BatchSource(BatchSourceOptions options) : options_(std::move(options)) {}
  Status open_files();
  Result<TokenWindows> open_file(const std::string& key, const std::string& path) const;
  Status check_tokenizers() const;
  Status split();
  Status split_file(Source& source);
  Status check_sizes() const;

  BatchSourceOptions options_;
  std::vector<Source> train_;
  std::optional<Source> own_validation_;
  std::vector<const Source*> validation_sources() const;
  MixOrder training_order_, validation_order_;
};

}  // namespace altiplano
