#include "framework/runtime/job_graph.hpp"

#include "framework/base/text.hpp"
#include "framework/config/job_values.hpp"
#include "framework/graph/recompute.hpp"
#include "framework/plan/layer_names.hpp"
#include "framework/plugin/registry.hpp"

namespace altiplano {

std::vector<std::string> wanted_recompute(const Options& options) {
  const std::string wanted = options.get_string("parallel.recompute");
  if (wanted == "none" || wanted == "auto") return {};
  std::vector<std::string> names;
  for (const std::string& name : split(wanted, ','))
    for (std::string& layer : expand_layers(std::string(trim(name)))) names.push_back(std::move(layer));
  return names;
}

Result<TrainingGraph> build_job_graph(const Options& options, int64_t batch, int64_t sequence,
                                      const std::optional<std::set<std::string>>& recomputed) {
  ALTIPLANO_ASSIGN(const Model* model, PluginRegistry::instance().model(options.get_string("model.kind")));
  const bool packed = options.get_string("data.documents") == "packed";
  const bool restarts = packed && options.get_string("data.positions") == "document";
  ALTIPLANO_ASSIGN(ModelGraph forward, model->build(options.section("model"), {batch, sequence, packed, restarts}));
  if (packed && !forward.graph.find_value(kDocumentStartInput).is_valid()) {
    return invalid_argument("{}: model/{} does not tell documents apart; use concatenate",
                            options.where("data.documents"), options.get_string("model.kind"));
  }
  ALTIPLANO_ASSIGN(const DeviceBackend* device, PluginRegistry::instance().device(options.get_string("device.kind")));
  const std::vector<std::string> fused = device->fused_kinds();
  std::set<std::string> layers;
  if (recomputed) {
    layers = *recomputed;
  } else {
    ALTIPLANO_ASSIGN(layers, layers_to_recompute(forward.graph, wanted_recompute(options)));
  }
  auto training = make_training_graph(std::move(forward), job_dtype(options), job_optimizer(options),
                                      static_cast<uint64_t>(options.get_int("train.seed")),
                                      {fused.begin(), fused.end()}, layers);
  const char* frozen = "model.frozen";
  if (training.is_ok() || options.find_record(frozen) == nullptr || options.get_strings(frozen).empty()) return training;
  return invalid_argument("{}: {}; leave something to train", options.where(frozen), training.status().message());
}

}  // namespace altiplano
