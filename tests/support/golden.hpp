#pragma once
// Reader of tests/golden/gpt2_reference.json (written by gpt2_reference.py, which says what each part means).
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace altiplano::test {

/// A tensor of the file: shape and row-major elements.
struct GoldenTensor {
  std::vector<int64_t> shape;
  std::vector<double> elements;
};

struct GoldenBatch {
  std::vector<int32_t> tokens, labels;  ///< row-major [batch, sequence]; label -1: ignored
};

struct GptReference {
  nlohmann::json config;
  std::map<std::string, GoldenTensor> initial, gradients, final;
  std::vector<GoldenBatch> batches;  ///< one per step
  GoldenTensor logits;               ///< of step 1, [b,s,v]
  std::vector<double> losses, gradient_norms;
};

inline void append_golden(const nlohmann::json& value, size_t depth, GoldenTensor& out) {
  if (!value.is_array()) return out.elements.push_back(value.get<double>());
  if (out.shape.size() == depth) out.shape.push_back(static_cast<int64_t>(value.size()));
  for (const auto& part : value) append_golden(part, depth + 1, out);
}

inline GoldenTensor golden_tensor(const nlohmann::json& value) {
  GoldenTensor out;
  append_golden(value, 0, out);
  return out;
}

inline std::map<std::string, GoldenTensor> golden_tensors(const nlohmann::json& values) {
  std::map<std::string, GoldenTensor> out;
  for (const auto& [name, value] : values.items()) out[name] = golden_tensor(value);
  return out;
}

inline std::vector<int32_t> golden_ids(const nlohmann::json& rows) {
  std::vector<int32_t> out;
  for (const auto& row : rows) {
    for (const auto& id : row) out.push_back(id.get<int32_t>());
  }
  return out;
}

/// Throws nlohmann's exceptions on a damaged file.
inline GptReference read_gpt_reference(const std::string& path = ALTIPLANO_SOURCE_DIR
                                       "/tests/golden/gpt2_reference.json") {
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file);
  GptReference out;
  out.config = json.at("config");
  out.initial = golden_tensors(json.at("initial"));
  out.gradients = golden_tensors(json.at("gradients"));
  out.final = golden_tensors(json.at("final"));
  out.logits = golden_tensor(json.at("logits"));
  for (const auto& batch : json.at("batches")) {
    out.batches.push_back({golden_ids(batch.at("tokens")), golden_ids(batch.at("labels"))});
  }
  out.losses = json.at("losses").get<std::vector<double>>();
  out.gradient_norms = json.at("gradient_norms").get<std::vector<double>>();
  return out;
}

}  // namespace altiplano::test
