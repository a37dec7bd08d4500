// Plans that took long to find are kept for the next start of an equal job.
#include "framework/runtime/plan_cache.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>

#include "tests/support/job_folder.hpp"
#include "tests/support/own_cache.hpp"

namespace altiplano::test {
namespace {

namespace fs = std::filesystem;

/// A folder whose jobs keep their plans in it, and a job that takes long to plan.
struct CachedPlans {
  JobFolder job;
  const OwnCache cache{job / "cache"};
  const std::string folder = job / "cache/altiplano/plans";
  const std::string settings =
      "train.max_steps=1 model.num_hidden_layers=40 parallel.planner=dp train.micro_batch_size=auto ";

  std::vector<fs::path> plans() const {
    std::vector<fs::path> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) found.push_back(entry.path());
    return found;
  }
  /// Whether a start takes a plan that was found before.
  bool takes_a_known_plan(const std::string& run, const std::string& more = "") const {
    const auto result = job.altiplano(job.launch_arguments(4, run, settings + more));
    BOOST_TEST(result.exit_code == 0, result.output);
    return result.output.find("the plan is one that was found before for an equal job: " + folder) != std::string::npos;
  }
  std::string plan_of(const std::string& run) const { return read_bytes(job / run + "/provenance/0001/plan.yaml"); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(plan_cache, CachedPlans)

BOOST_AUTO_TEST_CASE(an_equal_job_takes_the_plan_that_was_found_before) {
  BOOST_TEST(!takes_a_known_plan("first"));
  BOOST_REQUIRE(plans().size() == 1u);
  BOOST_TEST(takes_a_known_plan("second"));
  BOOST_TEST(plan_of("second") == plan_of("first"));
  // What planning sees is another job's.
  BOOST_TEST(!takes_a_known_plan("other", "parallel.zero_stage=0 "));
  BOOST_TEST(!takes_a_known_plan("smaller", "memory.per_rank=400MiB "));
  BOOST_TEST(plans().size() == 3u);
}

BOOST_AUTO_TEST_CASE(a_damaged_plan_is_removed_and_found_anew) {
  BOOST_TEST(!takes_a_known_plan("first"));
  write_bytes(plans().front(), "altiplano_plan: 1\n");
  BOOST_TEST(!takes_a_known_plan("second"));
  BOOST_TEST(takes_a_known_plan("third"));
}

BOOST_AUTO_TEST_CASE(the_oldest_plans_go_when_there_are_many) {
  fs::create_directories(folder);
  for (size_t i = 0; i < PlanCache::kMostKept; ++i) {
    const fs::path old = fs::path(folder) / fmt::format("{:02}.yaml", i);
    write_bytes(old, "");
    fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(100 - i));
  }
  BOOST_TEST(!takes_a_known_plan("first"));
  BOOST_TEST(plans().size() == PlanCache::kMostKept);
  BOOST_TEST(!fs::exists(fs::path(folder) / "00.yaml"));
  BOOST_TEST(fs::exists(fs::path(folder) / "01.yaml"));
}

BOOST_AUTO_TEST_CASE(where_no_plan_can_be_kept_a_job_plans_each_time) {
  fs::create_directories(job / "cache/altiplano");
  write_bytes(folder, "a file where the folder would be");
  BOOST_TEST(!takes_a_known_plan("first"));
  BOOST_TEST(!takes_a_known_plan("second"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
