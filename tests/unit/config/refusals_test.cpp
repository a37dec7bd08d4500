// A table of wrong job files and the exact message of each.
#include <boost/test/unit_test.hpp>

#include "tests/unit/config/job_fixture.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

struct Wrong {
  const char* name;
  std::string text;  ///< appended to kSmallest (lines 6 on) unless it starts with '='
  std::string message;
  std::vector<std::string> overrides = {};
};

std::vector<Wrong> syntax_mistakes() {
  const std::string sections =
      "run, model, data, train, optimizer, lr_scheduler, parallel, comm, device, checkpoint, cluster, plugins, memory, "
      "slurm";
  return {
      {"empty file", "=", "job.yaml:1:1: empty file, expected sections: " + sections},
      {"only a comment", "=# nothing\n", "job.yaml:1:1: empty file, expected sections: " + sections},
      {"only a word", "=hello", "job.yaml:1:1: got hello, expected sections: " + sections},
      {"tab indentation", "data:\n\tseed: 1\n", "job.yaml:7:1: tab in the indentation; YAML allows only spaces there"},
      {"tab behind spaces", "data:\n  \tseed: 1\n",
       "job.yaml:7:3: tab in the indentation; YAML allows only spaces there"},
      {"tab after the colon", "data:\n  seed:\t1\n",
       "job.yaml:7:8: tab between words; use spaces, or quotes around a text with a tab"},
      {"open bracket", "optimizer: {betas: [0.9, 0.95}\n", "job.yaml:6:30: not valid YAML: illegal flow end"},
      {"variable among braces", "run: {dir: ${X}/y}\n",
       "job.yaml:6:13: not valid YAML: end of map flow not found; inside {} or [] a value with ${NAME} must be quoted"},
      {"tag", "data: {seed: !!int 1}\n", "job.yaml:6:14: YAML tags are not used here (tag:yaml.org,2002:int)"},
      {"two documents", "---\ndata: {seed: 1}\n", "job.yaml:7:1: a second YAML document; one file holds one document"},
      {"list as key", "[a, b]: 1\n", "job.yaml:6:1: a key must be a word"},
      {"merge of a scalar", "data: {<<: 1}\n", "job.yaml:6:8: << needs an alias of a map"},
  };
}

std::vector<Wrong> key_mistakes() {
  return {
      {"misspelt model key",
       "=model:\n  kind: gpt\n  num_hiden_layers: 3\ntrain: {max_steps: 1, seq_length: 1, global_batch_size: 1}\n",
       "job.yaml:3:3: model.num_hiden_layers: unknown key; did you mean num_hidden_layers?"},
      {"misspelt section", "optimiser: {lr: 1}\n", "job.yaml:6:1: optimiser: unknown key; did you mean optimizer?"},
      {"key in the wrong section", "data: {betas: [0.9, 0.95]}\n",
       "job.yaml:6:8: data.betas: unknown key; did you mean optimizer.betas?"},
      {"unknown key without a neighbour", "checkpoint: {compression: 3}\n",
       "job.yaml:6:14: checkpoint.compression: unknown key; known keys of checkpoint: every_steps, keep_last, "
       "keep_every, dir"},
      {"key of another tool", "slurm_settings: 1\n",
       "job.yaml:6:1: slurm_settings: unknown key; known sections: run, model, data, train, optimizer, lr_scheduler, "
       "parallel, comm, device, checkpoint, cluster, plugins, memory, slurm"},
      {"key twice at top level", "data: {seed: 1}\ndata: {seed: 2}\n",
       "job.yaml:7:1: data: given twice, first in line 6"},
      {"key twice nested", "data:\n  seed: 1\n  seed: 1\n", "job.yaml:8:3: data.seed: given twice, first in line 7"},
      {"key twice, nested and dotted", "data: {seed: 1}\ndata.seed: 2\n",
       "job.yaml:7:1: data.seed: given twice, first in line 6"},
      {"key twice through a merge key", "data: &d {seed: 1}\noptimizer:\n  eps: 1e-8\n  <<: {eps: 1e-6}\n",
       "job.yaml:9:8: optimizer.eps: given twice, first in line 8"},
      {"key and its alias", "optimizer: {lr: 1e-3, learning_rate: 1e-3}\n",
       "job.yaml:6:23: optimizer.learning_rate: another name of optimizer.lr, which line 6 gives; keep one of them"},
      {"both planner forms", "parallel: {planner: manual}\nparallel.planner.stages: manual\n",
       "job.yaml:7:1: parallel.planner.stages: given twice, first in line 6 as parallel.planner"},
      {"section without content", "optimizer:\n",
       "job.yaml:6:1: optimizer: empty value, expected a section with keys among name, lr, betas, eps, weight_decay, "
       "momentum"},
      {"scalar for a section", "optimizer: adamw\n",
       "job.yaml:6:12: optimizer: got adamw, expected a section with keys among name, lr, betas, eps, weight_decay, "
       "momentum"},
      {"unknown model", "=model: {kind: gtp}\ntrain: {max_steps: 0, seq_length: 1, global_batch_size: 1}\n",
       "job.yaml:1:15: model.kind: no model plugin gtp; there is gpt\n"
       "job.yaml:2:20: train.max_steps: got 0, expected integer in [1, 1073741824]"},
      {"missing required keys", "=model: {kind: gpt}\n",
       "job.yaml: train.max_steps: missing, expected integer in [1, 1073741824]\n"
       "job.yaml: train.seq_length: missing, expected integer in [1, 16777216]"},
  };
}

