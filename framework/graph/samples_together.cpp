#include "framework/graph/samples_together.hpp"

namespace altiplano {

Result<int64_t> samples_together(const Graph& graph) {
  const Op* first = nullptr;
  for (const Op& op : graph.ops()) {
    if (!OpTable::instance().get(op.kind).takes_samples_together) continue;
    if (first == nullptr) first = &op;
    const int64_t own = op.attributes.get_int("samples"), others = first->attributes.get_int("samples");
    if (own != others)
      return invalid_argument("op {} takes {} samples together, op {} {}; all ops of a model take the same number",
                              first->name, others, op.name, own);
  }
  return first == nullptr ? 0 : first->attributes.get_int("samples");
}

}  // namespace altiplano
