#include "framework/runtime/kernel_choice.hpp"

#include <boost/test/unit_test.hpp>
#include <set>

#include "tests/support/gpt.hpp"
#include "tests/support/plans.hpp"
#include "tests/support/temporary_directory.hpp"

namespace altiplano::test {
namespace {

/// A small GPT's programs on one rank of device/cpu.
struct Fixture {
  TrainingGraph graph = make_gpt_training({}, DType::kF32, {}, 7, true);
  Plan plan = make_plan(graph, {});
  std::vector<Program> programs = lower_plan(graph, plan);
  std::unique_ptr<JobDevice> device = open();
  TemporaryDirectory folder;
  KernelSource source;

  Fixture() { source.database = folder / "kernels.h5"; }

  static std::unique_ptr<JobDevice> open() {
    auto device = JobDevice::open(Options(job_option_records()), 1, 2, 7);
    BOOST_REQUIRE_MESSAGE(device.is_ok(), device.status().to_string());
    return std::move(device).value();
  }

  KernelChoice choose() {
    auto choice = choose_kernels(*device, programs, 7, source);
    BOOST_REQUIRE_MESSAGE(choice.is_ok(), choice.status().to_string());
    return std::move(choice).value();
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(kernel_choice, Fixture)

BOOST_AUTO_TEST_CASE(every_shape_of_the_programs_gets_one_of_its_forms) {
  const KernelChoice choice = choose();
  auto kernels = formed_kernels(device->device(), programs, 7);
  BOOST_REQUIRE(kernels.is_ok());
  BOOST_TEST(kernels->size() > 3u);
  BOOST_TEST(choice.table.forms.size() == kernels->size());
  BOOST_TEST(choice.table.machine == device->machine());
  for (const FormedKernel& kernel : *kernels) {
    const std::string form = choice.table.form_of(kernel.forms.shape);
    BOOST_TEST((std::ranges::find(kernel.forms.names, form) != kernel.forms.names.end()), kernel.forms.shape);
  }
  BOOST_TEST(choice.notices.empty());
}

BOOST_AUTO_TEST_CASE(what_was_measured_once_is_not_measured_again) {
  const KernelChoice first = choose();
  KernelDatabase database = KernelDatabase::read(source.database);
  // Whatever the database says is the best is taken, as long as there is such a form.
  KernelMeasurement changed = first.measurements.front();
  changed.best = changed.times.back().form;
  KernelMeasurement unknown = first.measurements.back();
  unknown.times.push_back({"folded", 1e-9, 1e-9, 1e-9});
  unknown.best = "folded";
  BOOST_REQUIRE(database.store({changed, unknown}).is_ok());
  const KernelChoice second = choose();
  BOOST_TEST(second.table.form_of(changed.shape) == changed.best);
  BOOST_TEST(second.table.form_of(unknown.shape) != "folded");
  for (const KernelMeasurement& m : first.measurements)
    if (m.shape != changed.shape && m.shape != unknown.shape) BOOST_TEST(second.table.form_of(m.shape) == m.best);
}

BOOST_AUTO_TEST_CASE(a_stored_table_of_this_machine_is_replayed_whatever_the_database_says) {
  const KernelChoice first = choose();
  source.stored = first.table;
  source.stored_where = "the checkpoint's kernel table";
  for (const KernelMeasurement& m : first.measurements) source.stored.forms[m.shape] = m.times.back().form;
  const KernelChoice replayed = choose();
  BOOST_TEST((replayed.table == source.stored));
  BOOST_TEST(replayed.notices.empty());
  // What a plan of other degrees needs besides is added.
  source.stored.forms.erase(first.measurements.front().shape);
  BOOST_TEST(choose().table.forms.size() == first.table.forms.size());
}

BOOST_AUTO_TEST_CASE(a_table_of_another_machine_is_chosen_anew_with_a_notice) {
  source.stored = choose().table;
  source.stored_where = "plan.yaml:14:3: kernels";
  source.from_plan = true;
  source.stored.machine += ", elsewhere";
  const KernelChoice choice = choose();
  BOOST_TEST(choice.table.machine == device->machine());
  BOOST_REQUIRE(choice.notices.size() == 1u);
  BOOST_TEST(choice.notices[0].starts_with("plan.yaml:14:3: kernels: measured on another machine or with other "
                                           "threads (" +
                                           source.stored.machine + ");"),
             choice.notices[0]);
}

BOOST_AUTO_TEST_CASE(a_form_that_is_not_there_is_refused_in_a_plan_and_chosen_anew_in_a_checkpoint) {
  source.stored = choose().table;
  const std::string shape = source.stored.forms.begin()->first;
  source.stored.forms[shape] = "folded";
  source.stored_where = "plan.yaml:14:3: kernels";
  const KernelChoice choice = choose();
  BOOST_TEST(choice.table.form_of(shape) != "folded");
  BOOST_REQUIRE(choice.notices.size() == 1u);
  source.from_plan = true;
  auto refused = choose_kernels(*device, programs, 7, source);
  BOOST_REQUIRE(!refused.is_ok());
  BOOST_TEST(refused.status().message().starts_with("plan.yaml:14:3: kernels: " + shape +
                                                    " has no form 'folded'; valid: plain, "),
             refused.status().message());
}

BOOST_AUTO_TEST_CASE(a_database_that_is_damaged_or_cannot_be_kept_stops_nothing) {
  write_bytes(source.database, "not a database, but long enough to be looked at as if it were one");
  KernelChoice choice = choose();
  BOOST_REQUIRE(choice.notices.size() == 1u);
  BOOST_TEST(choice.notices[0] == source.database + " is damaged; it is made anew");
  BOOST_TEST(choose().notices.empty());
  source.database = source.database + "/below/a/file.h5";
  choice = choose();
  BOOST_REQUIRE(choice.notices.size() == 1u);
  BOOST_TEST(choice.notices[0].starts_with("measured kernels are not kept, so that another start may choose others"));
  BOOST_TEST(!choice.table.is_empty());
}

BOOST_AUTO_TEST_CASE(every_form_needs_the_memory_that_the_plan_was_told) {
  const KernelChoice choice = choose();
  for (const KernelMeasurement& m : choice.measurements) {
    KernelTable table = choice.table;
    std::set<int64_t> peaks;
    for (const FormTime& time : m.times) {
      table.forms[m.shape] = time.form;
      device->kernels().choose(table);
      auto lowered = lower(graph, plan, make_timetable(plan), Binding::identity(1), device->lowering());
      BOOST_REQUIRE(lowered.is_ok());
      peaks.insert(lowered->front().peak().value);
    }
    BOOST_TEST(peaks.size() == 1u, m.shape);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
