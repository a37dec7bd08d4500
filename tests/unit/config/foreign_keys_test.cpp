#include "framework/config/foreign_keys.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <set>

#include "tests/unit/config/job_fixture.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

/// A value that the record of `key` takes, as it would stand in a file.
std::string some_value(const ForeignKey& foreign) {
  if (!foreign.values.empty()) return foreign.values[0].first;
  for (const auto& record : job_records_with_model(gpt_like_records())) {
    if (record.key != foreign.key) continue;
    if (!record.choices.empty()) return record.choices.back();
    switch (record.type) {
      case OptionType::kBool:
        return "false";
      case OptionType::kInt:
        return "1";
      case OptionType::kFloat:
        return "0";
      case OptionType::kFloatList:
        return "[0.5, 0.5]";
      default:
        return "some/path";
    }
  }
  return "";
}

/// name "a.b", value "1" -> "a: {b: 1}\n"
std::string entry(const std::string& name, const std::string& value) {
  size_t dot = name.find('.');
  if (dot == std::string::npos) return name + ": " + value + "\n";
  std::string inner = entry(name.substr(dot + 1), value);
  return name.substr(0, dot) + ": {" + inner.substr(0, inner.size() - 1) + "}\n";
}

/// The smallest job without the key that `foreign` gives.
std::string job_without(const std::string& key) {
  std::string text = "model: {kind: gpt}\n";
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"train.max_steps", "10"}, {"train.seq_length", "16"}, {"train.global_batch_size", "8"}})
    if (name != key) text += name + ": " + value + "\n";
  // Rules across keys that some of the names touch.
  if (key == "train.validate_every") text += "data.validation.fraction: 0.1\n";
  if (key == "train.global_batch_size") text += "";
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_foreign_name_with_a_counterpart_is_read_with_a_notice) {
  const auto records = job_records_with_model(gpt_like_records());
  for (const ForeignKey& foreign : foreign_keys()) {
    if (foreign.key.empty() || foreign.key == "optimizer.momentum") continue;
    if (std::ranges::find(records, foreign.key, &OptionRecord::key) == records.end()) continue;
    BOOST_TEST_CONTEXT(foreign.name) {
      auto job = load(job_without(foreign.key) + entry(foreign.name, some_value(foreign)));
      BOOST_TEST_REQUIRE(job.is_ok(), job.status().message());
      BOOST_TEST(job->options.is_set(foreign.key));
      BOOST_TEST(job->options.origin(foreign.key).detail == "read from " + foreign.name);
      const std::string notice = foreign.name + ": read as " + foreign.key + " (" + foreign.tool + "'s name)";
      BOOST_TEST(std::ranges::any_of(job->notices, [&](const auto& text) { return text.ends_with(notice); }), notice);
    }
  }
}

BOOST_AUTO_TEST_CASE(every_foreign_name_without_a_counterpart_says_what_to_write) {
  for (const ForeignKey& foreign : foreign_keys()) {
    if (!foreign.key.empty()) continue;
    BOOST_TEST_CONTEXT(foreign.name) {
      auto job = load(kSmallest + entry(foreign.name, "1"));
      BOOST_TEST(!job.is_ok());
      BOOST_TEST(job.status().message().ends_with(foreign.hint), job.status().message());
    }
  }
}

BOOST_AUTO_TEST_CASE(foreign_names_are_read_in_the_section_of_their_key_too) {
  auto job = load(kSmallest + "parallel: {tensor_model_parallel_size: 2}\nlr_scheduler: {lr_decay_style: linear}\n");
  BOOST_TEST_REQUIRE(job.is_ok(), job.status().message());
  BOOST_TEST(job->options.get_int("parallel.tensor_parallel_size") == 2);
  BOOST_TEST(job->options.get_string("lr_scheduler.name") == "linear");
}

BOOST_AUTO_TEST_CASE(a_deepspeed_file_means_what_it_means_there) {
  auto job = load(
      "model: {kind: gpt}\ntrain: {max_steps: 10, seq_length: 16}\n"
      "train_batch_size: 64\ntrain_micro_batch_size_per_gpu: 4\ngradient_clipping: 0.5\nbf16: {enabled: true}\n"
      "zero_optimization: {stage: 0}\n"
      "optimizer: {type: AdamW, params: {lr: 1e-3, betas: [0.8, 0.9], eps: 1e-7, weight_decay: 0.01}}\n"
      "scheduler: {type: WarmupDecayLR, params: {warmup_num_steps: 2, total_num_steps: 12}}\n");
  BOOST_TEST_REQUIRE(job.is_ok(), job.status().message());
  const Options& o = job->options;
  BOOST_TEST(o.get_int("train.global_batch_size") == 64);
  BOOST_TEST(o.get_int("train.micro_batch_size") == 4);
  BOOST_TEST(o.get_float("train.gradient_clipping") == 0.5);
  BOOST_TEST(o.get_string("train.precision") == "bf16");
  BOOST_TEST(o.get_int("parallel.zero_stage") == 0);
  BOOST_TEST(o.get_string("optimizer.name") == "adamw");
  BOOST_TEST(o.get_floats("optimizer.betas")[0] == 0.8);
  BOOST_TEST(o.get_string("lr_scheduler.name") == "linear");
  BOOST_TEST(o.get_int("lr_scheduler.decay_steps") == 12);
  BOOST_TEST(job->notices.size() == 13U);
}

BOOST_AUTO_TEST_CASE(the_table_names_keys_that_exist_and_values_that_they_take) {
  auto records = job_option_records();
  std::set<std::string> names;
  for (const ForeignKey& foreign : foreign_keys()) {
    BOOST_TEST_CONTEXT(foreign.name) {
      BOOST_TEST(names.insert(foreign.name).second);
      BOOST_TEST((foreign.key.empty() != foreign.hint.empty()));
      auto record = std::ranges::find(records, foreign.key, &OptionRecord::key);
      if (foreign.key.empty() || foreign.key.starts_with("model.")) continue;
      BOOST_TEST((record != records.end()), foreign.key);
      for (const auto& [theirs, ours] : foreign.values)
        if (!record->choices.empty()) BOOST_TEST((std::ranges::find(record->choices, ours) != record->choices.end()));
    }
  }
}
