// A test of the graph alone: no plugin is loaded.
#include <cstdio>

#include "@name@_graph.hpp"

int main() {
  auto model = @name@_plugin::build_graph({2, 8, 11}, {3, 5});
  if (!model.is_ok()) return std::printf("%s\n", model.status().to_string().c_str()), 1;
  const auto& logits = model->graph.value(model->logits);
  if (logits.shape != altiplano::Shape{3, 5, 11}) return std::puts("the logits have another shape"), 1;
  return model->graph.parameters().size() == 1 + 2 * 4 ? 0 : 1;
}
