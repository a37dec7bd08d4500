#pragma once
// Names of layers with numbers, as plans abbreviate them: "block.0-5".
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace altiplano {

/// "block.7" -> ("block.", 7); nothing when it does not end in a number.
std::optional<std::pair<std::string, int64_t>> numbered_layer(const std::string& layer);
/// "block.0-2" -> block.0, block.1, block.2; any other text is one layer.
std::vector<std::string> expand_layers(const std::string& text);
/// The opposite for a list: runs of consecutive numbers become "block.0-5".
std::vector<std::string> abbreviated_layers(const std::vector<std::string>& layers);
/// "6 layers (embedding, block.0-3, head)": what counts as a layer is more than what repeats.
std::string layers_in_words(const std::vector<std::string>& layers);

}  // namespace altiplano
