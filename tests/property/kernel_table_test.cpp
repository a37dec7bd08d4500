// A plan carries its kernel table as text: whatever shapes and forms are called, it parses back.
#include <boost/test/unit_test.hpp>

#include "framework/base/random.hpp"
#include "tests/support/gpt.hpp"
#include "tests/support/plans.hpp"

namespace altiplano::test {
namespace {

std::string random_text(uint64_t stream, const std::string& alphabet, uint64_t most) {
  std::string text;
  const uint64_t length = 1 + random_word(stream, 0, 0) % most;
  for (uint64_t i = 0; i < length; ++i) text += alphabet[random_word(stream, 1, i) % alphabet.size()];
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_kernel_table_prints_and_parses_back_within_its_plan) {
  const TrainingGraph graph = make_gpt_training({});
  Plan plan = make_plan(graph, {});
  for (uint64_t i = 0; i < 200; ++i) {
    plan.kernels = {};
    plan.kernels.machine = random_text(10 * i, "ab ;,:\"'#{}[]\\%-", 40);
    for (uint64_t k = 0; k < 1 + i % 7; ++k)
      plan.kernels.forms[random_text(10 * i + k + 1, "f32 x*/>nts:\"'#{}[]\\&!|", 30)] =
          random_text(20'000 + 10 * i + k, "abc_0: #~-", 12);
    auto parsed = Plan::from_yaml(plan.to_yaml(), "plan.yaml");
    BOOST_REQUIRE_MESSAGE(parsed.is_ok(), plan.to_yaml() << parsed.status().to_string());
    BOOST_TEST((parsed->kernels == plan.kernels), plan.to_yaml());
    BOOST_TEST(parsed->to_yaml() == plan.to_yaml());
  }
}

BOOST_AUTO_TEST_CASE(a_plan_without_a_table_says_nothing_of_kernels) {
  const TrainingGraph graph = make_gpt_training({});
  const Plan plan = make_plan(graph, {});
  BOOST_TEST(plan.to_yaml().find("kernels") == std::string::npos);
  auto parsed = Plan::from_yaml(plan.to_yaml(), "plan.yaml");
  BOOST_REQUIRE(parsed.is_ok());
  BOOST_TEST(parsed->kernels.is_empty());
}

}  // namespace altiplano::test
