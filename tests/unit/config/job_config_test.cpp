#include "framework/config/job_config.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/config/job_fixture.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

JobConfig loaded(const std::string& text, std::vector<std::string> overrides = {},
                 std::map<std::string, std::string> environment = {{"HOME", "/home/ada"}}) {
  auto job = load(text, std::move(overrides), std::move(environment));
  BOOST_TEST_REQUIRE(job.is_ok(), job.status().message());
  return std::move(job).value();
}

}  // namespace

BOOST_AUTO_TEST_CASE(numbers_are_accepted_in_every_form_people_write) {
  for (const char* form : {"1e-4", "1E-4", "1.e-4", "0.0001", ".0001", "+1e-4", "\"1e-4\"", "'1e-4'", "0.000_1"}) {
    BOOST_TEST_CONTEXT(form) {
      BOOST_TEST(loaded(kSmallest + "optimizer: {lr: " + form + "}\n").options.get_float("optimizer.lr") == 1e-4);
    }
  }
  for (const char* form : {"20_000", "20000", "+20000", "2e4", "\"20000\"", "2E+4"}) {
    BOOST_TEST_CONTEXT(form) {
      BOOST_TEST(loaded(kSmallest + "data: {seed: " + form + "}\n").options.get_int("data.seed") == 20000);
    }
  }
}

BOOST_AUTO_TEST_CASE(byte_order_mark_and_carriage_returns_change_nothing) {
  std::string text =
      "\xEF\xBB\xBFmodel: {kind: gpt}\r\ntrain:\r\n  max_steps: 10\r\n  seq_length: 16\r\n  global_batch_size: 8\r\n";
  JobConfig job = loaded(text);
  BOOST_TEST(job.options.to_string() == loaded(kSmallest).options.to_string());
  BOOST_TEST(job.options.where("model.kind") == "job.yaml:1:15: model.kind");
  BOOST_TEST(job.options.where("train.max_steps") == "job.yaml:3:14: train.max_steps");
}

BOOST_AUTO_TEST_CASE(variables_and_the_home_directory_are_expanded) {
  auto dir = [](const std::string& text) {
    return loaded(kSmallest + "run: {dir: " + text + "}\n", {},
                  {{"HOME", "/home/ada"}, {"SCRATCH", "/scratch"}, {"EMPTY", ""}})
        .options.get_string("run.dir");
  };
  BOOST_TEST(dir("\"${SCRATCH}/x\"") == "/scratch/x");
  BOOST_TEST(dir("$SCRATCH/x") == "/scratch/x");
  BOOST_TEST(dir("\"${NOWHERE:-runs}/x\"") == "runs/x");
  BOOST_TEST(dir("\"${EMPTY:-runs}/x\"") == "runs/x");
  BOOST_TEST(dir("~/x") == "/home/ada/x");
  BOOST_TEST(dir("a~b") == "a~b");
  BOOST_TEST(dir("cost$$5") == "cost$5");
  JobConfig job = loaded(kSmallest + "data: {seed: \"${SEED:-7}\"}\n");
  BOOST_TEST(job.options.get_int("data.seed") == 7);
}

BOOST_AUTO_TEST_CASE(a_tab_within_quotes_or_a_comment_is_text) {
  JobConfig job = loaded(kSmallest + "run: {dir: \"a\tb\"}  # a\tcomment\n# it's a\ttab\n");
  BOOST_TEST(job.options.get_string("run.dir") == "a\tb");
}

BOOST_AUTO_TEST_CASE(non_ascii_names_pass_through) {
  JobConfig job = loaded(kSmallest + "run: {name: Höhe-高原}\n");
  BOOST_TEST(job.options.get_string("run.dir") == "runs/Höhe-高原");
}

BOOST_AUTO_TEST_CASE(anchors_aliases_and_merge_keys_are_resolved) {
  JobConfig job = loaded(
      "model: {kind: gpt}\n"
      "train: {max_steps: &n 10, seq_length: 16, global_batch_size: 8}\n"
      "optimizer: {<<: {lr: 0.5, eps: 1e-6}, weight_decay: 0}\n"
      "lr_scheduler: {decay_steps: *n}\n");
  BOOST_TEST(job.options.get_int("lr_scheduler.decay_steps") == 10);
  BOOST_TEST(job.options.get_float("optimizer.lr") == 0.5);
  BOOST_TEST(job.options.get_float("optimizer.weight_decay") == 0.0);
  JobConfig merged = loaded(kSmallest + "optimizer: {<<: [{lr: 0.5}, {eps: 1e-6}]}\n");
  BOOST_TEST(merged.options.get_float("optimizer.eps") == 1e-6);
}

