#pragma once
// The field's rule for the tensor axis (Megatron-LM, Shoeybi et al. 2019, section 3), stated on factors instead of
// layer names: split an output factor of a weight when every path from there stays parallel until a sum ends it (column
// then row), or a sum factor that only the weight has (vocabulary rows of an embedding). Weights, biases and the
// row-parallel partner met on the way are split alike.
#include <map>

#include "framework/sharding/rule.hpp"

namespace altiplano {

/// Storage specs, over axis `tensor`, of the parameters to split; absent parameters stay whole. A factor that is
/// counted (heads) must be a multiple of `degree`, a long dim (16 elements per device and more) may be uneven;
/// otherwise the refusal lists the valid degrees.
Result<std::map<ValueId, ShardingSpec>> tensor_parallel_specs(const Graph& graph,
                                                              const std::vector<ShardingRule>& rules, int degree);

}  // namespace altiplano
