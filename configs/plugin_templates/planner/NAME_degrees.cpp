#include "@name@_degrees.hpp"

namespace @name@_plugin {

altiplano::Degrees choose_degrees(int num_ranks, int max_stages) {
  int pipeline = 1;
  for (int stages = 1; stages <= max_stages; ++stages)
    if (num_ranks % stages == 0) pipeline = stages;
  return {num_ranks / pipeline, 1, pipeline};
}

}  // namespace @name@_plugin
