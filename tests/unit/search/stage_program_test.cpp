#include "framework/search/stage_program.hpp"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <fstream>
#include <limits>
#include <map>
#include <random>

using namespace altiplano;

namespace {

/// Golden results E: L layers on D devices in submeshes of 1, 2, 4 and 8, `cost` seconds for k layers on n devices.
StageQuestion golden(int microbatches, double (*cost)(int layers, int devices)) {
  StageQuestion question;
  question.layers = question.devices = question.most_stages = 8;
  question.microbatches = microbatches;
  question.option_devices = {1, 2, 4, 8};
  question.price = [cost](int first, int end, int option) -> std::optional<StagePrice> {
    return StagePrice{cost(end - first, 1 << option), 0};
  };
  return question;
}

std::string shape_of(const StageAnswer& answer, const std::vector<int>& devices) {
  std::string text;
  for (const ChosenStage& stage : answer.stages)
    text += fmt::format("{}x{} ", stage.end - stage.first, devices[static_cast<size_t>(stage.option)]);
  return text;
}

/// The best of all divisions, tried one by one.
void try_all(const StageQuestion& question, std::vector<ChosenStage>& stages, int first, int devices, double& best) {
  if (first == question.layers) {
    if (devices != 0) return;
    if (static_cast<int>(stages.size()) < question.least_stages) return;
    if (auto seconds = seconds_of(question, stages)) best = std::min(best, *seconds);
    return;
  }
  if (static_cast<int>(stages.size()) == question.most_stages) return;
  for (int end = first + 1; end <= question.layers; ++end)
    for (int o = 0; o < static_cast<int>(question.option_devices.size()); ++o) {
      if (question.option_devices[static_cast<size_t>(o)] > devices) continue;
      stages.push_back({first, end, o});
      try_all(question, stages, end, devices - question.option_devices[static_cast<size_t>(o)], best);
      stages.pop_back();
    }
}

/// Costs that Alpa measured of GPT-6.7B on 16 V100: lines "- Profiling for submesh I (hosts, devices):" and
/// "cost[first, last, config]=c, max_n_succ_stage=s": how many stages may follow before memory ends, -1: it does not
/// even fit alone.
StageQuestion measured_question() {
  StageQuestion question;
  question.layers = 8;
  question.devices = 16;
  question.most_stages = 8;
  question.microbatches = 32;
  struct Cost {
    double seconds;
    int followers;
  };
  constexpr int kMostConfigs = 6;
  std::map<std::tuple<int, int, int>, Cost> costs;  // by first, end, submesh and configuration
  std::ifstream file(ALTIPLANO_SOURCE_DIR "/tests/golden/alpa_gpt6.7b_16gpu_stage_costs.txt");
  BOOST_REQUIRE(file.good());
  std::string line;
  int submesh = -1, num_costs = 0;
  while (std::getline(file, line)) {
    int number, hosts, devices, first, last, config, followers;
    double seconds;
    if (std::sscanf(line.c_str(), "- Profiling for submesh %d (%d, %d)", &number, &hosts, &devices) == 3) {
      question.option_devices.insert(question.option_devices.end(), kMostConfigs, hosts * devices);
      ++submesh;
    }
    if (std::sscanf(line.c_str(), "cost[%d, %d, %d]=%lf, max_n_succ_stage=%d", &first, &last, &config, &seconds,
                    &followers) != 5)
      continue;
    ++num_costs;
    BOOST_REQUIRE(config < kMostConfigs);
    costs[{first, last + 1, submesh * kMostConfigs + config}] = {seconds, followers};
  }
  BOOST_TEST(num_costs == 238);
  question.price = [costs](int first, int end, int option) -> std::optional<StagePrice> {
    const auto found = costs.find({first, end, option});
    if (found == costs.end()) return std::nullopt;
    return StagePrice{found->second.seconds, 0, found->second.followers + 1};
  };
  return question;
}

}  // namespace

BOOST_AUTO_TEST_CASE(measured_costs_of_a_large_model_are_divided_into_four_stages) {
  const StageQuestion question = measured_question();
  const auto answer = divide_into_stages(question);
  BOOST_REQUIRE(answer.has_value());
  BOOST_TEST(answer->seconds == 35.546, boost::test_tools::tolerance(1e-4));
  BOOST_REQUIRE(answer->stages.size() == 4u);
  for (const ChosenStage& stage : answer->stages)
    BOOST_TEST(question.option_devices[static_cast<size_t>(stage.option)] == 4);
}

