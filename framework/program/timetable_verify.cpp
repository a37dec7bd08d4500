// verify_timetable: what every schedule owes (order and counts), then the proof of freedom from deadlock by running the
// timetable.
#include <map>
#include <optional>
#include <tuple>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/program/timetable.hpp"

namespace altiplano {
namespace {

struct Place {
  int worker = 0, index = 0, chunk = 0;
};
/// (kind, stage, microbatch) -> where it is done.
using Places = std::map<std::tuple<ActionKind, int, int>, Place>;

Status check_shape(const Timetable& table) {
  if (table.num_stages < 1 || table.num_microbatches < 1) {
    return invalid_argument("timetable: {} and {}; the least is 1 of each", counted(table.num_stages, "stage"),
                            counted(table.num_microbatches, "microbatch", "microbatches"));
  }
  if (table.chunk_stage.size() != table.workers.size()) {
    return invalid_argument("timetable: chunk_stage names {} but {} {} actions",
                            counted(static_cast<int64_t>(table.chunk_stage.size()), "worker"), table.workers.size(),
                            plural(static_cast<int64_t>(table.workers.size()), "has", "have"));
  }
  for (size_t w = 0; w < table.chunk_stage.size(); ++w) {
    for (StageId stage : table.chunk_stage[w]) {
      if (!stage.is_valid() || stage.value >= table.num_stages) {
        return invalid_argument("timetable: w{} hosts stage {}; there are stages 0 to {}", w, stage,
                                table.num_stages - 1);
      }
    }
  }
  return Status::ok();
}

Status check_action(const Timetable& table, size_t worker, const Action& action) {
  if (action.kind == ActionKind::kValidate || letter_of(action.kind) == '?') {
    return invalid_argument("timetable: w{} {}: not an action of a training step (those are F B W R G U)", worker,
                            action.to_string());
  }
  int num_chunks = static_cast<int>(table.chunk_stage[worker].size());
  if (action.chunk < 0 || action.chunk >= num_chunks) {
    return invalid_argument("timetable: w{} {}: the worker hosts {}", worker, action.to_string(),
                            counted(num_chunks, "chunk"));
  }
  if (action.microbatch < 0 || action.microbatch >= table.num_microbatches) {
    return invalid_argument("timetable: w{} {}: microbatches are 0 to {}", worker, action.to_string(),
                            table.num_microbatches - 1);
  }
  return Status::ok();
}

/// G and U of a worker: no F, B, W, R behind the first, G before U.
Status check_tail(const Timetable& table) {
  for (size_t w = 0; w < table.workers.size(); ++w) {
    char last = 'F';
    for (const Action& action : table.workers[w]) {
      char now = letter_of(action.kind);
      bool is_tail = now == 'G' || now == 'U';
      if ((!is_tail && (last == 'G' || last == 'U')) || (now == 'G' && last == 'U')) {
        return invalid_argument("timetable: w{} {}: comes after {}; G follows every B and W, U follows G", w,
                                action.to_string(), last);
      }
      last = now;
    }
  }
  return Status::ok();
}

Result<Places> find_places(const Timetable& table) {
  Places places;
  for (size_t w = 0; w < table.workers.size(); ++w) {
    for (size_t i = 0; i < table.workers[w].size(); ++i) {
      const Action& action = table.workers[w][i];
      ALTIPLANO_RETURN_IF_ERROR(check_action(table, w, action));
      if (action.kind == ActionKind::kReduce || action.kind == ActionKind::kUpdate) continue;
      int stage = table.chunk_stage[w][static_cast<size_t>(action.chunk)].value;
      Place place{static_cast<int>(w), static_cast<int>(i), action.chunk};
      auto [at, is_new] = places.try_emplace({action.kind, stage, action.microbatch}, place);
      if (!is_new) {
        return invalid_argument("timetable: {} of microbatch {} at stage {} stands twice, on w{} and w{}; needed: once",
                                letter_of(action.kind), action.microbatch, stage, at->second.worker, w);
      }
    }
  }
  return places;
}

const Place* find_place(const Places& places, ActionKind kind, int stage, int microbatch) {
  auto at = places.find({kind, stage, microbatch});
  return at == places.end() ? nullptr : &at->second;
}

/// `second` (when there) is done behind `first`, by the same chunk of the same worker.
Status check_order(const Places& places, ActionKind first, ActionKind second, int stage, int microbatch) {
  const Place* a = find_place(places, first, stage, microbatch);
  const Place* b = find_place(places, second, stage, microbatch);
  if (a == nullptr || b == nullptr) return Status::ok();
  if (a->worker == b->worker && a->chunk == b->chunk && a->index < b->index) return Status::ok();
  return invalid_argument(
      "timetable: {}{} at stage {} (w{} position {}) must come after its {}{} (w{} position {}) in the same chunk",
      letter_of(second), microbatch, stage, b->worker, b->index, letter_of(first), microbatch, a->worker, a->index);
}

Status check_counts_and_order(const Timetable& table, const Places& places) {
  bool has_weight_parts = false;
  for (const auto& [key, place] : places) has_weight_parts |= std::get<0>(key) == ActionKind::kBackwardWeight;
  std::vector<ActionKind> needed = {ActionKind::kForward, ActionKind::kBackward};
  if (has_weight_parts) needed.push_back(ActionKind::kBackwardWeight);
  for (int stage = 0; stage < table.num_stages; ++stage) {
    for (int m = 0; m < table.num_microbatches; ++m) {
      for (ActionKind kind : needed) {
        if (find_place(places, kind, stage, m) == nullptr) {
          return invalid_argument("timetable: {} of microbatch {} at stage {} is missing; needed: once",
                                  letter_of(kind), m, stage);
        }
      }
      ALTIPLANO_RETURN_IF_ERROR(check_order(places, ActionKind::kForward, ActionKind::kBackward, stage, m));
      ALTIPLANO_RETURN_IF_ERROR(check_order(places, ActionKind::kBackward, ActionKind::kBackwardWeight, stage, m));
      ALTIPLANO_RETURN_IF_ERROR(check_order(places, ActionKind::kForward, ActionKind::kRecompute, stage, m));
      ALTIPLANO_RETURN_IF_ERROR(check_order(places, ActionKind::kRecompute, ActionKind::kBackward, stage, m));
    }
  }
  return Status::ok();
}

Status check_edges(const Timetable& table) {
  auto is_there = [&](int worker, int index) {
    return worker >= 0 && worker < static_cast<int>(table.workers.size()) && index >= 0 &&
           index < static_cast<int>(table.workers[static_cast<size_t>(worker)].size());
  };
  for (const auto& edge : table.after) {
    if (!is_there(edge.from_worker, edge.from_index) || !is_there(edge.to_worker, edge.to_index)) {
      return invalid_argument("timetable: edge from w{} position {} to w{} position {} leaves the table",
                              edge.from_worker, edge.from_index, edge.to_worker, edge.to_index);
    }
  }
  return Status::ok();
}

/// Runs the table, an action at a time, wherever one can run.
class Run {
 public:
  Run(const Timetable& table, const Places& places) : table_(table), places_(places), next_(table.workers.size(), 0) {
    for (const auto& edge : table.after)
      edges_.emplace(std::pair(edge.to_worker, edge.to_index), std::pair(edge.from_worker, edge.from_index));
  }

