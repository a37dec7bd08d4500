#include "framework/runtime/evaluate.hpp"

#include <algorithm>
#include <cmath>

#include "framework/runtime/batch_input.hpp"
#include "framework/runtime/job_data.hpp"

namespace altiplano {
namespace {

int64_t batches_of(const BatchSource& data, int64_t global_batch, int64_t wanted) {
  const int64_t all = (data.num_validation_samples() + global_batch - 1) / global_batch;
  return wanted > 0 ? std::min(wanted, all) : all;
}

/// Bytes of text by token id; of the end of text none.
std::vector<int64_t> bytes_of_ids(const Tokenizer& tokenizer) {
  std::vector<int64_t> bytes(static_cast<size_t>(tokenizer.vocab_size()));
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id)
    if (id != tokenizer.end_of_text())
      bytes[static_cast<size_t>(id)] = static_cast<int64_t>(tokenizer.decode({&id, 1}).size());
  return bytes;
}

}  // namespace

double Evaluation::perplexity() const {
  return std::exp(loss());
}

double Evaluation::bits_per_byte() const {
  return text_bytes > 0 ? loss_sum / std::log(2.0) / static_cast<double>(text_bytes) : 0;
}

Result<BatchSource> open_evaluation_data(const Job& job, const std::string& file) {
  BatchSourceOptions options = job_data_options(job);
  if (!file.empty()) {
    options.train.clear();
    options.validation_path = file;
    options.validation_key = "--file";
  }
  const bool has_part = !options.validation_path.empty() || options.validation_fraction > 0;
  if (!has_part || (options.train.empty() && options.validation_path.empty())) {
    return invalid_argument(
        "{}: the job has no validation data; give --file FILE, or set data.validation.fraction or "
        "data.validation.file",
        job.config.file);
  }
  return BatchSource::open(options);
}

Result<Evaluation> evaluate(RankModel& model, const Job& job, const BatchSource& data, int64_t batches) {
  BatchInput input(data, *job.graph);
  const int64_t batch = job.plan.global_batch, count = batches_of(data, batch, batches);
  Evaluation result;
  double tokens = 0;
  for (int64_t b = 0; b < count; ++b) {
    input.start(BatchInput::Part::kValidation, b * batch);
    ALTIPLANO_ASSIGN(const StepTotals totals, model.executor().run_validation(input));
    result.loss_sum += totals.loss_sum;
    tokens += totals.token_count;
  }
  result.tokens = std::llround(tokens);
  return result;
}

Result<int64_t> count_text_bytes(const BatchSource& data, int64_t global_batch, int64_t batches) {
  ALTIPLANO_ASSIGN(auto tokenizer, data.first_file().tokenizer());
  const std::vector<int64_t> bytes = bytes_of_ids(*tokenizer);
  const int64_t samples =
      std::min(data.num_validation_samples(), batches_of(data, global_batch, batches) * global_batch);
  int64_t sum = 0;
  Batch batch;
  for (int64_t at = 0; at < samples; at += global_batch) {
    ALTIPLANO_RETURN_IF_ERROR(data.read_validation(at, std::min(global_batch, samples - at), batch));
    for (int32_t label : batch.labels)
      if (label >= 0) sum += bytes[static_cast<size_t>(label)];
  }
  return sum;
}

}  // namespace altiplano
