#include "framework/search/recompute_chain.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "framework/solve/choice_problem.hpp"

namespace altiplano {

namespace {

constexpr double kNoSchedule = std::numeric_limits<double>::infinity();

/// Best times of stages first .. last with m slots beside what the first reads; the gradient of the last result is
/// there.
class Rotor {
 public:
  Rotor(const RecomputeChain& chain, int64_t slots)
      : chain_(chain), num_stages_(static_cast<int>(chain.stages.size())) {
    slots_ = slots - chain.input;
    sums_ = {0};
    for (const ChainStage& stage : chain.stages) sums_.push_back(sums_.back() + stage.forward);
  }

  std::optional<ChainSchedule> run() {
    if (num_stages_ == 0) return ChainSchedule{};
    if (slots_ < 0) return std::nullopt;
    const auto size = to_index(num_stages_) * to_index(num_stages_) * static_cast<size_t>(slots_ + 1);
    best_.assign(size, kNoSchedule);
    split_.assign(size, 0);
    for (int length = 1; length <= num_stages_; ++length)
      for (int first = 0; first + length <= num_stages_; ++first) fill(first, first + length - 1);
    ChainSchedule schedule;
    schedule.seconds = best_[at(0, num_stages_ - 1, slots_)];
    if (schedule.seconds == kNoSchedule) return std::nullopt;
    write(0, num_stages_ - 1, slots_, schedule.ops);
    return schedule;
  }

 private:
  /// In split_: the first stage's forward saves everything; else the first stage whose input is kept.
  static constexpr int kSaveAll = -1;

  const ChainStage& stage(int i) const { return chain_.stages[to_index(i)]; }
  size_t at(int first, int last, int64_t m) const {
    return (to_index(first) * to_index(num_stages_) + to_index(last)) * static_cast<size_t>(slots_ + 1) +
           static_cast<size_t>(m);
  }

  /// What a sweep through forward needs at least, beside what it starts from.
  int64_t least(int first, int last) const {
    if (first == last) return stage(first).output + stage(first).saved;
    int64_t most = stage(first).output;
    for (int j = first + 1; j < last; ++j) most = std::max(most, stage(j - 1).output + stage(j).output);
    return stage(last).output + most;
  }

  void fill(int first, int last) {
    for (int64_t m = least(first, last); m <= slots_; ++m) {
      double& best = best_[at(first, last, m)];
      if (first == last) {
        best = stage(first).forward + stage(first).backward;
        continue;
      }
      for (int j = first + 1; j <= last; ++j) {
        const int64_t kept = stage(j - 1).output;
        if (kept > m) continue;
        const double seconds =
            sums_[to_index(j)] - sums_[to_index(first)] + best_[at(j, last, m - kept)] + best_[at(first, j - 1, m)];
        if (seconds < best) best = seconds, split_[at(first, last, m)] = j;
      }
      const int64_t saved = stage(first).saved;
      if (saved > m) continue;
      const double seconds = best_[at(first, first, m)] + best_[at(first + 1, last, m - saved)];
      if (seconds <= best) best = seconds, split_[at(first, last, m)] = kSaveAll;
    }
  }

  void write(int first, int last, int64_t m, std::vector<ChainOp>& ops) const {
    const int split = first == last ? kSaveAll : split_[at(first, last, m)];
    if (split == kSaveAll) {
      ops.push_back({ChainOpKind::kForwardSaving, first});
      if (first < last) write(first + 1, last, m - stage(first).saved, ops);
      ops.push_back({ChainOpKind::kBackward, first});
      return;
    }
    ops.push_back({ChainOpKind::kForwardKeeping, first});
    for (int j = first + 1; j < split; ++j) ops.push_back({ChainOpKind::kForward, j});
    write(split, last, m - stage(split - 1).output, ops);
    write(first, split - 1, m, ops);
  }

  const RecomputeChain& chain_;
  int num_stages_;
  int64_t slots_;
  std::vector<double> sums_, best_;
  std::vector<int> split_;
};

/// What lies in memory while a schedule runs. Result i is what stage i reads; stage i - 1 makes it.
class Replay {
 public:
  explicit Replay(const RecomputeChain& chain) : chain_(chain), next_backward_(static_cast<int>(chain.stages.size())) {
    kept_.assign(chain.stages.size() + 1, false);
    saved_ = kept_;
    kept_[0] = true;
  }

  bool run(const ChainOp& op) {
    if (op.stage < 0 || op.stage >= next_backward_) return false;
    return op.kind == ChainOpKind::kBackward ? backward(op.stage) : forward(op);
  }

  bool is_done() const { return next_backward_ == 0; }
  ChainReplay result() const { return result_; }

 private:
  int64_t size(int result) const { return result == 0 ? chain_.input : chain_.stages[to_index(result - 1)].output; }

  bool is_there(int result) const { return kept_[to_index(result)] || saved_[to_index(result)] || passing_ == result; }

  int64_t held() const {
    int64_t slots = size(next_backward_);  // the gradient
    for (size_t i = 0; i < kept_.size(); ++i) {
      if (kept_[i]) slots += size(static_cast<int>(i));
      if (saved_[i]) slots += chain_.stages[i - 1].saved;
    }
    return passing_ > 0 ? slots + size(passing_) : slots;
  }

  bool forward(const ChainOp& op) {
    const ChainStage& stage = chain_.stages[to_index(op.stage)];
    if (!is_there(op.stage)) return false;
    const bool saves = op.kind == ChainOpKind::kForwardSaving;
    if (passing_ == op.stage && op.kind != ChainOpKind::kForward) kept_[to_index(op.stage)] = true, passing_ = 0;
    result_.seconds += stage.forward;
    result_.peak = std::max(result_.peak, held() + (saves ? stage.saved : stage.output));
    passing_ = saves ? 0 : op.stage + 1;
    if (saves) saved_[to_index(op.stage + 1)] = true;
    return true;
  }

  bool backward(int stage) {
    if (stage + 1 != next_backward_ || !saved_[to_index(next_backward_)] || !is_there(stage)) return false;
    result_.seconds += chain_.stages[to_index(stage)].backward;
    result_.peak = std::max(result_.peak, held());
    saved_[to_index(stage + 1)] = false;
    if (stage > 0) kept_[to_index(stage)] = false;
    next_backward_ = stage;
    return true;
  }

  const RecomputeChain& chain_;
  std::vector<bool> kept_, saved_;  // by result
  int passing_ = 0;                 // a result that nobody keeps; 0: none
  int next_backward_;               // the gradient of this result is there
  ChainReplay result_;
};

}  // namespace

std::optional<ChainSchedule> cheapest_recomputation(const RecomputeChain& chain, int64_t slots) {
  return Rotor(chain, slots).run();
}

std::optional<ChainReplay> replay(const RecomputeChain& chain, const std::vector<ChainOp>& ops) {
  Replay replay(chain);
  for (const ChainOp& op : ops)
    if (!replay.run(op)) return std::nullopt;
  if (!replay.is_done()) return std::nullopt;
  return replay.result();
}

}  // namespace altiplano