std::vector<Wrong> value_mistakes() {
  return {
      {"nothing behind the colon", "data:\n  seed:\n", "job.yaml:7:3: data.seed: empty value, expected integer >= 0"},
      {"null", "data: {seed: null}\n", "job.yaml:6:8: data.seed: empty value, expected integer >= 0"},
      {"empty quotes", "run: {name: \"\"}\n", "job.yaml:6:13: run.name: empty value, expected text"},
      {"word for an integer", "data: {seed: abc}\n", "job.yaml:6:14: data.seed: got abc, expected integer >= 0"},
      {"fraction for an integer", "data: {seed: 1.5}\n", "job.yaml:6:14: data.seed: got 1.5, expected integer >= 0"},
      {"leading zero", "data: {seed: 010}\n",
       "job.yaml:6:14: data.seed: got 010, expected integer >= 0; leading zeros are read differently by different "
       "tools"},
      {"hexadecimal", "data: {seed: 0x10}\n", "job.yaml:6:14: data.seed: got 0x10, expected integer >= 0"},
      {"underscores at odd places", "data: {seed: 1__0}\n",
       "job.yaml:6:14: data.seed: got 1__0, expected integer >= 0"},
      {"list for an integer", "data: {seed: [1]}\n", "job.yaml:6:14: data.seed: got a list, expected integer >= 0"},
      {"map for an integer", "data: {seed: {a: 1}}\n", "job.yaml:6:14: data.seed: got a map, expected integer >= 0"},
      {"too large for 64 bits", "data: {seed: 99999999999999999999}\n",
       "job.yaml:6:14: data.seed: got 99999999999999999999, expected integer >= 0; it does not fit into 64 bits: the "
       "largest is 2^63-1"},
      {"below the minimum", "data: {seed: -1}\n", "job.yaml:6:14: data.seed: got -1, expected integer >= 0"},
      {"auto where a value is due", "data: {seed: auto}\n",
       "job.yaml:6:14: data.seed: got auto, expected integer >= 0"},
      {"word for a number", "optimizer: {lr: fast}\n", "job.yaml:6:17: optimizer.lr: got fast, expected number >= 0"},
      {"nan", "optimizer: {lr: nan}\n", "job.yaml:6:17: optimizer.lr: got nan, expected number >= 0"},
      {"infinity", "optimizer: {lr: .inf}\n", "job.yaml:6:17: optimizer.lr: got .inf, expected number >= 0"},
      {"unit behind a number", "comm: {timeout_seconds: 10 s}\n",
       "job.yaml:6:25: comm.timeout_seconds: got \"10 s\", expected number in [0.001, 1000000]"},
      {"yes", "parallel: {sequence_parallel: yes}\n",
       "job.yaml:6:31: parallel.sequence_parallel: got yes, expected true or false; write true"},
      {"off", "parallel: {sequence_parallel: off}\n",
       "job.yaml:6:31: parallel.sequence_parallel: got off, expected true or false; write false"},
      {"word for a boolean", "parallel: {sequence_parallel: maybe}\n",
       "job.yaml:6:31: parallel.sequence_parallel: got maybe, expected true or false"},
      {"misspelt choice", "train.precision: bf61\n",
       "job.yaml:6:18: train.precision: got bf61, expected fp32, bf16 or fp64; did you mean bf16?"},
      {"far choice", "optimizer: {name: lion_v2_experimental}\n",
       "job.yaml:6:19: optimizer.name: got lion_v2_experimental, expected adamw or sgd"},
      {"ZeRO stage that does not exist", "parallel: {zero_stage: 4}\n",
       "job.yaml:6:24: parallel.zero_stage: got 4, expected integer in [0, 3] or auto"},
      {"scalar for a list", "optimizer: {betas: 0.9}\n",
       "job.yaml:6:20: optimizer.betas: got 0.9, expected list of 2 numbers in [0, 1); write [0.9]"},
      {"list of the wrong length", "optimizer: {betas: [0.9]}\n",
       "job.yaml:6:20: optimizer.betas: got [0.9], expected list of 2 numbers in [0, 1)"},
      {"list element out of bounds", "optimizer: {betas: [0.9, 1]}\n",
       "job.yaml:6:20: optimizer.betas: got [0.9, 1], expected list of 2 numbers in [0, 1)"},
      {"list element of the wrong type", "parallel: {pipeline: {split: [2, x]}}\n",
       "job.yaml:6:34: parallel.pipeline.split[1]: got x, expected integer"},
      {"scalar for a map", "parallel: {sharding: all}\n",
       "job.yaml:6:22: parallel.sharding: got all, expected map of texts"},
      {"unquoted spec", "parallel: {sharding: {w: [a, b]}}\n",
       "job.yaml:6:23: parallel.sharding[w]: got a list, expected text (put it in quotes)"},
      {"glob twice", "parallel: {sharding: {w: \"[-]\", w: \"[-]\"}}\n",
       "job.yaml:6:33: parallel.sharding[w]: given twice, first in line 6"},
      {"unset variable", "run: {dir: \"${SCRATCH}/x\"}\n",
       "job.yaml:6:12: run.dir: variable SCRATCH is not set; set it or write ${SCRATCH:-fallback}"},
      {"unset variable without braces", "run: {dir: $SCRATCH/x}\n",
       "job.yaml:6:12: run.dir: variable SCRATCH is not set; set it or write ${SCRATCH:-fallback}"},
      {"open variable", "run: {dir: \"${SCRATCH\"}\n",
       "job.yaml:6:12: run.dir: cannot read ${SCRATCH; write ${NAME} or ${NAME:-fallback}"},
      {"odd size", "memory: {per_rank: 12 parsecs}\n",
       "job.yaml:6:20: memory.per_rank: got 12 parsecs, expected bytes such as 40 GiB or auto"},
  };
}

