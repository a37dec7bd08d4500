// altiplano plan and validate as a person starts them: plans that do not fit, plans that are read back.
#include <boost/test/unit_test.hpp>

#include "tests/support/contains.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

/// Output and exit code of a command about the quickstart's job on four ranks.
CommandResult run_on_job(const std::string& command, const std::string& arguments) {
  return run_command("env -u ALTIPLANO_PLUGIN_PATH " ALTIPLANO_BINARY_DIR "/bin/altiplano " + command +
                     " -n 4 -c " ALTIPLANO_SOURCE_DIR "/configs/jobs/quickstart.yaml " + arguments);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_plan_that_does_not_fit_exits_with_3_and_names_the_smallest_change) {
  auto microbatch = run_on_job("plan", "--set memory.per_rank=12MiB --set parallel.recompute=none");
  BOOST_TEST(microbatch.exit_code == 3);
  BOOST_TEST(contains(microbatch.output, "Smallest change that fits:\n    train.micro_batch_size: 4"),
             microbatch.output);
  auto more_ranks = run_on_job("plan", "--set memory.per_rank=4MiB");
  BOOST_TEST(more_ranks.exit_code == 3);
  BOOST_TEST(contains(more_ranks.output, "on 8 ranks"), more_ranks.output);
  auto nothing = run_on_job("plan", "--set memory.per_rank=1MiB");
  BOOST_TEST(nothing.exit_code == 3);
  BOOST_TEST(contains(nothing.output, "up to 32 ranks would fit"), nothing.output);
}

BOOST_AUTO_TEST_CASE(a_plan_that_does_not_fit_recomputes_as_few_layers_as_fit) {
  const std::string within = "--set memory.per_rank=12MiB ";
  auto recomputing = run_on_job("plan", within);
  BOOST_TEST(recomputing.exit_code == 0);
  BOOST_TEST(
      contains(recomputing.output, "the defaults do not fit the memory; taken instead: recomputing 3 of 6 layers"),
      recomputing.output);
  BOOST_TEST(contains(recomputing.output, "recompute: [block.0-2]"), recomputing.output);
  BOOST_TEST(run_on_job("plan", within + "--set parallel.recompute=block.0-2").exit_code == 0);
  BOOST_TEST(run_on_job("plan", within + "--set parallel.recompute=block.0-1 --set parallel.zero_stage=1").exit_code ==
             3);
}

BOOST_AUTO_TEST_CASE(a_plan_that_does_not_fit_splits_more_over_the_replicas) {
  const std::string within =
      "--set parallel.data_parallel_size=4 --set parallel.tensor_parallel_size=1 --set train.micro_batch_size=1 "
      "--set parallel.recompute=none --set memory.per_rank=";
  BOOST_TEST(contains(run_on_job("plan", within + "15MiB").output, "zero: 1"));
  auto tight = run_on_job("plan", within + "11MiB");
  BOOST_TEST(tight.exit_code == 0);
  BOOST_TEST(contains(tight.output, "the defaults do not fit the memory; taken instead: parallel.zero_stage 2"),
             tight.output);
  auto tighter = run_on_job("plan", within + "9MiB");
  BOOST_TEST(contains(tighter.output, "parallel.zero_stage 3"), tighter.output);
  auto fixed = run_on_job("plan", within + "9MiB --set parallel.zero_stage=1");
  BOOST_TEST(contains(fixed.output, "Smallest change that fits:\n    parallel.zero_stage: 3 "), fixed.output);
}

BOOST_AUTO_TEST_CASE(a_plan_is_exported_as_flags_of_megatron) {
  auto exported = run_on_job("plan",
                             "--export megatron --set train.precision=bf16 --set parallel.pipeline_parallel_size=2 "
                             "--set parallel.data_parallel_size=1 --set parallel.recompute=block.0,block.2");
  BOOST_TEST(exported.exit_code == 0);
  BOOST_TEST(exported.output ==
             "--num-layers 4\n--hidden-size 128\n--ffn-hidden-size 512\n--num-attention-heads 4\n"
             "--max-position-embeddings 64\n--seq-length 64\n--micro-batch-size 8\n--global-batch-size 32\n--bf16\n"
             "--tensor-model-parallel-size 2\n--pipeline-model-parallel-size 2\n--sequence-parallel\n"
             "--recompute-granularity full\n--recompute-method block\n--recompute-num-layers 1\n");
  const std::string replicas =
      "--export megatron --set parallel.data_parallel_size=4 --set parallel.tensor_parallel_size=1 --set "
      "parallel.zero_stage=";
  BOOST_TEST(contains(run_on_job("plan", replicas + "1").output, "\n--use-distributed-optimizer\n"));
  BOOST_TEST(contains(run_on_job("plan", replicas + "3").output,
                      "\n--use-megatron-fsdp\n--data-parallel-sharding-strategy optim_grads_params\n"));
}

