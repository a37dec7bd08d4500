#pragma once
// Evaluation: the loss of a checkpoint on data, through the same program and the same samples as a run's validation.
#include <string>

#include "framework/runtime/data/batch_source.hpp"
#include "framework/runtime/rank_model.hpp"

namespace altiplano {

struct Evaluation {
  double loss_sum = 0;     ///< nats, over all tokens that were predicted
  int64_t tokens = 0;      ///< that were predicted
  int64_t text_bytes = 0;  ///< of the text they stand for; an end of text is none

  double loss() const { return tokens > 0 ? loss_sum / static_cast<double>(tokens) : 0; }
  double perplexity() const;
  double bits_per_byte() const;  ///< 0 when there is no text
};

/// Data to evaluate on: a token file, or with an empty path the job's validation part. Refuses a job without one.
Result<BatchSource> open_evaluation_data(const Job& job, const std::string& file);

/// Collective; all ranks get the same sums. `batches` of the job's global batch; 0: all of the data.
Result<Evaluation> evaluate(RankModel& model, const Job& job, const BatchSource& data, int64_t batches);

/// Bytes of the text of the same labels. Reads the data once more; one rank is enough.
Result<int64_t> count_text_bytes(const BatchSource& data, int64_t global_batch, int64_t batches);

}  // namespace altiplano