std::vector<Wrong> rule_mistakes() {
  const std::string batch = "=model: {kind: gpt}\ntrain:\n  max_steps: 10\n  seq_length: 16\n";
  return {
      {"batch no multiple of micro x data",
       batch + "  global_batch_size: 10\n  micro_batch_size: 2\nparallel: {data_parallel_size: 4}\n",
       "job.yaml:5:22: train.global_batch_size: 10 is not a multiple of micro_batch_size 2 x data_parallel_size 4 = 8; "
       "nearest: 8, 16"},
      {"batch smaller than the replicas", batch + "  global_batch_size: 3\nparallel: {data_parallel_size: 4}\n",
       "job.yaml:5:22: train.global_batch_size: 3 is not a multiple of data_parallel_size 4; nearest: 4"},
      {"batch no multiple of micro x accumulation, degree open",
       batch + "  global_batch_size: 10\n  micro_batch_size: 2\n  gradient_accumulation_steps: 3\n",
       "job.yaml:5:22: train.global_batch_size: 10 is not a multiple of micro_batch_size 2 x "
       "gradient_accumulation_steps 3 = "
       "6; nearest: 6, 12"},
      {"three sizes that contradict",
       batch + "  global_batch_size: 12\n  micro_batch_size: 2\n  gradient_accumulation_steps: 3\nparallel: "
               "{data_parallel_size: 4}\n",
       "job.yaml:5:22: train.global_batch_size: 12 is not micro_batch_size 2 x gradient_accumulation_steps 3 x "
       "data_parallel_size 4 = 24; leave out one of the three sizes or set this one to 24"},
      {"no batch size at all", batch,
       "job.yaml: train.global_batch_size: missing; give it, or both train.micro_batch_size and "
       "train.gradient_accumulation_steps"},
      {"validation without data", "train.validate_every: 5\n",
       "job.yaml:6:23: train.validate_every: 5, but there is no validation data; set data.validation.fraction (e.g. "
       "0.02) or "
       "data.validation.file, or validate_every 0"},
      {"two sources of validation data", "data: {validation: {file: v.h5, fraction: 0.1}}\n",
       "job.yaml:6:43: data.validation.fraction: given together with data.validation.file; keep one of them"},
      {"momentum for adamw", "optimizer: {name: adamw, momentum: 0.9}\n",
       "job.yaml:6:36: optimizer.momentum: optimizer.name adamw does not use it; remove the key"},
      {"betas for sgd", "optimizer: {name: sgd, betas: [0.9, 0.99]}\n",
       "job.yaml:6:31: optimizer.betas: optimizer.name sgd does not use it; remove the key"},
      {"decay of a constant rate", "lr_scheduler: {name: constant, min_lr: 1e-5}\n",
       "job.yaml:6:40: lr_scheduler.min_lr: lr_scheduler.name constant does not use it; remove the key"},
      {"lowest rate above the highest", "optimizer: {lr: 1e-4}\nlr_scheduler: {min_lr: 1e-3}\n",
       "job.yaml:7:24: lr_scheduler.min_lr: 0.001 is above optimizer.lr 0.0001; expected at most that"},
      {"decay ends within warm-up", "lr_scheduler: {warmup_steps: 9, decay_steps: 5}\n",
       "job.yaml:6:46: lr_scheduler.decay_steps: 5 is before the end of the 9 warm-up steps; expected at least 9"},
      {"split of another number of stages", "parallel: {pipeline_parallel_size: 3, pipeline: {split: [2, 2]}}\n",
       "job.yaml:6:57: parallel.pipeline.split: 2 numbers for pipeline_parallel_size 3; expected one number of layers "
       "per "
       "stage"},
      {"misspelt resume", "train.resume: atuo\n",
       "job.yaml:6:15: train.resume: got atuo, expected auto, must, none or a path with a / in it; did you mean auto?"},
      {"several rules at once", "train.resume: maybe-later\noptimizer: {momentum: 0.5}\n",
       "job.yaml:7:23: optimizer.momentum: optimizer.name adamw does not use it; remove the key\n"
       "job.yaml:6:15: train.resume: got maybe-later, expected auto, must, none or a path with a / in it"},
  };
}