BOOST_AUTO_TEST_CASE(a_plan_that_megatron_has_no_flags_for_is_refused_with_what_of_it) {
  auto refused = [](const std::string& arguments) {
    auto result = run_on_job("plan", "--export megatron " + arguments);
    BOOST_TEST(result.exit_code == 2);
    return result.output;
  };
  BOOST_TEST(contains(refused("--set parallel.recompute=block.1"),
                      "--export megatron: stage s0 recomputes 1 of its 4 blocks, s0 1; it recomputes equally many, the "
                      "first ones, on every stage"));
  BOOST_TEST(contains(refused("--set parallel.pipeline_parallel_size=2 --set parallel.data_parallel_size=1 --set "
                              "parallel.schedule=gpipe"),
                      "--export megatron: schedule gpipe: it has 1f1b and its interleaved form"));
  BOOST_TEST(
      contains(refused("--set 'parallel.sharding={\"block.*.mlp.up.weight\": \"[{data}, -]\"}'"),
               "--export megatron: block.0.mlp.up.weight lies as [{data}, -] in the plan, as [-, {tensor}] there"));
}

BOOST_AUTO_TEST_CASE(a_written_plan_is_read_back_and_prints_the_same) {
  TemporaryDirectory folder;
  std::string file = folder / "plan.yaml";
  BOOST_TEST(run_on_job("plan", "-o " + file).exit_code == 0);
  auto printed = run_on_job("plan", "--plan " + file);
  BOOST_TEST(printed.exit_code == 0);
  BOOST_TEST(printed.output == read_bytes(file));
}

BOOST_AUTO_TEST_CASE(an_unsound_plan_is_refused_with_file_and_rule) {
  TemporaryDirectory folder;
  std::string file = folder / "plan.yaml";
  BOOST_TEST(run_on_job("plan", "-o " + file).exit_code == 0);
  std::string text = read_bytes(file);
  text.replace(text.find("\"0-3\""), 5, "\"0-2\"");
  write_bytes(file, text);
  auto refused = run_on_job("validate", "--plan " + file);
  BOOST_TEST(refused.exit_code == 2);
  BOOST_TEST(contains(refused.output, "3 slots"), refused.output);
}

namespace {

/// A job that leaves degrees to the planner, on eight ranks.
struct FreeJob {
  FreeJob() {
    write_bytes(folder / "job.yaml",
                "model: {kind: gpt, num_hidden_layers: 8, hidden_size: 128, num_attention_heads: 4, "
                "max_position_embeddings: 64, vocab_size: 257}\n"
                "train: {max_steps: 600, global_batch_size: 32, seq_length: 64}\n"
                "memory: {per_rank: 19MiB}\n");
  }
  CommandResult run(const std::string& command, const std::string& arguments) const {
    return run_command("cd " + folder.path().string() +
                       " && env -u ALTIPLANO_PLUGIN_PATH " ALTIPLANO_BINARY_DIR "/bin/altiplano " + command +
                       " -c job.yaml " + arguments);
  }
  TemporaryDirectory folder;
};

void check_contains(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) BOOST_TEST(contains(text, part), "'" << part << "' is missing in\n" << text);
}

}  // namespace

BOOST_AUTO_TEST_CASE(explain_says_what_the_runner_up_loses_and_what_has_no_room) {
  FreeJob job;
  const auto dp = job.run("plan", "-n 8 --set parallel.planner=dp --set memory.per_rank=17MiB --explain");
  BOOST_TEST(dp.exit_code == 0);
  check_contains(dp.output, {"\nwhy       the fastest of ", " plans considered by planner/dp\nrunner-up ", " ms (+",
                             "), computing ", ", exposed communication ", ", bubble ", "; fullest rank ",
                             "\nno room   ", ", but its fullest rank needs "});
  const auto manual = run_on_job("plan", "--explain");
  check_contains(manual.output,
                 {"\nwhy       planner/manual considered no other\nrunner-up by other degrees: ", "; fullest rank "});
  const auto heuristic = job.run("plan", "-n 8 --explain");
  check_contains(heuristic.output,
                 {"\nwhy       the only one that fits of ", "\nrunner-up by other degrees: ", "\nno room   data 8, "});
}

