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

  /// The least sum of all comes first, without a bound: no division whose slowest stage is slower can be better than
  /// that one, and none can have a smaller sum.
  std::optional<StageAnswer> run() {
    if (least_stages_ > most_stages_) return std::nullopt;
    read_ways();
    solve(kNever);
    take_all();
    if (!best_) return std::nullopt;
    const double least_sum = this->least_sum(), slowest_weight = std::max(0, q_.microbatches - 1);
    auto is_hopeless = [&](double bound) {
      return least_sum + slowest_weight * bound >= std::min(best_->seconds, q_.most_seconds);
    };
    const auto first =
        std::partition_point(bounds_.begin(), bounds_.end(), [&](double bound) { return !is_possible(bound); });
    for (auto bound = first; bound != bounds_.end() && !is_hopeless(*bound); ++bound) {
      solve(*bound);
      take_all();
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

  /// sum_[left, first, devices]: the least sum of stages and cuts from layer `first` on, no stage slower than `bound`.
  void solve(double bound) {
    usable_.resize(ways_.size());
    for (size_t first = 0; first < ways_.size(); ++first) {
      usable_[first].clear();
      for (const Way& way : ways_[first])
        if (way.price.microbatch <= bound) usable_[first].push_back(&way);
    }
    const size_t size = to_index(most_stages_ + 1) * to_index(q_.layers + 1) * width_;
    sum_.assign(size, kNever);
    choice_.assign(size, {});
    sum_[state(0, q_.layers, 0)] = 0;
    for (int left = 1; left <= most_stages_; ++left)
      for (int first = q_.layers - left; first >= std::max(0, least_stages_ - left); --first)
        for (int devices = left * least_devices_; devices <= std::min(q_.devices, left * most_devices_); ++devices)
          choose(left, first, devices);
  }

  void choose(int left, int first, int devices) {
    double best = kNever;
    const Way* chosen = nullptr;
    for (const Way* way : usable_[to_index(first)]) {
      if (way->end > q_.layers - left + 1) break;  // the stages that follow have a layer each
      if (left > way->price.most_left || !is_state(left - 1, devices - way->devices)) continue;
      // The first stage's update ends the step.
      const double sum = way->price.microbatch + cut(first) + (first == 0 ? way->price.step : 0) +
                         sum_[state(left - 1, way->end, devices - way->devices)];
      if (sum >= best) continue;
      best = sum;
      chosen = way;
    }
    if (chosen == nullptr) return;
    sum_[state(left, first, devices)] = best;
    choice_[state(left, first, devices)] = {first, chosen->end, chosen->option};
  }

  void take_all() {
    for (int s = least_stages_; s <= most_stages_; ++s) take(s);
  }

  void take(int num_stages) {
    if (!is_state(num_stages, q_.devices) || sum_[state(num_stages, 0, q_.devices)] == kNever) return;
    StageAnswer answer;
    int first = 0, devices = q_.devices;
    for (int left = num_stages; left > 0; --left) {
      answer.stages.push_back(choice_[state(left, first, devices)]);
      devices -= q_.option_devices[to_index(answer.stages.back().option)];
      first = answer.stages.back().end;
    }
    answer.seconds = seconds_of(q_, answer.stages).value_or(kNever);
    const double rounding = best_ ? 1e-12 * std::abs(best_->seconds) : 0;
    if (!best_ || answer.seconds < best_->seconds - rounding ||
        (answer.seconds <= best_->seconds + rounding && answer.stages.size() < best_->stages.size()))
      best_ = std::move(answer);
  }

  const StageQuestion& q_;
  int least_devices_ = 1, most_devices_ = 1, least_stages_ = 1, most_stages_ = 1;
  size_t width_ = 1;                             // numbers of devices that one number of stages can take
  std::vector<std::vector<Way>> ways_;           // by first layer
  std::vector<std::vector<const Way*>> usable_;  // those that keep the bound
  std::vector<double> bounds_, sum_;
  std::vector<ChosenStage> choice_;
  std::optional<StageAnswer> best_;
};

}  // namespace

std::optional<StageAnswer> divide_into_stages(const StageQuestion& question) {
  return StageProgram(question).run();
}

std::optional<double> seconds_of(const StageQuestion& question, const std::vector<ChosenStage>& stages) {
  double sum = 0, slowest = 0, update = 0;
  for (size_t s = 0; s < stages.size(); ++s) {
    const ChosenStage& stage = stages[s];
    const auto price = question.price(stage.first, stage.end, stage.option);
    if (!price || price->most_left < static_cast<int>(stages.size() - s)) return std::nullopt;
    sum += price->microbatch;
    slowest = std::max(slowest, price->microbatch);
    if (s == 0) update = price->step;
    if (s > 0 && !question.cuts.empty()) sum += question.cuts[to_index(stage.first)];
  }
  return sum + std::max(0, question.microbatches - 1) * slowest + update;
}

}  // namespace altiplano
