// Kernel tables through the program: what was measured once is replayed, with the same bits, by ranks that all have the
// same table; the database may be anything.
#include <boost/test/unit_test.hpp>
#include <cstdlib>

#include "framework/cost/kernel_database.hpp"
#include "framework/plan/plan.hpp"
#include "tests/support/job_folder.hpp"
#include "tests/support/own_cache.hpp"

namespace altiplano::test {
namespace {

/// A folder whose runs keep their database in it.
struct KernelRuns {
  JobFolder job;
  const OwnCache cache{job / "cache"};
  const std::string database = job / "cache/altiplano/kernels.h5";

  /// Of a run's start number `start`.
  Plan plan_of(const std::string& run, const std::string& start) const {
    auto plan = Plan::from_yaml(read_bytes(job / run + "/provenance/" + start + "/plan.yaml"), "plan.yaml");
    BOOST_REQUIRE_MESSAGE(plan.is_ok(), plan.status().to_string());
    return std::move(plan).value();
  }

  /// From now on the database says that this form is the best of every shape that has it.
  void prefer(const KernelTable& known, const std::string& form) const {
    KernelDatabase all = KernelDatabase::read(database);
    std::vector<KernelMeasurement> changed;
    for (const auto& [shape, taken] : known.forms) {
      const KernelMeasurement* m = all.find(known.machine, shape);
      BOOST_REQUIRE(m != nullptr);
      changed.push_back(*m);
      for (const FormTime& time : m->times)
        if (time.form == form) changed.back().best = form;
    }
    BOOST_REQUIRE(all.store(changed).is_ok());
  }
};

const std::string kHalf = "train.max_steps=3 " + degrees_text(2, 1, 1),
                  kWhole = "train.max_steps=6 " + degrees_text(2, 1, 1);

}  // namespace

BOOST_FIXTURE_TEST_SUITE(kernels, KernelRuns)

BOOST_AUTO_TEST_CASE(a_resumed_run_replays_the_table_it_began_with_to_the_bit) {
  job.launch(2, "first", kHalf);
  const KernelTable measured = plan_of("first", "0001").kernels;
  BOOST_TEST(!measured.is_empty());

  prefer(measured, "turned_b");
  job.launch(2, "resumed", kHalf);
  const KernelTable turned = plan_of("resumed", "0001").kernels;
  BOOST_TEST((turned.forms.begin()->second == "turned_b"));

  prefer(measured, "plain");
  job.launch(2, "resumed", kWhole);
  BOOST_TEST((plan_of("resumed", "0002").kernels == turned));

  // The same table by plan file gives the same bits in one go; another table gives others.
  write_bytes(job / "turned.yaml", plan_of("resumed", "0001").to_yaml());
  job.launch(2, "whole", kWhole, "--plan turned.yaml");
  BOOST_TEST(largest_difference_of_checkpoints(job.checkpoint("whole", 6), job.checkpoint("resumed", 6)) == 0.0);
  BOOST_TEST((plan_of("whole", "0001").kernels == turned));
}

BOOST_AUTO_TEST_CASE(without_a_place_for_the_database_a_run_says_so_and_trains) {
  write_bytes(job / "cache", "a file where a folder should be");
  const std::string output = job.launch(2, "run", kHalf);
  BOOST_TEST(
      output.find("note: measured kernels are not kept, so that another start may choose others") != std::string::npos,
      output);
  BOOST_TEST(!plan_of("run", "0001").kernels.is_empty());
}

BOOST_AUTO_TEST_CASE(plain_kernels_leave_no_table) {
  job.launch(2, "run", kHalf + "device.kernels=plain ");
  BOOST_TEST(plan_of("run", "0001").kernels.is_empty());
  BOOST_TEST(KernelDatabase::read(database).path() == database);
  BOOST_TEST(KernelDatabase::read(database).find("", "") == nullptr);
}

BOOST_AUTO_TEST_CASE(profile_measures_anew_and_shows_the_forms) {
  const std::string arguments = job.launch_arguments(2, "run", kHalf);
  const CommandResult shown = job.altiplano("profile" + arguments.substr(arguments.find(' ')) + " --kernels --steps 1");
  BOOST_TEST(shown.exit_code == 0, shown.output);
  BOOST_TEST(shown.output.find("the others") != std::string::npos, shown.output);
  BOOST_TEST(shown.output.find("turned_b") != std::string::npos, shown.output);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