  Status to_the_end() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int w = 0; w < static_cast<int>(next_.size()); ++w) {
        while (!is_at_end(w) && !obstacle(w)) step(w), moved = true;
      }
    }
    std::vector<std::string> stuck;
    for (int w = 0; w < static_cast<int>(next_.size()); ++w) {
      if (!is_at_end(w))
        stuck.push_back(fmt::format("w{} stands at {} and waits for {}", w, current(w).to_string(), *obstacle(w)));
    }
    if (stuck.empty()) return Status::ok();
    return invalid_argument("timetable: deadlock with zero buffering: {}", join(stuck, "; "));
  }

 private:
  using Wire = std::tuple<int, int, ActionKind>;  ///< worker, chunk, direction

  bool is_at_end(int worker) const { return next(worker) == table_.workers[static_cast<size_t>(worker)].size(); }
  size_t next(int worker) const { return next_[static_cast<size_t>(worker)]; }
  const Action& current(int worker) const { return table_.workers[static_cast<size_t>(worker)][next(worker)]; }
  bool is_done(int worker, int index) const { return static_cast<size_t>(index) < next(worker); }
  static bool is_sent(ActionKind kind) { return kind == ActionKind::kForward || kind == ActionKind::kBackward; }

  int stage_of(int worker, const Action& action) const {
    return table_.chunk_stage[static_cast<size_t>(worker)][static_cast<size_t>(action.chunk)].value;
  }
  /// Where the data of an F or B comes from (`steps` -1) or goes to (+1), in its direction of travel.
  const Place* neighbour(int worker, const Action& action, int steps) const {
    if (!is_sent(action.kind)) return nullptr;
    int forward = action.kind == ActionKind::kForward ? steps : -steps;
    return find_place(places_, action.kind, stage_of(worker, action) + forward, action.microbatch);
  }

  /// What keeps the worker's next action from running.
  std::optional<std::string> obstacle(int worker) const {
    const Action& action = current(worker);
    auto [first, last] = edges_.equal_range({worker, static_cast<int>(next(worker))});
    for (auto at = first; at != last; ++at) {
      auto [from, index] = at->second;
      if (!is_done(from, index)) return fmt::format("w{} to do {} (edge)", from, text_at(from, index));
    }
    if (const Place* source = neighbour(worker, action, -1); source && !is_done(source->worker, source->index)) {
      return fmt::format("w{} to do {}", source->worker, text_at(source->worker, source->index));
    }
    const Place* target = neighbour(worker, action, +1);
    if (target == nullptr || target->worker == worker) return std::nullopt;
    auto waiting = wires_.find({worker, action.chunk, action.kind});
    if (waiting == wires_.end()) return std::nullopt;
    return fmt::format("w{} to take the message for its {}", waiting->second.worker,
                       text_at(waiting->second.worker, waiting->second.index));
  }

  void step(int worker) {
    const Action& action = current(worker);
    if (const Place* source = neighbour(worker, action, -1); source && source->worker != worker)
      wires_.erase({source->worker, source->chunk, action.kind});
    if (const Place* target = neighbour(worker, action, +1); target && target->worker != worker) {
      wires_[{worker, action.chunk, action.kind}] = *target;
    }
    ++next_[static_cast<size_t>(worker)];
  }

  std::string text_at(int worker, int index) const {
    return table_.workers[static_cast<size_t>(worker)][static_cast<size_t>(index)].to_string();
  }

  const Timetable& table_;
  const Places& places_;
  std::vector<size_t> next_;
  std::multimap<std::pair<int, int>, std::pair<int, int>> edges_;
  std::map<Wire, Place> wires_;  ///< full wire buffers and who takes them
};

}  // namespace

Status verify_timetable(const Timetable& timetable) {
  ALTIPLANO_RETURN_IF_ERROR(check_shape(timetable));
  ALTIPLANO_ASSIGN(Places places, find_places(timetable));
  ALTIPLANO_RETURN_IF_ERROR(check_counts_and_order(timetable, places));
  ALTIPLANO_RETURN_IF_ERROR(check_tail(timetable));
  ALTIPLANO_RETURN_IF_ERROR(check_edges(timetable));
  return Run(timetable, places).to_the_end();
}

}  // namespace altiplano
