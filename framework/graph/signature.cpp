// Layer signatures: the layer's ops and parameters as text in which every name is replaced by what is the same in an
// isomorphic layer: own values by their position, values of other layers by the order in which they are first used,
// with their types.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "framework/base/text.hpp"
#include "framework/graph/op_definition.hpp"

namespace altiplano {
namespace {

class LayerText {
 public:
  LayerText(const Graph& graph, LayerId layer) : graph_(graph), layer_(layer) {}

  void add_parameter(const Parameter& parameter) {
    text_ += fmt::format("parameter {} {} {} {} {} {}\n", token(parameter.value), static_cast<int>(parameter.init.kind),
                         parameter.init.a, parameter.init.b, parameter.trainable, parameter.decay);
  }

  void add_op(const Op& op) {
    std::vector<std::string> inputs, outputs;
    for (ValueId id : op.inputs) inputs.push_back(token(id));
    for (ValueId id : op.outputs) outputs.push_back(token(id));
    text_ += fmt::format("{} = {}({}) {} {}\n", join(outputs, ","), op.kind, join(inputs, ","),
                         without_layer_name(op.attributes.to_string()), to_string(op.phase));
  }

  const std::string& text() const { return text_; }

 private:
  std::string token(ValueId id) {
    const Value& value = graph_.value(id);
    bool is_own = value.layer == layer_;
    auto [it, is_new] = numbers_.emplace(id, numbers_.size());
    return fmt::format("{}{}:{}{}:{}", is_own ? "%" : "^", it->second, to_string(value.dtype), to_string(value.shape),
                       to_string(value.role));
  }

  /// "stream=block.3.mlp.dropout" -> "stream=@.mlp.dropout".
  std::string without_layer_name(std::string text) const {
    const std::string prefix = "=" + graph_.layer_name(layer_) + ".";
    for (size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at + 3))
      text.replace(at, prefix.size(), "=@.");
    return text;
  }

  const Graph& graph_;
  LayerId layer_;
  std::map<ValueId, size_t> numbers_;
  std::string text_;
};

}  // namespace

std::vector<uint64_t> layer_signatures(const Graph& graph) {
  std::vector<LayerText> texts;
  for (size_t i = 0; i < graph.layers().size(); ++i) texts.emplace_back(graph, LayerId(static_cast<int64_t>(i)));
  for (const Parameter& parameter : graph.parameters())
    texts[graph.value(parameter.value).layer.index()].add_parameter(parameter);
  for (const Op& op : graph.ops()) texts[op.layer.index()].add_op(op);
  std::vector<uint64_t> signatures;
  for (const LayerText& text : texts) signatures.push_back(fingerprint(text.text()));
  return signatures;
}

}  // namespace altiplano