BOOST_AUTO_TEST_CASE(stages_reach_the_golden_results) {
  struct Row {
    int microbatches;
    double (*cost)(int, int);
    double seconds;
    std::string shape;
  };
  auto even = [](int k, int n) { return static_cast<double>(k) / n; };
  auto fixed_loss = [](int k, int n) { return k * (1.0 / n + 0.05 * (n > 1)); };
  auto growing_loss = [](int k, int n) { return k * (1.0 / n + 0.02 * (n - 1)); };
  for (const Row& row : {Row{16, even, 16.0, "8x8 "}, Row{16, fixed_loss, 20.4, "4x4 4x4 "},
                         Row{16, growing_loss, 19.76, "2x2 2x2 2x2 2x2 "}, Row{1, growing_loss, 2.12, "8x8 "}}) {
    const StageQuestion question = golden(row.microbatches, row.cost);
    const auto answer = divide_into_stages(question);
    BOOST_REQUIRE(answer.has_value());
    BOOST_TEST(answer->seconds == row.seconds, boost::test_tools::tolerance(1e-12));
    BOOST_TEST(shape_of(*answer, question.option_devices) == row.shape);
  }
}

// What 1F1B costs over a slow network: the first of two stages begins its third microbatch when the first one is back.
BOOST_AUTO_TEST_CASE(stages_that_hold_back_wait_for_the_way_there_and_back) {
  StageQuestion question;
  question.layers = question.devices = question.least_stages = question.most_stages = 2;
  question.microbatches = 10;
  question.option_devices = {1};
  question.cuts = {0, 3};
  question.price = [](int first, int end, int) -> std::optional<StagePrice> {
    return StagePrice{1.0 * (end - first), 0};
  };
  BOOST_TEST(divide_into_stages(question).value().seconds == (1 + 1 + 3) + 9 * 1.0);
  question.holds_back = true;
  BOOST_TEST(divide_into_stages(question).value().seconds == (1 + 1 + 3) + 9 * (1 + 1 + 3) / 2.0);
  question.microbatches = 2;  // none has to wait
  BOOST_TEST(divide_into_stages(question).value().seconds == (1 + 1 + 3) + 1 * 1.0);
}

BOOST_AUTO_TEST_CASE(four_hundred_random_pipelines_are_divided_as_by_trying_everything) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    std::mt19937_64 random(seed);
    auto uniform = [&] { return static_cast<double>(random() >> 11) / 9007199254740992.0; };
    StageQuestion question;
    question.layers = 2 + static_cast<int>(random() % 5);
    question.devices = 1 + static_cast<int>(random() % 6);
    question.microbatches = 1 + static_cast<int>(random() % 8);
    question.most_stages = 1 + static_cast<int>(random() % 6);
    question.least_stages = 1 + static_cast<int>(random() % 2);
    question.option_devices = {1, 1, 2, 3};
    question.holds_back = seed % 2 == 1;
    for (int l = 0; l < question.layers; ++l) question.cuts.push_back(random() % 2 ? uniform() : 0);
    std::vector<double> times, bytes, steps;
    for (int i = 0; i < question.layers * 4; ++i) {
      times.push_back(uniform() * (i % 4 == 3 ? 0.4 : 1));
      bytes.push_back(uniform());
      steps.push_back(uniform());
    }
    const double limit = 0.5 + 4 * uniform();
    question.price = [=](int first, int end, int option) -> std::optional<StagePrice> {
      StagePrice price;
      double memory = 0;
      for (int l = first; l < end; ++l) {
        const auto i = static_cast<size_t>(l * 4 + option);
        price.microbatch += times[i];
        price.step += steps[i];
        memory += bytes[i];
      }
      if (memory * question.microbatches > limit) price.most_left = static_cast<int>(limit / memory);
      return price;
    };
    double best = std::numeric_limits<double>::infinity();
    std::vector<ChosenStage> stages;
    try_all(question, stages, 0, question.devices, best);
    const auto answer = divide_into_stages(question);
    BOOST_TEST_CONTEXT("seed " << seed) {
      BOOST_TEST(answer.has_value() == (best < std::numeric_limits<double>::infinity()));
      if (answer) {
        StageQuestion impatient = question;  // what is of no interest is not found, what is slightly faster is
        impatient.most_seconds = 0.999 * best;
        BOOST_TEST(!divide_into_stages(impatient).has_value());
        impatient.most_seconds = 1.001 * best;
        BOOST_TEST(divide_into_stages(impatient).value().seconds == best, boost::test_tools::tolerance(1e-9));
        BOOST_TEST(answer->seconds == best, boost::test_tools::tolerance(1e-9));
        BOOST_TEST(*seconds_of(question, answer->stages) == answer->seconds, boost::test_tools::tolerance(1e-12));
      }
    }
  }
}
