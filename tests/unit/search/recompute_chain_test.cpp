#include "framework/search/recompute_chain.hpp"

#include <boost/test/unit_test.hpp>
#include <limits>
#include <map>
#include <queue>
#include <random>

using namespace altiplano;

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// The fastest of all schedules that keep what they have decided to keep: a search through everything that can lie in
/// memory, which knows nothing of how the dynamic program divides chains.
class EverySchedule {
 public:
  explicit EverySchedule(const RecomputeChain& chain) : chain_(chain), n_(static_cast<int>(chain.stages.size())) {}

  double best(int64_t slots) {
    slots_ = slots;
    offer({1u, 0u, 0, n_}, 0, 0);
    while (!open_.empty()) {
      const auto [seconds, state] = open_.top();
      open_.pop();
      if (seconds > known_.at(state)) continue;
      if (state.gradient == 0) return seconds;
      go_forward(state, seconds);
      go_back(state, seconds);
    }
    return kNever;
  }

 private:
  /// Results that are kept, results of which everything is saved, the result that passes by (0: none), the result whose
  /// gradient is there.
  struct State {
    unsigned kept, saved;
    int passing, gradient;
    auto operator<=>(const State&) const = default;
  };

  int64_t size(int result) const { return result == 0 ? chain_.input : stage(result - 1).output; }
  const ChainStage& stage(int i) const { return chain_.stages[static_cast<size_t>(i)]; }

  int64_t held(const State& state) const {
    int64_t slots = size(state.gradient) + (state.passing > 0 ? size(state.passing) : 0);
    for (int i = 0; i <= n_; ++i) {
      if (state.kept >> i & 1) slots += size(i);
      if (state.saved >> i & 1) slots += stage(i - 1).saved;
    }
    return slots;
  }

  void offer(const State& state, double seconds, int64_t peak) {
    if (peak > slots_) return;
    auto [known, fresh] = known_.emplace(state, seconds);
    if (!fresh && known->second <= seconds) return;
    known->second = seconds;
    open_.push({seconds, state});
  }

  void go_forward(const State& state, double seconds) {
    for (int i = 0; i < state.gradient; ++i) {
      const bool is_kept = (state.kept | state.saved) >> i & 1, passes = state.passing == i && i > 0;
      if (state.passing > 0 ? !passes : !is_kept) continue;
      for (bool keeps : {false, true}) {
        if (keeps ? is_kept : !is_kept && !passes) continue;
        State next = state;
        if (keeps) next.kept |= 1u << i;
        const double then = seconds + stage(i).forward;
        next.passing = i + 1;
        if (i + 1 < state.gradient) offer(next, then, held(state) + size(i + 1));
        if (!keeps && !is_kept) continue;
        next.passing = 0;
        next.saved |= 1u << (i + 1);
        offer(next, then, held(state) + stage(i).saved);
      }
    }
  }

  void go_back(const State& state, double seconds) {
    const int i = state.gradient - 1;
    if (state.passing > 0 || !(state.saved >> state.gradient & 1) || !((state.kept | state.saved) >> i & 1)) return;
    State next = state;
    next.gradient = i;
    next.saved &= ~(1u << state.gradient);
    if (i > 0) next.kept &= ~(1u << i);
    offer(next, seconds + stage(i).backward, held(state));
  }

  const RecomputeChain& chain_;
  const int n_;
  int64_t slots_ = 0;
  std::map<State, double> known_;
  using Open = std::pair<double, State>;
  std::priority_queue<Open, std::vector<Open>, std::greater<>> open_;
};

}  // namespace

// Golden results F: four stages of forward 1, backward 2, results of one slot, two with what backward reads, then a
// loss that takes nothing.
BOOST_AUTO_TEST_CASE(chains_reach_the_golden_results) {
  RecomputeChain chain{1, std::vector<ChainStage>(4, ChainStage{1, 2, 1, 2})};
  chain.stages.push_back({0, 0, 0, 0});
  const std::map<int64_t, double> golden = {{5, 18}, {6, 15}, {7, 14}, {8, 14}, {9, 13}, {10, 12}, {20, 12}};
  for (const auto& [slots, seconds] : golden) {
    const auto found = cheapest_recomputation(chain, slots);
    BOOST_REQUIRE(found.has_value());
    BOOST_TEST(found->seconds == seconds);
    const auto replayed = replay(chain, found->ops);
    BOOST_REQUIRE(replayed.has_value());
    BOOST_TEST(replayed->seconds == seconds);
    BOOST_TEST(replayed->peak <= slots);
  }
  for (int64_t slots : {0, 1, 4}) BOOST_TEST(!cheapest_recomputation(chain, slots).has_value());
}

BOOST_AUTO_TEST_CASE(four_hundred_random_chains_take_what_the_best_of_all_schedules_does) {
  int num_possible = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    std::mt19937_64 random(seed);
    auto up_to = [&](int most) { return static_cast<int64_t>(random() % static_cast<uint64_t>(most + 1)); };
    RecomputeChain chain{1 + up_to(3), {}};
    int64_t all = chain.input;
    for (int64_t i = up_to(3); i >= 0; --i) {
      const int64_t output = 1 + up_to(3);
      chain.stages.push_back({static_cast<double>(up_to(5)), static_cast<double>(up_to(6)), output, output + up_to(4)});
      all += chain.stages.back().saved;
    }
    const int64_t slots = up_to(static_cast<int>(all) + 2);
    const double best = EverySchedule(chain).best(slots);
    const auto found = cheapest_recomputation(chain, slots);
    BOOST_TEST_CONTEXT("seed " << seed) {
      BOOST_TEST(found.has_value() == (best < kNever));
      if (!found) continue;
      ++num_possible;
      BOOST_TEST(found->seconds == best);
      const auto replayed = replay(chain, found->ops);
      BOOST_REQUIRE(replayed.has_value());
      BOOST_TEST(replayed->seconds == best);
      BOOST_TEST(replayed->peak <= slots);
    }
  }
  BOOST_TEST(num_possible > 80);
}

BOOST_AUTO_TEST_CASE(schedules_that_use_what_is_gone_are_no_schedules) {
  const RecomputeChain chain{1, {{1, 2, 1, 2}, {1, 2, 1, 2}}};
  using enum ChainOpKind;
  BOOST_TEST(replay(chain, {{kForwardSaving, 0}, {kForwardSaving, 1}, {kBackward, 1}, {kBackward, 0}}).has_value());
  BOOST_TEST(!replay(chain, {{kForwardSaving, 0}, {kForwardSaving, 1}, {kBackward, 1}}).has_value());
  BOOST_TEST(!replay(chain, {{kForward, 0}, {kForward, 1}, {kBackward, 1}, {kBackward, 0}}).has_value());
  BOOST_TEST(!replay(chain, {{kForwardSaving, 1}, {kBackward, 1}}).has_value());
  BOOST_TEST(!replay(chain, {{kForwardSaving, 2}}).has_value());
  BOOST_TEST(cheapest_recomputation({1, {}}, 1)->ops.empty());
}
