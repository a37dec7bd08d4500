#pragma once
// program/ (L3): what a rank executes: blocks, timetable, buffers. One Program, three interpreters (verify, simulate,
// run). May include L0-L2 and plan/; nothing here runs anything or knows a device, a backend or a plugin.
//
// Timetable: a partial order of actions per worker. An action is a kind at (microbatch, chunk), text form `F3@1`
// (microbatch 3, chunk 1; `@0` is left out). A worker runs its list in order; `after` adds edges between workers beyond
// those that data implies.
#include <compare>
#include <string>
#include <vector>

#include "framework/base/ids.hpp"
#include "framework/base/status.hpp"

namespace altiplano {

/// Open set: later schedules add kinds; an interpreter refuses a kind it does not know.
enum class ActionKind : uint8_t {
  kForward,         ///< F
  kBackward,        ///< B: input gradients (and weight gradients unless the schedule splits them off)
  kBackwardWeight,  ///< W
  kRecompute,       ///< R
  kValidate,        ///< V: forward without dropout and without stash
  kReduce,          ///< G: totals of all ranks to every host (the end of a validation)
  kUpdate,          ///< U: gradients to the optimizer's layout, totals, the decision, optimizer, parameter gathers
};
char letter_of(ActionKind kind);

struct Action {
  ActionKind kind = ActionKind::kForward;
  int microbatch = 0;  ///< 0 for G and U
  int chunk = 0;       ///< position in the worker's chunk list
  std::string to_string() const;
  static Result<Action> parse(const std::string& text);
  auto operator<=>(const Action&) const = default;
};

/// Cross-worker edge: worker `to`'s action waits for worker `from`'s.
struct TimetableEdge {
  int from_worker = 0, from_index = 0, to_worker = 0, to_index = 0;
};

struct Timetable {
  int num_stages = 1;
  int num_microbatches = 1;
  /// chunk_stage[w][c]: the stage that chunk c of worker w is (a stage that stands twice has copies: a replica group).
  std::vector<std::vector<StageId>> chunk_stage;
  std::vector<std::vector<Action>> workers;
  std::vector<TimetableEdge> after;

  /// One line per worker: "w0: F0 F1 B0 F2 B1 B2". Where worker w is not just stage w its chunks are named, "w0 (s0
  /// s2): F0 F0@1 …"; edges follow as "after w0:F0 -> w1:B0".
  std::string to_string() const;
  /// Reads what to_string writes; stages and microbatches are counted from what it names. Refusals name the line.
  static Result<Timetable> parse(const std::string& text);
};

/// Checks what every schedule owes: each (stage, microbatch) forward once and backward once, backward after its forward
/// on the worker that did it (W after its B, all or none; R between F and B; G after every B and W, U after G), and no
/// deadlock with zero buffering when a stage waits for its neighbours: the channel holds nothing. A message stays in
/// its sender's one wire buffer (per chunk and direction) until the receiver's action takes it, and the next action
/// that would fill the buffer waits for that. The proof runs the timetable: nothing in it is a choice, so if one order
/// of running it ends, every order does.
Status verify_timetable(const Timetable& timetable);
/// Largest number of microbatches between forward and backward on each worker.
std::vector<int> max_in_flight(const Timetable& timetable);

}  // namespace altiplano
