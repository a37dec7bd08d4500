#pragma once
// Names of other systems for keys of a job file: Megatron-LM's arguments, DeepSpeed's JSON, Hugging Face's
// TrainingArguments. A table as data: the reader, the reference page and the tests go by it. (Names of a model's own
// configuration file are aliases in the model's option records.)
#include <string>
#include <utility>
#include <vector>

namespace altiplano {

struct ForeignKey {
  std::string name;  ///< as there, dotted where it is nested: "zero_optimization.stage"
  std::string tool;  ///< "Megatron-LM", "DeepSpeed", "Hugging Face"
  std::string key;   ///< the key here; empty: there is none, and `hint` says what to write
  std::vector<std::pair<std::string, std::string>> values = {};  ///< their value to ours, where they differ
  std::string hint = {};                                         ///< why it is refused and what to write instead
};

/// Accepted at the top of a file and in the section of their key: "tensor_model_parallel_size" and
/// "parallel.tensor_model_parallel_size".
const std::vector<ForeignKey>& foreign_keys();

}  // namespace altiplano