std::vector<Wrong> override_mistakes() {
  return {
      {"empty override",
       "",
       "--set train.precision: empty value; leave it out to keep the job file's",
       {"train.precision="}},
      {"override without equals sign", "", "--set fast: expected key=value, e.g. train.max_steps=100", {"fast"}},
      {"override of an unknown key",
       "",
       "--set train.max_step: unknown key; did you mean max_steps?",
       {"train.max_step=5"}},
      {"override of the wrong type",
       "",
       "--set train.max_steps: got many, expected integer in [1, 1073741824]",
       {"train.max_steps=many"}},
      {"override out of bounds",
       "",
       "--set train.max_steps: got 0, expected integer in [1, 1073741824]",
       {"train.max_steps=0"}},
      {"override of a section",
       "",
       "--set optimizer: got adamw, expected a section with keys among name, lr, betas, eps, weight_decay, momentum",
       {"optimizer=adamw"}},
      {"override that breaks a rule",
       "",
       "job.yaml:5:22: train.global_batch_size: 8 is not a multiple of data_parallel_size 3; nearest: 6, 9",
       {"parallel.data_parallel_size=3"}},
      {"broken list in an override",
       "",
       "--set optimizer.betas: not valid YAML: end of sequence flow not found",
       {"optimizer.betas=[0.9"}},
  };
}

