#include "tests/support/alpa_suite.hpp"

#include <fmt/ranges.h>

#include <numeric>

namespace altiplano::test {

namespace {

struct Transformer {
  int64_t hidden, layers, heads;
};

std::string gpt_model(const Transformer& t) {
  return fmt::format(
      "{{kind: gpt, hidden_size: {}, num_hidden_layers: {}, num_attention_heads: {}, max_position_embeddings: 1024, "
      "vocab_size: 51200, embd_pdrop: 0.0, resid_pdrop: 0.0, attn_pdrop: 0.0}}",
      t.hidden, t.layers, t.heads);
}

/// Feed-forward layers and experts are eight times as wide as the stream there.
std::string moe_model(const Transformer& t, int64_t experts) {
  return fmt::format(
      "{{kind: moe, hidden_size: {}, num_hidden_layers: {}, num_attention_heads: {}, max_position_embeddings: 1024, "
      "vocab_size: 32000, intermediate_size: {}, num_local_experts: {}}}",
      t.hidden, t.layers, t.heads, 8 * t.hidden, experts);
}

std::string wide_resnet_model(const std::vector<int>& depths, int64_t channels, int64_t width, int64_t samples) {
  return fmt::format(
      "{{kind: wide_resnet, depths: [{}], embedding_size: {}, width_factor: {}, num_labels: 1024, "
      "batch_norm_samples: {}}}",
      fmt::join(depths, ", "), channels, width, samples);
}

std::vector<AlpaStage> equal_stages(int stages, int blocks, int devices, int data = 1) {
  return std::vector<AlpaStage>(static_cast<size_t>(stages), AlpaStage{blocks / stages, devices, data});
}

AlpaMember gpt(const std::string& size, double parameters, int gpus, const Transformer& t, AlpaPlan plan,
               const std::string& published) {
  return {"GPT",           size,      parameters, gpus, gpt_model(t), static_cast<int>(t.layers), 1024, 1024, "bf16",
          std::move(plan), published, t.hidden,   51200};
}

AlpaMember moe(const std::string& size, double parameters, int gpus, const Transformer& t, int64_t experts,
               AlpaPlan plan, const std::string& published) {
  return {"MoE",
          size,
          parameters,
          gpus,
          moe_model(t, experts),
          static_cast<int>(t.layers),
          1024,
          1024,
          "bf16",
          std::move(plan),
          published,
          t.hidden,
          32000};
}

AlpaMember wide_resnet(const std::string& size, double parameters, int gpus, const std::vector<int>& depths,
                       int64_t channels, int64_t width, int64_t batch, AlpaPlan plan, const std::string& published) {
  const std::string model = wide_resnet_model(depths, channels, width, batch / plan.microbatches);
  return {"Wide-ResNet", size,
          parameters,    gpus,
          model,         std::accumulate(depths.begin(), depths.end(), 0),
          batch,         1,
          "fp32",        std::move(plan),
          published};
}

// Stages of the plans: the paper's section 8 and its artifact (github.com/alpa-projects/alpa, benchmark/alpa: the
// suites of GPT, MoE and Wide-ResNet). The second figure is the best of Megatron, DeepSpeed and PP-DP there.
std::vector<AlpaMember> gpt_members() {
  return {
      gpt("0.35B", 0.35e9, 1, {1024, 24, 16}, {equal_stages(1, 24, 1), 0}, "45.1 (47.5)"),
      gpt("0.76B", 0.76e9, 2, {1536, 24, 16}, {}, "57.9 (55.5)"),
      gpt("1.3B", 1.3e9, 4, {2048, 24, 32}, {}, "58.2 (55.9)"),
      gpt("2.6B", 2.6e9, 8, {2560, 32, 32}, {{{8, 2, 2}, {8, 2, 2}, {16, 4, 2}}, 128}, "61.6 (50.4)"),
      gpt("6.7B", 6.7e9, 16, {4096, 32, 32}, {equal_stages(2, 32, 8, 2), 64}, "60.0 (56.6)"),
      gpt("15B", 15e9, 32, {5120, 48, 40}, {equal_stages(4, 48, 8, 2), 128}, "59.9 (58.2)"),
      gpt("39B", 39e9, 64, {8192, 48, 64}, {equal_stages(16, 48, 4), 1024}, ""),
  };
}

std::vector<AlpaMember> moe_members() {
  return {
      moe("380M", 0.38e9, 1, {768, 8, 16}, 8, {equal_stages(1, 8, 1), 512}, "45.5 (34.2)"),
      moe("690M", 0.69e9, 2, {768, 8, 16}, 16, {equal_stages(1, 8, 2, 2), 32}, "43.0 (33.1)"),
      moe("1.3B", 1.3e9, 4, {768, 16, 16}, 16, {equal_stages(2, 16, 2, 2), 32}, "39.9 (34.7)"),
      moe("2.4B", 2.4e9, 8, {1024, 16, 16}, 16, {equal_stages(2, 16, 4, 4), 32}, "45.8 (40.0)"),
      moe("10B", 10e9, 16, {1536, 16, 16}, 32, {equal_stages(2, 16, 8, 8), 16}, ""),
      moe("27B", 27e9, 32, {2048, 16, 16}, 48, {equal_stages(8, 16, 4, 4), 128}, "38.8 (3.8)"),
      moe("70B", 70e9, 64, {2048, 32, 16}, 64, {equal_stages(8, 32, 8, 8), 64}, "36.6 (OOM)"),
  };
}

std::vector<AlpaMember> wide_resnet_members() {
  const std::vector<int> fifty = {3, 4, 6, 3}, hundred = {3, 4, 23, 3};
  return {
      wide_resnet("250M", 0.25e9, 1, fifty, 160, 2, 1536, {{{16, 1, 1}}, 24}, "8.30 (8.30)"),
      wide_resnet("500M", 0.5e9, 2, fifty, 224, 2, 1536, {{{16, 2, 1}}, 24}, "8.46 (8.24)"),
      wide_resnet("1B", 1e9, 4, fifty, 320, 2, 1536, {{{16, 4, 1}}, 24}, "8.16 (8.08)"),
      wide_resnet("2B", 2e9, 8, fifty, 448, 2, 1536, {{{8, 4, 4}, {8, 4, 1}}, 24}, "8.04 (7.72)"),
      wide_resnet("4B", 4e9, 16, fifty, 640, 2, 1536, {{{5, 4, 4}, {4, 4, 4}, {7, 8, 8}}, 32}, "6.76 (0.37)"),
      wide_resnet("6.8B", 6.8e9, 32, fifty, 320, 16, 1536, {{{5, 8, 8}, {4, 8, 8}, {4, 8, 8}, {3, 8, 8}}, 32},
                  "6.60 (OOM)"),
      wide_resnet("13B", 13e9, 64, hundred, 320, 16, 1520,
                  {{{4, 8, 8}, {4, 8, 1}, {4, 8, 8}, {4, 8, 1}, {4, 8, 8}, {4, 8, 8}, {5, 8, 1}, {4, 8, 8}}, 38},
                  "5.3 (OOM)"),
  };
}

}  // namespace

std::string AlpaMember::job(const std::string& planner) const {
  return fmt::format(
      "model: {}\n"
      "cluster: p3.16xlarge\n"
      "device: {{kind: cpu, threads: 1}}\n"
      "train: {{max_steps: 1, global_batch_size: {}, seq_length: {}, precision: {}}}\n"
      "parallel: {{planner: {}}}\n",
      model, batch, sequence, precision, planner);
}

const std::vector<AlpaMember>& alpa_suite() {
  static const std::vector<AlpaMember> suite = [] {
    std::vector<AlpaMember> all = gpt_members();
    for (const auto& members : {moe_members(), wide_resnet_members()})
      all.insert(all.end(), members.begin(), members.end());
    return all;
  }();
  return suite;
}

double seconds_of_gpt(const AlpaMember& member, double tflops) {
  const auto h = static_cast<double>(member.hidden), l = static_cast<double>(member.blocks);
  const auto s = static_cast<double>(member.sequence), v = static_cast<double>(member.vocabulary);
  const double flops = 96.0 * static_cast<double>(member.batch) * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  return flops / (tflops * 1e12 * member.gpus);
}

}  // namespace altiplano::test
