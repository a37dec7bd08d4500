#pragma once
// What the programs of a plan exchange in one training step, as find_placement wants it.
#include <vector>

#include "framework/program/program.hpp"
#include "framework/search/placement.hpp"

namespace altiplano {

/// `programs` of all ranks, by rank, each on the slot of its number. Exchanges of the same slots are summed.
std::vector<SlotExchange> exchanges_of(const std::vector<Program>& programs);

}  // namespace altiplano
