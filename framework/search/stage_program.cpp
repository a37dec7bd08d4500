#include "framework/search/stage_program.hpp"

#include <algorithm>
#include <cmath>

#include "framework/solve/choice_problem.hpp"

namespace altiplano {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Times that differ by less are one bound: sums of equal layers differ in their last bits.
constexpr double kSameTime = 1e-12;

/// A way to run layers first .. end-1, which are known from where it stands.
struct Way {
  int end = 0, option = 0, devices = 0;
  StagePrice price;
};

/// Whether a stage with so many left has to wait for a microbatch to come back before it begins another.
bool waits(const StageQuestion& question, int left) {
  return question.holds_back && left < question.microbatches;
}

/// What a step is made of.
struct StepParts {
  double sum = 0;     ///< of stages and cuts: one microbatch's way
  double period = 0;  ///< from one microbatch to the next
  double update = 0;
  double seconds(int microbatches) const { return sum + (microbatches - 1) * period + update; }
};

std::optional<StepParts> parts_of(const StageQuestion& question, const std::vector<ChosenStage>& stages) {
  StepParts parts;
  double there_and_back = 0;  // from this stage to the last
  for (size_t s = stages.size(); s-- > 0;) {
    const ChosenStage& stage = stages[s];
    const int left = static_cast<int>(stages.size() - s);
    const auto price = question.price(stage.first, stage.end, stage.option);
    if (!price || price->most_left < left) return std::nullopt;
    there_and_back += price->microbatch;
    parts.period = std::max(parts.period, price->microbatch);
    if (waits(question, left)) parts.period = std::max(parts.period, there_and_back / left);
    if (s == 0) parts.update = price->step;
    if (s > 0 && !question.cuts.empty()) there_and_back += question.cuts[to_index(stage.first)];
  }
  parts.sum = there_and_back;
  return parts;
}

class StageProgram {
 public:
  explicit StageProgram(const StageQuestion& question) : q_(question) {
    const auto [least, most] = std::ranges::minmax(question.option_devices);
    least_devices_ = least;
    most_devices_ = most;
    least_stages_ = std::max({1, question.least_stages, (question.devices + most - 1) / most});
    most_stages_ = std::min({question.most_stages, question.layers, question.devices / least});
    width_ = static_cast<size_t>(std::max(0, most_stages_) * (most - least) + 1);
  }

  /// The least sum of all comes first, without a bound: none can have a smaller one. Then the smallest time of a stage
  /// that can be the slowest, for something good; then down from the longest period that can still be better, each
  /// time below the one that was reached.
  std::optional<StageAnswer> run() {
    if (least_stages_ > most_stages_) return std::nullopt;
    read_ways();
    solve(kNever);
    take_all();
    if (!best_) return std::nullopt;
    if (q_.microbatches > 1) {
      const double least = least_sum();
      const auto first =
          std::partition_point(bounds_.begin(), bounds_.end(), [&](double bound) { return !is_possible(bound); });
      if (first != bounds_.end()) {
        solve(*first);
        take_all();
      }
      for (double bound = longest_of_interest(least); bound > 0 && is_possible(bound);)
        bound = std::min(take_all() * (1 - 2 * kSameTime), longest_of_interest(least));
    }
    return best_->seconds > q_.most_seconds ? std::nullopt : std::move(best_);
  }

 private:
  /// Whether so many stages can take just these devices.
  bool is_state(int left, int devices) const {
    return devices >= left * least_devices_ && devices <= left * most_devices_;
  }
  size_t state(int left, int first, int devices) const {
    return (to_index(left) * to_index(q_.layers + 1) + to_index(first)) * width_ +
           to_index(devices - left * least_devices_);
  }
  double cut(int first) const { return first == 0 || q_.cuts.empty() ? 0 : q_.cuts[to_index(first)]; }

  /// Every stage's price once, and the times that may be the slowest, ascending.
  void read_ways() {
    ways_.resize(to_index(q_.layers));
    for (int first = 0; first < q_.layers; ++first)
      for (int end = first + 1; end <= std::min(q_.layers, first + q_.layers - least_stages_ + 1); ++end)
        for (int o = 0; o < static_cast<int>(q_.option_devices.size()); ++o)
          if (const auto price = q_.price(first, end, o); price && price->most_left > 0)
            ways_[to_index(first)].push_back({end, o, q_.option_devices[to_index(o)], *price});
    std::vector<double> times;
    for (const auto& ways : ways_)
      for (const Way& way : ways) times.push_back(way.price.microbatch);
    std::ranges::sort(times);
    for (double time : times) {
      if (bounds_.empty() || time > bounds_.back() * (1 + kSameTime)) bounds_.push_back(time);
      bounds_.back() = time;  // the greatest of those that are one
    }
  }

  /// A period with which no sum makes a better step.
  double longest_of_interest(double least_sum) const {
    return (1 + kSameTime) * (std::min(best_->seconds, q_.most_seconds) - least_sum) / (q_.microbatches - 1);
  }

