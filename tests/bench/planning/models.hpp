#pragma once
// Planning and simulating published models, as `altiplano plan` and `altiplano simulate` do it from nothing to a proved
// plan: in a process of their own, with an empty plan cache, on one core.

namespace altiplano::bench {

/// GPT-2.6B on 8 devices, GPT-39B on 64, 1T parameters on 3,072, and the simulation of 1,024 devices.
void print_models();
/// The same layers again and again, and as many of more and more kinds.
void print_depths();

}  // namespace altiplano::bench
