#include "framework/plan/layer_names.hpp"

#include <fmt/format.h>

#include "framework/base/plural.hpp"
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

std::vector<std::string> abbreviated_layers(const std::vector<std::string>& layers) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < layers.size();) {
    auto first = numbered_layer(layers[i]);
    size_t end = i + 1;
    while (first && end < layers.size()) {
      auto next = numbered_layer(layers[end]);
      if (!next || next->first != first->first || next->second != first->second + static_cast<int64_t>(end - i)) break;
      ++end;
    }
    parts.push_back(end - i > 1 ? fmt::format("{}-{}", layers[i], first->second + static_cast<int64_t>(end - i) - 1)
                                : layers[i]);
    i = end;
  }
  return parts;
}

std::string layers_in_words(const std::vector<std::string>& layers) {
  return fmt::format("{} ({})", counted(static_cast<int64_t>(layers.size()), "layer"),
                     join(abbreviated_layers(layers), ", "));
}

}  // namespace altiplano
