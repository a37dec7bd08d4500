#pragma once
// The models that benchmarks measure, as jobs of this machine: gpt6 (six layers of 384, 3,072 tokens a step), gpt2
// (GPT-2 124M, two samples of 512), tiny and small (for trying the programs out; small may be divided in many ways).
#include <filesystem>
#include <fstream>
#include <string>

#include "framework/plugin/registry.hpp"
#include "framework/runtime/job.hpp"
#include "tests/bench/bench.hpp"

namespace altiplano::bench {

/// A folder with job.yaml in it, removed at the end.
class BenchFolder {
 public:
  BenchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "altiplano-bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) require(runtime_failure("no temporary folder"));
    path_ = name;
  }
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;
  ~BenchFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  void write(const std::string& name, const std::string& text) const { std::ofstream(*this / name) << text; }

 private:
  std::string path_;
};

struct BenchModel {
  int64_t layers, hidden, heads, vocabulary, sequence, batch;
};

inline BenchModel bench_model(const std::string& name) {
  if (name == "gpt6") return {6, 384, 6, 257, 256, 12};
  if (name == "gpt2") return {12, 768, 12, 50257, 512, 2};
  if (name == "tiny") return {1, 32, 2, 257, 16, 2};
  if (name == "small") return {4, 32, 2, 257, 16, 12};
  require(invalid_argument("--model {}: valid: gpt6, gpt2, tiny, small", name));
  return {};
}

/// `ranks` replicas; data in `folder`/text.h5.
inline std::string job_text(const BenchModel& m, const std::string& precision, int ranks, const BenchFolder& folder) {
  return fmt::format(
      "run: {{dir: {0}}}\n"
      "model: {{kind: gpt, num_hidden_layers: {1}, hidden_size: {2}, num_attention_heads: {3}, "
      "max_position_embeddings: {4}, vocab_size: {5}, embd_pdrop: 0.0, resid_pdrop: 0.0, attn_pdrop: 0.0}}\n"
      "data: {{train: {6}}}\n"
      "train: {{max_steps: 1, global_batch_size: {7}, seq_length: {4}, precision: {8}}}\n"
      "parallel: {{planner: manual, data_parallel_size: {9}, tensor_parallel_size: 1, pipeline_parallel_size: 1}}\n",
      folder / "run", m.layers, m.hidden, m.heads, m.sequence, m.vocabulary, folder / "text.h5", m.batch, precision,
      ranks);
}

/// `overrides`: "key=value".
inline JobConfig load(const BenchFolder& folder, const std::vector<std::string>& overrides = {}) {
  PluginRegistry::instance().add_search_path(ALTIPLANO_BENCH_PLUGIN_DIR);
  return require(load_job_config(
      {.file = folder / "job.yaml", .overrides = overrides},
      [](const std::string& kind, const std::vector<std::string>&) -> Result<std::vector<OptionRecord>> {
        ALTIPLANO_ASSIGN(const Model* model, PluginRegistry::instance().model(kind));
        return model->option_records();
      }));
}

}  // namespace altiplano::bench
