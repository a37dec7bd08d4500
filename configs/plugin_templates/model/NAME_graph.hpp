#pragma once
// The model as a graph, written as for one device: shapes are those of the global batch, nothing knows of ranks.
#include "framework/api/model.hpp"

namespace @name@_plugin {

struct Config {
  int64_t layers = 2, hidden = 64, vocabulary = 257;
};

altiplano::Result<altiplano::ModelGraph> build_graph(const Config& config, const altiplano::ModelRequest& request);

}  // namespace @name@_plugin