BOOST_AUTO_TEST_CASE(merge_keys_cannot_grow_a_small_file_without_bound) {
  std::string text = kSmallest + "data:\n  a: &a0 {x: 1, y: 2}\n";
  for (int i = 1; i < 40; ++i) text += fmt::format("  a{0}: &a{0} {{<<: [*a{1}, *a{1}]}}\n", i, i - 1);
  auto job = load(text);
  BOOST_TEST(!job.is_ok());
  BOOST_TEST(job.status().message().find("<< grows a map beyond 100000 keys") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(aliases_of_model_keys_are_accepted_with_a_notice) {
  JobConfig job =
      loaded("model: {kind: gpt, n_layer: 3}\ntrain: {max_steps: 1, seq_length: 1, global_batch_size: 1}\n");
  BOOST_TEST(job.options.get_int("model.num_hidden_layers") == 3);
  BOOST_TEST(job.notices == std::vector<std::string>{"job.yaml:1:20: model.n_layer: read as model.num_hidden_layers"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_planner_is_one_word_or_two_halves) {
  const Options one = loaded(kSmallest + "parallel: {planner: manual}\n").options;
  BOOST_TEST(one.get_string("parallel.planner.stages") == "manual");
  BOOST_TEST(one.get_string("parallel.planner.sharding") == "manual");
  const Options two = loaded(kSmallest + "parallel: {planner: {stages: manual}}\n").options;
  BOOST_TEST(two.get_string("parallel.planner.stages") == "manual");
  BOOST_TEST(two.get_string("parallel.planner.sharding") == "heuristic");
  BOOST_TEST(loaded(kSmallest, {"parallel.planner=manual"}).options.get_string("parallel.planner.sharding") ==
             "manual");
}

BOOST_AUTO_TEST_CASE(shardings_keep_the_order_written) {
  const Options options =
      loaded(kSmallest + "parallel:\n  sharding:\n    z.*: \"[-, {tensor}]\"\n    a.*: \"[{data}]\"\n").options;
  StringMap expected = {{"z.*", "[-, {tensor}]"}, {"a.*", "[{data}]"}};
  BOOST_TEST((options.get_map("parallel.sharding") == expected));
  BOOST_TEST((options.section("parallel").get_map("sharding") == expected));
}

BOOST_AUTO_TEST_CASE(overrides_win_and_are_named_as_the_origin) {
  JobConfig job = loaded(kSmallest, {"train.max_steps=7", "optimizer.betas=[0.8, 0.9]", "model.hidden_size=64",
                                     "parallel.sharding={w: \"[-]\"}", "train.micro_batch_size=auto"});
  BOOST_TEST(job.options.get_int("train.max_steps") == 7);
  BOOST_TEST(job.options.get_floats("optimizer.betas")[0] == 0.8);
  BOOST_TEST(job.options.get_int("model.hidden_size") == 64);
  BOOST_TEST(job.options.get_map("parallel.sharding").size() == 1U);
  BOOST_TEST(job.options.where("train.max_steps") == "--set train.max_steps");
  BOOST_TEST(!job.options.has("train.micro_batch_size"));
}

BOOST_AUTO_TEST_CASE(an_override_can_supply_a_required_key) {
  auto job = load("train: {max_steps: 1, seq_length: 1, global_batch_size: 1}\n", {"model.kind=gpt"});
  BOOST_TEST(job.is_ok(), job.status().message());
}

BOOST_AUTO_TEST_CASE(folders_and_decay_follow_from_other_keys) {
  const Options options = loaded(kSmallest).options;
  BOOST_TEST(options.get_string("run.name") == "job");
  BOOST_TEST(options.get_string("run.dir") == "runs/job");
  BOOST_TEST(options.get_string("checkpoint.dir") == "runs/job/checkpoints");
  BOOST_TEST(options.get_int("lr_scheduler.decay_steps") == 10);
  BOOST_TEST(loaded(kSmallest + "run: {dir: /r}\n").options.get_string("checkpoint.dir") == "/r/checkpoints");
}

BOOST_AUTO_TEST_CASE(any_two_batch_sizes_give_the_third) {
  auto sizes = [](const std::string& keys, int64_t data) {
    const Options options = loaded("model: {kind: gpt}\ntrain: {max_steps: 1, seq_length: 1, " + keys + "}\n").options;
    BatchSizes found = resolve_batch(options, data).value();
    return std::vector<int64_t>{found.global, found.micro, found.accumulation};
  };
  using Sizes = std::vector<int64_t>;
  auto each = boost::test_tools::per_element();
  BOOST_TEST(sizes("global_batch_size: 24, micro_batch_size: 2", 3) == (Sizes{24, 2, 4}), each);
  BOOST_TEST(sizes("global_batch_size: 24, gradient_accumulation_steps: 2", 3) == (Sizes{24, 4, 2}), each);
  BOOST_TEST(sizes("micro_batch_size: 2, gradient_accumulation_steps: 4", 3) == (Sizes{24, 2, 4}), each);
  BOOST_TEST(
      sizes("global_batch_size: 24, micro_batch_size: 2, gradient_accumulation_steps: 4", 3) == (Sizes{24, 2, 4}),
      each);
  BOOST_TEST(sizes("global_batch_size: 24", 3) == (Sizes{24, 0, 0}), each);
}

BOOST_AUTO_TEST_CASE(memory_per_rank_is_a_size_or_auto) {
  BOOST_TEST(memory_per_rank(loaded(kSmallest).options).value().has_value() == false);
  BOOST_TEST(memory_per_rank(loaded(kSmallest + "memory: {per_rank: 31.5 MiB}\n").options).value()->value == 33030144);
}

BOOST_AUTO_TEST_CASE(a_run_that_is_all_warmup_is_noticed) {
  JobConfig job = loaded(kSmallest + "lr_scheduler: {warmup_steps: 700}\n");
  BOOST_TEST_REQUIRE(job.notices.size() == 1U);
  BOOST_TEST(job.notices[0] ==
             "job.yaml:6:30: lr_scheduler.warmup_steps: 10 of 10 steps are warm-up: the learning rate never decays");
}

BOOST_AUTO_TEST_CASE(steps_at_a_learning_rate_of_0_are_noticed) {
  JobConfig job = loaded(kSmallest + "lr_scheduler: {decay_steps: 7}\n");
  BOOST_TEST_REQUIRE(job.notices.size() == 1U);
  BOOST_TEST(job.notices[0] ==
             "job.yaml:6:29: lr_scheduler.decay_steps: the learning rate is 0 from step 7 on: 4 of 10 steps train "
             "nothing; set it to 10 or more, or lr_scheduler.min_lr");
  for (const char* fine : {"lr_scheduler: {decay_steps: 9, min_lr: 1e-5}\n", "lr_scheduler: {name: constant}\n",
                           "lr_scheduler: {decay_steps: 10}\n", "lr_scheduler: {decay_steps: 20}\n",
                           "lr_scheduler: {warmup_steps: 9, decay_steps: 9}\n"})
    BOOST_TEST(loaded(kSmallest + fine).notices.empty(), fine);
}

BOOST_AUTO_TEST_CASE(an_option_of_a_command_is_named_by_messages_about_its_key) {
  JobSource source{.file = "job.yaml", .text = kSmallest, .flags = {{"--resume", "train.resume=maybe"}}};
  const auto refused = load_job_config(source, [](const auto&, const auto&) { return std::vector<OptionRecord>(); });
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.status().message().find("--resume: got maybe, expected auto, must, none or a path") == 0,
             refused.status().message());
}

BOOST_AUTO_TEST_CASE(the_shown_configuration_loads_again_as_the_same) {
  JobConfig job = loaded(
      kSmallest + "run: {name: \"a b: #c\", dir: \"x$$y\"}\nparallel: {sharding: {\"b.*\": \"[-, {tensor}]\"}}\n");
  JobConfig again = loaded(job_text(job.options, false));
  BOOST_TEST(again.options.to_string() == job.options.to_string());
  std::string origins = job_text(job.options, true);
  BOOST_TEST(origins.find("# job.yaml:3:14") != std::string::npos);
  BOOST_TEST(origins.find("# from run.dir") != std::string::npos);
  BOOST_TEST(origins.find("# default") != std::string::npos);
  JobConfig named = loaded(kSmallest + "run: {dir: $HOME/x}\nlearning_rate: ${LR:-0.5}\n", {}, {{"HOME", "/h"}});
  origins = job_text(named.options, true);
  BOOST_TEST(origins.find("# job.yaml:6:12 ($HOME)") != std::string::npos);
  BOOST_TEST(origins.find("# job.yaml:7:16 (read from learning_rate)") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(keys_that_a_command_needs_are_asked_for_by_name) {
  JobConfig job = loaded(kSmallest);
  BOOST_TEST(require_keys(job, {"data.train"}, "train").message() ==
             "job.yaml: data.train: missing; `altiplano train` needs it");
  BOOST_TEST(require_keys(job, {"run.name"}, "train").is_ok());
}

BOOST_AUTO_TEST_CASE(a_file_that_is_not_there_is_named) {
  auto job = load_job_config({.file = "/nowhere/job.yaml"}, known_models);
  BOOST_TEST(job.status().message().starts_with("/nowhere/job.yaml: cannot be read: No such file or directory"));
}

BOOST_AUTO_TEST_CASE(every_record_has_help_that_is_a_sentence) {
  for (const auto& record : job_option_records()) BOOST_TEST(record.help.ends_with("."), record.key);
}
