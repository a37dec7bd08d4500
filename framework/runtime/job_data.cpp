#include "framework/runtime/job_data.hpp"

namespace altiplano {

BatchSourceOptions job_data_options(const Job& job) {
  const Options& options = job.config.options;
  BatchSourceOptions data;
  if (options.has("data.train")) data.train = options.get_files("data.train");
  if (options.has("data.validation.file")) data.validation_path = options.get_string("data.validation.file");
  data.validation_fraction = options.get_float("data.validation.fraction");
  data.seq_length = options.get_int("train.seq_length");
  data.global_batch_size = job.graph->graph.value(job.graph->inputs[0]).shape[0];
  data.model_vocab_size = job.graph->graph.value(job.graph->logits).shape.back();
  data.seed = static_cast<uint64_t>(options.get_int("data.seed"));
  data.separates_documents = job.graph->graph.find_value(kDocumentStartInput).is_valid();
  data.train_key = options.where("data.train");
  data.validation_key = options.where("data.validation.file");
  data.fraction_key = options.where("data.validation.fraction");
  return data;
}

}  // namespace altiplano
