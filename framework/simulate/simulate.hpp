#pragma once
// simulate/ (L4): what a step would take, from the same objects that the verifier proves and the executor runs. Pure:
// no clock, no hardware. May include L0-L3 and api/ for the planners' interface.
//
// simulate_timetable runs a Timetable with given costs. A worker does its list in order, one action at a time; an
// action starts when its worker is free, its data has come and the workers its edges name are done. Messages between
// workers travel while both compute (receives are posted early), `transfer` after their producer's end; chunks of one
// worker hand over for nothing. Since order is given, there is one outcome: every action starts at the length of the
// longest path to it. O(actions x log actions).
#include <vector>

#include "framework/base/status.hpp"
#include "framework/base/units.hpp"
#include "framework/program/timetable.hpp"

namespace altiplano {

/// Of one stage and microbatch. `backward` is what action B does: the whole backward, or the input's part where the
/// schedule has W.
struct StageCosts {
  Seconds forward, backward, backward_weight, recompute;
  Seconds reduce, update;  ///< once per step, by the chunk that G and U name
};

struct SimulationCosts {
  std::vector<StageCosts> stages;  ///< one per stage
  std::vector<Seconds> transfer;   ///< [s]: one message between stages s and s+1, either way; empty: free
};

struct SimulatedAction {
  Action action;
  Seconds begin, end;
};

struct Simulation {
  Seconds step;                                         ///< when the last worker is done
  double bubble = 0;                                    ///< idle share of all workers' time, 0 .. 1
  std::vector<Seconds> busy;                            ///< per worker
  std::vector<std::vector<SimulatedAction>> timelines;  ///< per worker, in order
};

/// Refuses a timetable that verify_timetable refuses, and costs that are negative or not one per stage (boundary).
Result<Simulation> simulate_timetable(const Timetable& timetable, const SimulationCosts& costs);

}  // namespace altiplano
