#include "framework/conformance/small_model.hpp"

#include <optional>

#include "framework/base/text.hpp"
#include "framework/plugin/registry.hpp"

namespace altiplano::conformance {
namespace {

constexpr int64_t kSizes[] = {2, 4, 6, 8, 12, 16, 24, 32, 64};

/// Elements of all values of the graph; nothing when it does not build.
std::optional<int64_t> size_of_model(const Model& model, const Options& options, const ModelRequest& request) {
  auto built = model.build(options, request);
  if (!built.is_ok()) return std::nullopt;
  int64_t size = 0;
  for (const Value& value : built->graph.values()) size += num_elements(value.shape);
  return size;
}

/// The smallest of kSizes that builds and makes the model smaller; whether there was one.
bool shrink_option(const Model& model, const OptionRecord& record, const ModelRequest& request, Options& options,
                   int64_t& size) {
  for (int64_t smaller : kSizes) {
    Options changed = options;
    if (!changed.set(record.key, smaller, {}).is_ok()) continue;
    const auto size_then = size_of_model(model, changed, request);
    if (!size_then || *size_then >= size) continue;
    options = std::move(changed);
    size = *size_then;
    return true;
  }
  return false;
}

}  // namespace

Result<Options> small_options(const Model& model, int64_t batch, int64_t sequence) {
  ALTIPLANO_RETURN_IF_ERROR(PluginRegistry::instance().ops().status());  // their kinds may be used
  const ModelRequest request{batch, sequence};
  Options options(model.option_records());
  auto built = model.build(options, request);
  if (!built.is_ok()) return Status(built.status()).with_context("with its default options");
  int64_t size = *size_of_model(model, options, request);
  const std::vector<OptionRecord> records = options.records();
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (const OptionRecord& record : records)
      if (record.type == OptionType::kInt) has_changed |= shrink_option(model, record, request, options, size);
  }
  return options;
}

std::string settings_text(const Options& options) {
  std::vector<std::string> texts;
  for (const OptionRecord& record : options.records())
    if (options.is_set(record.key)) texts.push_back(record.key + " " + to_string(options.value(record.key)));
  return texts.empty() ? "defaults" : join(texts, ", ");
}

}  // namespace altiplano::conformance
