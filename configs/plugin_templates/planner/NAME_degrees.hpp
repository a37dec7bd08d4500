#pragma once
// The rule, as a pure function: how many replicas, tensor ranks and stages.
#include "framework/plan/degrees.hpp"

namespace @name@_plugin {

/// Stages as far as `max_stages` allows, the rest replicas: the largest divisor of `num_ranks` that is no larger.
altiplano::Degrees choose_degrees(int num_ranks, int max_stages);

}  // namespace @name@_plugin
