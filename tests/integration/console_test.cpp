// Consoles that are closed, full or gone: training goes on and ends with its own exit code, other commands say that
// their output is lost, nobody aborts, and a closed descriptor is not taken for a file of the run.
#include <boost/test/unit_test.hpp>

#include "tests/support/contains.hpp"
#include "tests/support/job_folder.hpp"

namespace altiplano::test {

namespace {

/// `altiplano ARGUMENTS REDIRECTION` in the folder; what stays visible is the output.
CommandResult with(const JobFolder& job, const std::string& arguments, const std::string& redirection) {
  return run_command("cd " + job.path() + " && timeout -k 5 120 " ALTIPLANO_BINARY_DIR "/bin/altiplano " + arguments +
                     " </dev/null " + redirection);
}

/// The program begins when its reader has gone. Its exit code, and what it says on stderr.
CommandResult into_closed_pipe(const JobFolder& job, const std::string& arguments) {
  return run_command("cd " + job.path() + " && bash -c '{ sleep 0.3; " ALTIPLANO_BINARY_DIR "/bin/altiplano " +
                     arguments + " </dev/null; } | true; exit ${PIPESTATUS[0]}'");
}

constexpr const char* kTrainings[] = {"launch -n 2", "train"};
constexpr const char* kBroken[] = {">/dev/full", ">&-",          "2>/dev/full",           "2>&-",
                                   ">&- 2>&-",   "<&- >&- 2>&-", ">/dev/full 2>/dev/full"};

}  // namespace

BOOST_AUTO_TEST_SUITE(console)

BOOST_AUTO_TEST_CASE(training_goes_on_whatever_becomes_of_its_console) {
  JobFolder job;
  int number = 0;
  for (const std::string training : kTrainings) {
    for (const std::string broken : kBroken) {
      const std::string run = fmt::format("run{}", ++number);
      const std::string rest = fmt::format(" -c job.yaml --set run.dir={} --set train.max_steps=2", run);
      const CommandResult result = with(job, training + rest, broken);
      // Where nobody listens nothing is lost; a full device has lost what somebody wanted.
      const bool is_lost = contains(broken, ">/dev/full") && !broken.starts_with("2>");
      BOOST_TEST(result.exit_code == (is_lost ? 1 : 0), training << " " << broken << ": " << result.output);
      BOOST_TEST(
          contains(result.output, "error: stdout: No space left on device; the run itself is done and saved\n") ==
              (broken == ">/dev/full"),
          training << " " << broken << ": " << result.output);
      BOOST_TEST(read_steps(job / run + "/metrics.jsonl").size() == 2u, training << " " << broken);
      BOOST_TEST(read_bytes(job / run + "/lock").starts_with("host "), training << " " << broken);
    }
    const std::string run = fmt::format("run{}", ++number);
    const CommandResult result =
        into_closed_pipe(job, training + " -c job.yaml --set train.max_steps=2 --set run.dir=" + run);
    BOOST_TEST(result.exit_code == 0, training << ": " << result.output);
    BOOST_TEST(!contains(result.output, "error: "), training << ": " << result.output);
    BOOST_TEST(read_steps(job / run + "/metrics.jsonl").size() == 2u, training);
  }
}

BOOST_AUTO_TEST_CASE(a_refusal_keeps_its_exit_code_where_nobody_can_read_it) {
  JobFolder job;
  for (const std::string broken : kBroken)
    for (const std::string arguments : {"launch -n 2 -c nowhere.yaml", "train -c nowhere.yaml", "validate -c ''",
                                        "generate -c nowhere.yaml", "ckpt ls nowhere", "trian"})
      BOOST_TEST(with(job, arguments, broken).exit_code == 2, arguments << " " << broken);
}

BOOST_AUTO_TEST_CASE(output_that_is_lost_is_a_failure_of_commands_that_are_asked_for_it) {
  JobFolder job;
  job.launch(1, "run", "train.max_steps=1");
  const std::string of_run = " -c job.yaml --set run.dir=run --set train.max_steps=1";
  for (const std::string& arguments :
       {std::string("--help"), std::string("--version"), std::string("ckpt ls --help"), std::string("doctor"),
        std::string("plugins list"), std::string("config reference"), std::string("data inspect text.h5"),
        std::string("ckpt ls run/checkpoints"), std::string("ckpt verify run/checkpoints"), "config show" + of_run,
        "plan" + of_run, "validate" + of_run, "estimate" + of_run, "eval --file text.h5" + of_run,
        "eval -n 2 --file text.h5" + of_run, "generate --max-new-tokens 5" + of_run}) {
    const CommandResult full = with(job, arguments, "2>&1 >/dev/full");
    BOOST_TEST(full.exit_code == 1, arguments << ": " << full.output);
    BOOST_TEST(contains(full.output, "error: stdout: No space left on device\n"), arguments << ": " << full.output);
    const CommandResult closed = with(job, arguments, "2>&1 >&-");
    BOOST_TEST(closed.exit_code == 1, arguments << ": " << closed.output);
    BOOST_TEST(contains(closed.output, "error: stdout: Bad file descriptor\n"), arguments << ": " << closed.output);
    const CommandResult gone = into_closed_pipe(job, arguments);
    BOOST_TEST(gone.exit_code == 1, arguments << ": " << gone.output);
    BOOST_TEST(!contains(gone.output, "error: "), arguments << ": " << gone.output);
    BOOST_TEST(with(job, arguments, "2>&-").exit_code == 0, arguments);
  }
}

BOOST_AUTO_TEST_CASE(a_text_without_an_end_ends_with_its_reader) {
  JobFolder job;
  job.launch(1, "run", "train.max_steps=1");
  const auto result = run_command("cd " + job.path() +
                                  " && bash -c 'timeout -k 5 60 " ALTIPLANO_BINARY_DIR
                                  "/bin/altiplano generate -c job.yaml --set run.dir=run --max-new-tokens 1000000 "
                                  "2>/dev/null | head -c 5 | wc -c; exit ${PIPESTATUS[0]}'");
  BOOST_TEST(result.exit_code == 1);  // not 124: the deadline
  BOOST_TEST(result.output == "5\n");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
