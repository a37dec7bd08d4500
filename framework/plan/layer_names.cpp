#include "framework/plan/layer_names.hpp"

#include "framework/base/text.hpp"

namespace altiplano {

std::optional<std::pair<std::string, int64_t>> numbered_layer(const std::string& layer) {
  size_t at = layer.find_last_not_of("0123456789");
  if (at == std::string::npos || at + 1 == layer.size()) return std::nullopt;
  auto number = parse_int(layer.substr(at + 1));
  if (!number) return std::nullopt;
  return std::pair(layer.substr(0, at + 1), *number);
}

std::vector<std::string> expand_layers(const std::string& text) {
  size_t dash = text.rfind('-');
  if (dash == std::string::npos) return {text};
  auto first = numbered_layer(text.substr(0, dash));
  auto last = parse_int(text.substr(dash + 1));
  if (!first || !last || *last < first->second || *last - first->second > 100'000) return {text};
  std::vector<std::string> layers;
  for (int64_t i = first->second; i <= *last; ++i) layers.push_back(first->first + std::to_string(i));
  return layers;
}

}  // namespace altiplano