  bool is_possible(double bound) {
    solve(bound);
    return least_sum() != kNever;
  }

  double least_sum() const {
    double least = kNever;
    for (int s = least_stages_; s <= most_stages_; ++s)
      if (is_state(s, q_.devices)) least = std::min(least, sum_[state(s, 0, q_.devices)]);
    return least;
  }

  /// sum_[left, first, devices]: the least sum of stages and cuts from layer `first` on, no stage slower than `bound`,
  /// none that waits longer for each microbatch. Of equal sums, the one whose slowest stage is the fastest: where
  /// microbatches have to wait, stages may be uneven at no cost.
  void solve(double bound) {
    usable_.resize(ways_.size());
    for (size_t first = 0; first < ways_.size(); ++first) {
      usable_[first].clear();
      for (const Way& way : ways_[first])
        if (way.price.microbatch <= bound) usable_[first].push_back(&way);
    }
    const size_t size = to_index(most_stages_ + 1) * to_index(q_.layers + 1) * width_;
    sum_.assign(size, kNever);
    slowest_.assign(size, 0);
    choice_.assign(size, {});
    sum_[state(0, q_.layers, 0)] = 0;
    for (int left = 1; left <= most_stages_; ++left)
      for (int first = q_.layers - left; first >= std::max(0, least_stages_ - left); --first)
        for (int devices = left * least_devices_; devices <= std::min(q_.devices, left * most_devices_); ++devices)
          choose(left, first, devices, bound);
  }

  void choose(int left, int first, int devices, double bound) {
    double best = kNever, best_slowest = kNever;
    const Way* chosen = nullptr;
    for (const Way* way : usable_[to_index(first)]) {
      if (way->end > q_.layers - left + 1) break;  // the stages that follow have a layer each
      if (left > way->price.most_left || !is_state(left - 1, devices - way->devices)) continue;
      const size_t next = state(left - 1, way->end, devices - way->devices);
      const double there_and_back = way->price.microbatch + sum_[next];
      if (waits(q_, left) && there_and_back > left * bound) continue;
      // The first stage's update ends the step.
      const double sum = there_and_back + cut(first) + (first == 0 ? way->price.step : 0);
      const double slowest = std::max(way->price.microbatch, slowest_[next]);
      if (!(sum < best * (1 - kSameTime) || (sum <= best * (1 + kSameTime) && slowest < best_slowest))) continue;
      best = sum;
      best_slowest = slowest;
      chosen = way;
    }
    if (chosen == nullptr || best == kNever) return;
    sum_[state(left, first, devices)] = best;
    slowest_[state(left, first, devices)] = best_slowest;
    choice_[state(left, first, devices)] = {first, chosen->end, chosen->option};
  }

  /// The longest period of what was taken: with as many stages none of a longer one is better.
  double take_all() {
    double longest = 0;
    for (int s = least_stages_; s <= most_stages_; ++s) longest = std::max(longest, take(s));
    return longest;
  }

  double take(int num_stages) {
    if (!is_state(num_stages, q_.devices) || sum_[state(num_stages, 0, q_.devices)] == kNever) return 0;
    StageAnswer answer;
    int first = 0, devices = q_.devices;
    for (int left = num_stages; left > 0; --left) {
      answer.stages.push_back(choice_[state(left, first, devices)]);
      devices -= q_.option_devices[to_index(answer.stages.back().option)];
      first = answer.stages.back().end;
    }
    const std::optional<StepParts> parts = parts_of(q_, answer.stages);
    if (!parts) return 0;
    answer.seconds = parts->seconds(q_.microbatches);
    const double rounding = best_ ? 1e-12 * std::abs(best_->seconds) : 0;
    if (!best_ || answer.seconds < best_->seconds - rounding ||
        (answer.seconds <= best_->seconds + rounding && answer.stages.size() < best_->stages.size()))
      best_ = std::move(answer);
    return parts->period;
  }

  const StageQuestion& q_;
  int least_devices_ = 1, most_devices_ = 1, least_stages_ = 1, most_stages_ = 1;
  size_t width_ = 1;                             // numbers of devices that one number of stages can take
  std::vector<std::vector<Way>> ways_;           // by first layer
  std::vector<std::vector<const Way*>> usable_;  // those that keep the bound
  std::vector<double> bounds_, sum_, slowest_;
  std::vector<ChosenStage> choice_;
  std::optional<StageAnswer> best_;
};

}  // namespace

std::optional<StageAnswer> divide_into_stages(const StageQuestion& question) {
  return StageProgram(question).run();
}

std::optional<double> seconds_of(const StageQuestion& question, const std::vector<ChosenStage>& stages) {
  const auto parts = parts_of(question, stages);
  return parts ? std::optional(parts->seconds(std::max(1, question.microbatches))) : std::nullopt;
}

}  // namespace altiplano
