// Plan invariance on device/cpu: fp32 within rounding, bf16 within the bound that docs/numerics.md derives.
#include <cmath>

#include "tests/support/invariance.hpp"

namespace altiplano::test {

namespace {

std::vector<PlanCase> cases() {
  std::vector<PlanCase> cases;
  int number = 0;
  for (Degrees degrees : {Degrees{1, 1, 1},
                          {2, 1, 1},
                          {1, 2, 1},
                          {1, 1, 2},
                          {3, 1, 1},
                          {1, 3, 1},
                          {2, 2, 1},
                          {1, 2, 2},
                          {2, 1, 2},
                          {2, 2, 2},
                          {1, 8, 1},
                          {1, 1, 8}}) {
    PlanCase c;
    c.degrees = degrees;
    c.microbatch = 24 / degrees.data / (1 + number % 2 * 3);
    c.schedule = number % 3 == 0 ? "gpipe" : "1f1b";
    c.zero = number / 2 % 4;
    c.sequence_parallel = number % 2 == 0;
    c.tied = number % 4 != 1;
    c.optimizer = number % 5 == 2 ? "sgd" : "adamw";
    c.fused = true;  // as jobs run on it
    if (24 / degrees.data % c.microbatch == 0) cases.push_back(c);
    ++number;
  }
  return cases;
}

TrainOptions on_cpu() {
  TrainOptions options;
  options.device = "cpu";
  options.validate = true;
  options.learning_rate = 3e-4;  // the job file's default; see docs/numerics.md on larger ones
  return options;
}

/// Largest |a - b| / b.
double relative(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (size_t i = 0; i < b.size(); ++i) largest = std::max(largest, std::abs(a.at(i) - b[i]) / b[i]);
  return largest;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cpu_invariance)

BOOST_AUTO_TEST_CASE(fp32_losses_and_norms_agree_within_rounding) {
  double loss = 0, norm = 0;
  for (const PlanCase& c : cases()) {
    // AdamW divides a gradient that is all rounding noise (a key bias has none) by its own size: single weights may
    // differ by the rate each step.
    TrainResult run = check_invariant(c, on_cpu(), DType::kF32, {1e-5, 1e-4, 0.2, true});
    const TrainResult& one = one_rank_run(c, DType::kF32, on_cpu());
    loss = std::max(loss, largest_difference(run.losses, one.losses));
    norm = std::max(norm, relative(run.norms, one.norms));
  }
  BOOST_TEST_MESSAGE("fp32: losses differ by at most " << loss << ", norms by " << norm << " relative");
}

BOOST_AUTO_TEST_CASE(fp32_agrees_with_the_reference_in_f64) {
  PlanCase c;
  TrainResult cpu = one_rank_run(c, DType::kF32, on_cpu());
  TrainOptions exact;
  exact.validate = true;
  exact.learning_rate = on_cpu().learning_rate;
  const TrainResult& one = one_rank_run(c, DType::kF64, exact);
  BOOST_TEST(largest_difference(cpu.losses, one.losses) < 1e-5);
  BOOST_TEST(relative(cpu.norms, one.norms) < 1e-4);
}

BOOST_AUTO_TEST_CASE(bf16_losses_and_norms_agree_within_the_derived_bound) {
  // docs/numerics.md, "bf16": two independent roundings of a path of R operations with unit roundoff u differ by sqrt(2
  // R / 3) u.
  const double u = std::ldexp(1.0, -9), roundings = 8 * 2 * 8 + 6, bound = std::sqrt(2 * roundings / 3) * u;
  const double largest_logit = 0.6, loss_bound = 2 * bound * largest_logit / std::log(257.0);
  double loss = 0, norm = 0;
  for (const PlanCase& c : cases()) {
    TrainResult run = check_invariant(c, on_cpu(), DType::kBF16, {1, 1, 0.2, true});
    const TrainResult& one = one_rank_run(c, DType::kBF16, on_cpu());
    loss = std::max(loss, relative(run.losses, one.losses));
    norm = std::max(norm, relative(run.norms, one.norms));
  }
  BOOST_TEST_MESSAGE("bf16: losses differ by at most " << loss << " relative (bound " << loss_bound << "), norms by "
                                                       << norm << " (bound " << bound << ")");
  BOOST_TEST(loss <= loss_bound);
  BOOST_TEST(norm <= bound);
}

BOOST_AUTO_TEST_CASE(the_same_plan_twice_gives_the_same_bits_on_cpu) {
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    for (Degrees degrees : {Degrees{1, 1, 1}, {2, 2, 1}, {1, 2, 2}}) {
      for (int threads : {1, 2}) {
        PlanCase c;
        c.degrees = degrees;
        TrainOptions options = on_cpu();
        options.steps = 3;
        options.threads = threads;
        const TrainingGraph& graph = graph_of(c, dtype);
        Plan plan = plan_of(c, graph);
        BOOST_TEST(is_bit_identical(train(graph, plan, options), train(graph, plan, options)),
                   c.to_string() << " " << to_string(dtype));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
