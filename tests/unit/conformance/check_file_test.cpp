// The suites find what is broken, and a plugin that takes its process down is told of: fixtures that break one promise
// each, through the same door as `altiplano plugins check`.
#include "framework/conformance/check_file.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>

#include "framework/conformance/child_process.hpp"
#include "framework/conformance/elf_file.hpp"

using namespace altiplano;
using namespace altiplano::conformance;

namespace {

std::string broken_plugin(const std::string& name) {
  return std::string(ALTIPLANO_BINARY_DIR) + "/fixtures/broken_plugins/" + name + ".so";
}

FileReport report_of(const std::string& name, double seconds = 60) {
  CheckFileOptions options;
  options.timeout = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  auto report = check_file(broken_plugin(name), options);
  BOOST_REQUIRE_MESSAGE(report.is_ok(), report.status().to_string());
  return std::move(report).value();
}

/// The check whose name holds `check` is broken and says all of `words`.
void expect_broken(const FileReport& report, const std::string& check, std::initializer_list<const char*> words) {
  const auto at = std::find_if(report.results.begin(), report.results.end(),
                               [&](const CheckResult& result) { return result.name.find(check) != std::string::npos; });
  BOOST_REQUIRE_MESSAGE(at != report.results.end(), "no check '" << check << "' of " << report.info.name);
  BOOST_TEST((at->verdict == Verdict::kBroken), report.info.name << ": " << result_text(*at));
  for (const char* word : words)
    BOOST_TEST(at->text.find(word) != std::string::npos, "'" << word << "' is not in: " << at->text);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_right_plugin_keeps_every_promise) {
  auto report = check_file(ALTIPLANO_TEST_PLUGIN_DIR "/schedule-gpipe.so");
  BOOST_REQUIRE_MESSAGE(report.is_ok(), report.status().to_string());
  for (const CheckResult& result : report->results) BOOST_TEST((result.verdict == Verdict::kKept), result_text(result));
  BOOST_TEST(heading_text(report->info) == "schedule/gpipe 0.1.0  " ALTIPLANO_TEST_PLUGIN_DIR "/schedule-gpipe.so\n");
  BOOST_TEST(summary_text(*report) == "9 promises: 9 kept\n");
}

BOOST_AUTO_TEST_CASE(a_plugin_that_crashes_loses_the_checks_it_crashes_in_and_no_other) {
  const FileReport report = report_of("crashes");
  expect_broken(report, "every size", {"the check crashed: signal 11 (Segmentation fault)"});
  BOOST_TEST(report.num(Verdict::kBroken) == 6);
  BOOST_TEST(report.num(Verdict::kKept) == 3);
}

BOOST_AUTO_TEST_CASE(a_plugin_that_ends_the_process_is_told_of) {
  expect_broken(report_of("ends_the_process"), "every size", {"the check ended the process with exit code 0"});
}

BOOST_AUTO_TEST_CASE(a_plugin_that_hangs_is_given_up_in_time) {
  const auto begin = std::chrono::steady_clock::now();
  expect_broken(report_of("hangs", 0.5), "every size", {"the check did not end within"});
  BOOST_TEST((std::chrono::steady_clock::now() - begin < std::chrono::seconds(20)));
}

BOOST_AUTO_TEST_CASE(an_exception_through_noexcept_is_told_with_its_last_words) {
  expect_broken(report_of("throws"), "every size", {"signal 6 (Aborted)", "three is too many"});
}

BOOST_AUTO_TEST_CASE(a_file_that_dies_while_it_is_loaded_does_not_take_the_program_with_it) {
  auto report = check_file(broken_plugin("crashes_at_load"));
  BOOST_REQUIRE(!report.is_ok());
  BOOST_TEST(report.status().message() ==
             broken_plugin("crashes_at_load") + ": loading it crashed: signal 11 (Segmentation fault)");
}

BOOST_AUTO_TEST_CASE(a_refused_file_gives_the_loaders_words) {
  auto report = check_file("/nowhere/schedule-none.so");
  BOOST_REQUIRE(!report.is_ok());
  BOOST_TEST((report.status().code() == StatusCode::kInvalidArgument));
  BOOST_TEST(report.status().message() ==
             "/nowhere/schedule-none.so: No such file or directory; needed: a plugin's shared object");
}

BOOST_AUTO_TEST_CASE(a_schedule_that_deadlocks_is_shown_with_its_timetable) {
  expect_broken(report_of("deadlocks"), "every size", {"2 stages, 1 microbatch: ", "w1: B0 F0"});
}

BOOST_AUTO_TEST_CASE(a_schedule_that_changes_its_mind_is_shown_with_both_answers) {
  expect_broken(report_of("changes_its_mind"), "equal requests", {"1 stage, 2 microbatches: two timetables"});
}

BOOST_AUTO_TEST_CASE(a_schedule_that_ignores_the_limit_is_told_how_many_are_in_flight) {
  expect_broken(report_of("ignores_the_limit"), "a limit",
                {"1 stage, 2 microbatches, at most 1 in flight: 2 are in flight"});
}

BOOST_AUTO_TEST_CASE(a_refusal_without_a_way_out_is_a_broken_promise) {
  expect_broken(report_of("mute_refusal"), "every size",
                {"a refusal without 'nearest legal value': \"no\" (of 1 stage, 5 microbatches)"});
}

BOOST_AUTO_TEST_CASE(a_second_exported_symbol_is_named) {
  expect_broken(report_of("two_symbols"), "one symbol", {"altiplano_plugin_query, another_symbol"});
}

BOOST_AUTO_TEST_CASE(an_op_with_a_lying_rule_and_an_inexact_gradient_is_found_out) {
  const FileReport report = report_of("wrong_op");
  expect_broken(report, "sharding rule", {"wrong_rows(", "[a,b] -> [a,b]", "is off by"});
  expect_broken(report, "finite differences", {"wrong_rows(", "the gradient of output 0 in x0 is"});
}

BOOST_AUTO_TEST_CASE(a_planner_that_takes_no_notice_of_memory_is_found_out) {
  const FileReport report = report_of("loses_memory");
  expect_broken(report, "memory", {"needs", "the limit is 1.0 KiB"});
  BOOST_TEST(report.num(Verdict::kBroken) == 1);
}

BOOST_AUTO_TEST_CASE(a_model_whose_loss_is_a_mean_is_found_out) {
  const FileReport report = report_of("mean_loss");
  expect_broken(report, "the loss of a batch", {"4 samples together give loss"});
  BOOST_TEST(report.num(Verdict::kBroken) == 1);
}

BOOST_AUTO_TEST_CASE(a_scheduler_that_forgets_a_rank_is_found_out) {
  expect_broken(report_of("forgets_a_rank"), "place every rank", {"1 rank was asked for, 0 are placed"});
}

BOOST_AUTO_TEST_CASE(a_backend_that_takes_sums_for_maxima_is_found_out) {
  expect_broken(report_of("takes_sums_for_maxima"), "every type and count",
                {"wrong result of reduce_scatter max", "with 2 ranks", "ranks as threads"});
}

BOOST_AUTO_TEST_CASE(a_device_that_is_inexact_in_numbers_and_bytes_is_found_out) {
  const FileReport report = report_of("inexact_device");
  expect_broken(report, "oracle in f32", {"add (", "is off by 1.0e-02 of its largest element"});
  expect_broken(report, "allocations", {"counted"});
  expect_broken(report, "boxes", {"a box is copied wrongly"});
}

BOOST_AUTO_TEST_CASE(a_child_answers_whole_whatever_the_size) {
  const std::string long_text(300'000, 'x');
  auto answer = run_in_child([&] { return long_text; }, std::chrono::seconds(20));
  BOOST_REQUIRE_MESSAGE(answer.is_ok(), answer.status().to_string());
  BOOST_TEST((*answer == long_text));
}

BOOST_AUTO_TEST_CASE(exported_symbols_refuse_what_is_no_elf_file) {
  BOOST_TEST(exported_symbols("/etc/passwd").status().message() == "/etc/passwd: no 64-bit ELF file");
  BOOST_TEST(exported_symbols("/nowhere").status().message() == "/nowhere: cannot be read");
}
