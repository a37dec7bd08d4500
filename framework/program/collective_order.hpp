#pragma once
// One global order of collectives: proof that a backend may run one collective at a time on every rank, in program
// order, whatever groups overlap. Part of verify_programs.
#include "framework/program/program.hpp"

namespace altiplano {

/// Refuses programs whose ranks call overlapping groups in conflicting orders, naming a rank, its call and who is
/// elsewhere. `list`: the entries that run in a row (step, validation). Members of a group whose programs are not among
/// these are taken to come when the others do.
Status check_collective_order(const std::vector<Program>& programs, std::vector<TimetableEntry> Program::*list);

}  // namespace altiplano