void check_all(const std::vector<Wrong>& table) {
  for (const auto& wrong : table) {
    BOOST_TEST_CONTEXT(wrong.name) {
      auto job = load(wrong.text.starts_with('=') ? wrong.text.substr(1) : kSmallest + wrong.text, wrong.overrides);
      BOOST_TEST(!job.is_ok());
      BOOST_TEST(job.status().message() == wrong.message);
      BOOST_TEST((job.status().code() == StatusCode::kInvalidArgument));
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(syntax_mistakes_name_the_place) {
  check_all(syntax_mistakes());
}
BOOST_AUTO_TEST_CASE(wrong_keys_are_refused_with_a_suggestion) {
  check_all(key_mistakes());
}
BOOST_AUTO_TEST_CASE(wrong_values_say_what_was_got_and_what_is_expected) {
  check_all(value_mistakes());
}
BOOST_AUTO_TEST_CASE(broken_rules_give_the_numbers_and_the_alternatives) {
  check_all(rule_mistakes());
}
BOOST_AUTO_TEST_CASE(wrong_overrides_name_their_key) {
  check_all(override_mistakes());
}

BOOST_AUTO_TEST_CASE(all_mistakes_are_listed_in_the_order_of_the_file) {
  auto job = load(kSmallest + "data:\n  seed: x\n  sead: 1\noptimizer: {lr: y}\n");
  BOOST_TEST(job.status().message() ==
             "job.yaml:7:9: data.seed: got x, expected integer >= 0\n"
             "job.yaml:8:3: data.sead: unknown key; did you mean seed?\n"
             "job.yaml:9:17: optimizer.lr: got y, expected number >= 0");
}

BOOST_AUTO_TEST_CASE(damaged_files_are_refused_or_read_but_never_crash) {
  const std::string text = kSmallest +
                           "optimizer: {name: adamw, betas: [0.9, 0.95], lr: \"1e-3\"}  # rate\n"
                           "parallel:\n  planner: &p manual\n  schedule: *p\n  sharding: {'a*': '[-]'}\n"
                           "run: {dir: \"${HOME}/x\"}\n";
  BOOST_TEST(load(text).is_ok());
  int refused = 0;
  auto check = [&](const std::string& damaged) {
    auto job = load(damaged);
    if (job.is_ok()) return;
    ++refused;
    BOOST_TEST(!job.status().message().empty());
  };
  for (size_t i = 0; i < text.size(); ++i) {
    check(text.substr(0, i));
    for (char c : {'\t', '\n', '"', '\'', '{', '}', '[', ']', ':', '&', '*', '!', '#', '$', '\0', '\xff', '-', '|'}) {
      std::string damaged = text;
      damaged[i] = c;
      check(damaged);
    }
  }
  check(std::string(100'000, '['));
  check(std::string(100'000, '{'));
  BOOST_TEST(refused > 1000);
}
