#include "framework/search/stage_program.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace altiplano {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class StageProgram {
 public:
  explicit StageProgram(const StageQuestion& question)
      : q_(question),
        most_stages_(std::min({question.most_stages, question.layers, question.devices})),
        num_options_(question.option_devices.size()) {
    read_prices();
  }

  std::optional<StageAnswer> run() {
    const double slowest_weight = std::max(0, q_.microbatches - 1);
    const auto first =
        std::partition_point(bounds_.begin(), bounds_.end(), [&](double bound) { return !is_possible(bound); });
    for (auto bound = first; bound != bounds_.end(); ++bound) {
      if (best_ && slowest_weight * *bound >= best_->seconds) break;
      solve(*bound);
      for (int s = q_.least_stages; s <= most_stages_; ++s) take(s);
    }
    return best_;
  }

 private:
  size_t price_index(int first, int end, size_t option, int left) const {
    const auto l = static_cast<size_t>(q_.layers);
    return ((static_cast<size_t>(left - 1) * l + static_cast<size_t>(first)) * l + static_cast<size_t>(end - 1)) *
               num_options_ +
           option;
  }
  size_t state(int left, int first, int devices) const {
    return (static_cast<size_t>(left) * static_cast<size_t>(q_.layers + 1) + static_cast<size_t>(first)) *
               static_cast<size_t>(q_.devices + 1) +
           static_cast<size_t>(devices);
  }
  double cut(int first) const { return first == 0 || q_.cuts.empty() ? 0 : q_.cuts[static_cast<size_t>(first)]; }

  /// Every stage's price once, and the times that may be the slowest, ascending.
  void read_prices() {
    const auto l = static_cast<size_t>(q_.layers);
    prices_.assign(static_cast<size_t>(most_stages_) * l * l * num_options_, {kNever, kNever});
    for (int left = 1; left <= most_stages_; ++left)
      for (int first = 0; first < q_.layers; ++first)
        for (int end = first + 1; end <= q_.layers; ++end)
          for (size_t o = 0; o < num_options_; ++o)
            if (auto price = q_.price(first, end, static_cast<int>(o), left)) {
              prices_[price_index(first, end, o, left)] = *price;
              bounds_.push_back(price->microbatch);
            }
    std::sort(bounds_.begin(), bounds_.end());
    bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
  }

  bool is_possible(double bound) {
    solve(bound);
    for (int s = q_.least_stages; s <= most_stages_; ++s)
      if (sum_[state(s, 0, q_.devices)] != kNever) return true;
    return false;
  }

  /// sum_[left, first, devices]: the least sum of stages and cuts from layer `first` on, no stage slower than `bound`.
  void solve(double bound) {
    const size_t size = state(most_stages_, q_.layers, q_.devices) + 1;
    sum_.assign(size, kNever);
    choice_.assign(size, {});
    sum_[state(0, q_.layers, 0)] = 0;
    for (int left = 1; left <= most_stages_; ++left)
      for (int first = q_.layers - left; first >= 0; --first)
        for (int devices = left; devices <= q_.devices; ++devices) choose(left, first, devices, bound);
  }

  void choose(int left, int first, int devices, double bound) {
    double& best = sum_[state(left, first, devices)];
    for (int end = first + 1; end <= q_.layers; ++end)
      for (size_t o = 0; o < num_options_; ++o) {
        const int takes = q_.option_devices[o];
        if (takes > devices) continue;
        const StagePrice& price = prices_[price_index(first, end, o, left)];
        if (!(price.microbatch <= bound)) continue;
        // The first stage's update ends the step.
        const double sum =
            price.microbatch + cut(first) + (first == 0 ? price.step : 0) + sum_[state(left - 1, end, devices - takes)];
        if (sum >= best) continue;
        best = sum;
        choice_[state(left, first, devices)] = {first, end, static_cast<int>(o)};
      }
  }

  void take(int num_stages) {
    if (sum_[state(num_stages, 0, q_.devices)] == kNever) return;
    StageAnswer answer;
    int first = 0, devices = q_.devices;
    for (int left = num_stages; left > 0; --left) {
      answer.stages.push_back(choice_[state(left, first, devices)]);
      devices -= q_.option_devices[static_cast<size_t>(answer.stages.back().option)];
      first = answer.stages.back().end;
    }
    answer.seconds = seconds_of(q_, answer.stages).value_or(kNever);
    const double rounding = best_ ? 1e-12 * std::abs(best_->seconds) : 0;
    if (!best_ || answer.seconds < best_->seconds - rounding ||
        (answer.seconds <= best_->seconds + rounding && answer.stages.size() < best_->stages.size()))
      best_ = std::move(answer);
  }

  const StageQuestion& q_;
  int most_stages_;
  size_t num_options_;
  std::vector<StagePrice> prices_;
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
    const auto price = question.price(stage.first, stage.end, stage.option, static_cast<int>(stages.size() - s));
    if (!price) return std::nullopt;
    sum += price->microbatch;
    slowest = std::max(slowest, price->microbatch);
    if (s == 0) update = price->step;
    if (s > 0 && !question.cuts.empty()) sum += question.cuts[static_cast<size_t>(stage.first)];
  }
  return sum + std::max(0, question.microbatches - 1) * slowest + update;
}

}  // namespace altiplano
