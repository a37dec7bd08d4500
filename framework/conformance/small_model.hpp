#pragma once
// A small member of a model family, found by trying: the suite knows no model's options.
#include "framework/api/model.hpp"

namespace altiplano::conformance {

/// The options with every integer lowered as far as the model still builds (not below 2); the
/// others stay as they are. Fails when the defaults do not build.
Result<Options> small_options(const Model& model, int64_t batch, int64_t sequence);

/// What differs from the defaults: "hidden_size 12, num_hidden_layers 4".
std::string settings_text(const Options& options);

}  // namespace altiplano::conformance