BOOST_AUTO_TEST_CASE(top_lists_what_the_planner_considered_fastest_first_and_marks_the_chosen_one) {
  FreeJob job;
  const auto all = job.run("plan", "-n 8 --set parallel.planner=dp --set memory.per_rank=17MiB --top 100");
  BOOST_TEST(all.exit_code == 0);
  check_contains(all.output, {"  <- chosen\n", "  (does not fit)\n", " plans considered by planner/dp\n"});
  BOOST_TEST(contains(all.output.substr(0, all.output.find("\n   2 ")), "<- chosen"), all.output);
  const auto two = job.run("plan", "-n 8 --set parallel.planner=dp --top 2");
  check_contains(two.output, {"\n   2 ", " considered by planner/dp, the best 2 shown\n"});
  BOOST_TEST(!contains(two.output, "\n   3 "), two.output);
}

BOOST_AUTO_TEST_CASE(compare_puts_planners_and_plan_files_side_by_side) {
  FreeJob job;
  BOOST_TEST(job.run("plan", "-n 8 --out plan.yaml").exit_code == 0);
  const auto compared = job.run("plan", "-n 8 --compare plan.yaml dp");
  BOOST_TEST(compared.exit_code == 0);
  check_contains(compared.output,
                 {"plan.yaml ", " dp\n", "planner/heuristic  ", "  planner/dp\n", "\nestimated step ",
                  "\nsimulated step ", "\n  bubble ", "\nfullest rank ", "\nsent over node ", " %)\n"});
  const auto without = job.run("plan", "-n 8 --compare plan.yaml dp --set memory.per_rank=3MiB");
  BOOST_TEST(without.exit_code == 0);
  check_contains(without.output, {"plan.yaml has no plan: ", "dp has no plan: no feasible plan: "});
}

BOOST_AUTO_TEST_CASE(simulate_says_where_the_time_goes_and_draws_it) {
  FreeJob job;
  const auto pipeline = job.run("simulate", "-n 4 --set parallel.pipeline_parallel_size=4 --svg a.svg --trace a.json");
  BOOST_TEST(pipeline.exit_code == 0);
  check_contains(pipeline.output, {"\nstep      ", " = computing ", " + bubble ", "\ntraffic   node ", "\ns3     3 ",
                                   "\ncritical path, ", "s0 .. s3: F0, of it "});
  check_contains(read_bytes(job.folder / "a.svg"), {"s3, rank 3", "</svg>"});
  check_contains(read_bytes(job.folder / "a.json"), {"\"traceEvents\""});
  const auto many = job.run("simulate",
                            "-n 1024 --set train.global_batch_size=1024 --set cluster=dgx-h100 --every-rank "
                            "--set parallel.pipeline_parallel_size=4 --set parallel.tensor_parallel_size=2");
  BOOST_TEST(many.exit_code == 0);
  check_contains(many.output, {"cluster  128 nodes x 8 h100-80", "\ns0     0-255 ", "\ns3     768-1023 ", "network "});
}

BOOST_AUTO_TEST_CASE(one_stage_of_one_microbatch_is_simulated_as_it_is_estimated) {
  FreeJob job;
  const auto simulated = job.run("simulate", "-n 1 --set memory.per_rank=1GiB");
  const auto estimated = job.run("estimate", "-n 1 --set memory.per_rank=1GiB");
  const size_t at = simulated.output.find("\nstep      ") + 11;
  const std::string step = simulated.output.substr(at, simulated.output.find(" = ", at) - at);
  check_contains(estimated.output, {"\nstep      " + step + " predicted"});
}

BOOST_AUTO_TEST_CASE(the_programs_of_a_plan_are_the_same_planned_and_read_back) {
  FreeJob job;
  for (const std::string planner : {"heuristic", "dp"}) {
    // That planning goes on is said on the other stream, where it takes its time.
    const std::string with = "-n 4 2>/dev/null --full --program --set parallel.planner=" + planner;
    const auto planned = job.run("plan", with + " --out plan.yaml");
    const auto read = job.run("plan", with + " --plan plan.yaml --out again.yaml");
    BOOST_TEST(planned.exit_code == 0, planned.output);
    BOOST_TEST(contains(planned.output, "\nstep: F0/0 "), planned.output);
    BOOST_TEST((planned.output == read.output));
  }
}
