// Over members of the Alpa suites that are planned fast: planner/dp is never slower than the rules people use, and
// close to the best of all plans. The whole is docs/alpa-suite.md, which tests/bench/alpa_suite prints.
#include <boost/test/unit_test.hpp>
#include <set>

#include "framework/plugin/registry.hpp"
#include "framework/runtime/job.hpp"
#include "tests/support/alpa_quality.hpp"

namespace altiplano::test {

namespace {

CostedPlan plan_of(const AlpaMember& member, const std::string& planner,
                   const std::vector<std::string>& overrides = {}) {
  static const bool once = (PluginRegistry::instance().add_search_path(ALTIPLANO_TEST_PLUGIN_DIR), true);
  (void)once;
  auto plan = planned(member, planner, overrides);
  BOOST_REQUIRE_MESSAGE(plan.is_ok(), member.name() << " by " << planner << ": " << plan.status().to_string());
  return std::move(plan).value();
}

}  // namespace

BOOST_AUTO_TEST_CASE(dp_is_never_slower_than_the_rules_by_more_than_half_a_percent) {
  int compared = 0;
  for (const AlpaMember& member : alpa_suite()) {
    if (member.gpus > (member.family == "Wide-ResNet" ? 1 : 2)) continue;
    const CostedPlan dp = plan_of(member, "dp");
    std::vector<CostedPlan> baselines;
    for (const std::string& name : kBaselines) baselines.push_back(plan_of(member, name));
    const auto comparison = compare(dp, baselines);
    if (!comparison) continue;
    ++compared;
    BOOST_TEST(comparison->longer <= kQualityLimit, member.name()
                                                        << " by " << dp.summary() << " takes " << comparison->longer
                                                        << " longer than " << comparison->best_baseline);
  }
  BOOST_TEST(compared >= 5);
}

BOOST_AUTO_TEST_CASE(dp_is_near_the_best_of_all_plans_of_a_reduced_suite) {
  std::set<std::string> families;  // the first of each
  for (const ReducedCase& reduced : reduced_suite()) {
    if (!families.insert(reduced.member.family).second) continue;
    const CostedPlan dp = plan_of(reduced.member, "dp", reduced.overrides);
    const auto all = search_all(reduced.member, reduced.overrides);
    BOOST_REQUIRE_MESSAGE(all.is_ok(), all.status().to_string());
    BOOST_TEST(all->num_plans > 10);
    BOOST_REQUIRE_MESSAGE(dp.has_plan() && all->best.has_plan(), reduced.name);
    BOOST_TEST(dp.seconds <= 1.02 * all->best.seconds, reduced.name << ": " << dp.summary() << " takes " << dp.seconds
                                                                    << " s, " << all->best.summary() << " "
                                                                    << all->best.seconds);
  }
}

}  // namespace altiplano::test
