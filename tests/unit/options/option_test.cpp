#include "framework/options/option.hpp"

#include <boost/test/unit_test.hpp>

using namespace altiplano;

namespace {

std::vector<OptionRecord> records() {
  return {
      {.key = "train.steps", .type = OptionType::kInt, .required = true, .minimum = 1},
      {.key = "train.precision", .default_value = std::string("fp32"), .choices = {"fp32", "bf16", "fp64"}},
      {.key = "train.micro", .type = OptionType::kInt, .minimum = 1, .allow_auto = true},
      {.key = "optimizer.lr", .type = OptionType::kFloat, .default_value = int64_t{1}, .minimum = 0},
      {.key = "optimizer.betas",
       .type = OptionType::kFloatList,
       .default_value = std::vector<double>{0.9, 0.95},
       .minimum = 0,
       .maximum = 1,
       .below_maximum = true,
       .list_length = 2},
      {.key = "parallel.sharding", .type = OptionType::kStringMap, .default_value = StringMap{}},
  };
}

OptionOrigin at(int line, int column) {
  return {.file = "job.yaml", .line = line, .column = column};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_missing_key_is_its_records_default) {
  Options options(records());
  BOOST_TEST(options.get_string("train.precision") == "fp32");
  BOOST_TEST(options.get_float("optimizer.lr") == 1.0);
  BOOST_TEST(!options.has("train.steps"));
  BOOST_TEST(!options.is_set("train.precision"));
  BOOST_TEST(options.origin("train.precision").to_string() == "default");
}

BOOST_AUTO_TEST_CASE(a_given_value_is_kept_with_its_origin) {
  Options options(records());
  BOOST_TEST(options.set("train.steps", int64_t{20}, at(18, 22)).is_ok());
  BOOST_TEST(options.get_int("train.steps") == 20);
  BOOST_TEST(options.is_set("train.steps"));
  BOOST_TEST(options.where("train.steps") == "job.yaml:18:22: train.steps");
  BOOST_TEST(options.where("train.micro") == "train.micro");
  BOOST_TEST(options.set("train.steps", int64_t{30}, {.source = "--set"}).is_ok());
  BOOST_TEST(options.get_int("train.steps") == 30);
  BOOST_TEST(options.where("train.steps") == "--set train.steps");
}

BOOST_AUTO_TEST_CASE(refusals_name_origin_key_what_was_got_and_what_is_expected) {
  Options options(records());
  auto refusal = [&](const char* key, OptionValue value) {
    Status status = options.set(key, std::move(value), at(3, 5));
    BOOST_TEST((status.code() == StatusCode::kInvalidArgument));
    return status.message();
  };
  BOOST_TEST(refusal("train.steps", int64_t{0}) == "job.yaml:3:5: train.steps: got 0, expected integer >= 1");
  BOOST_TEST(refusal("train.steps", 1.5) == "job.yaml:3:5: train.steps: got 1.5, expected integer >= 1");
  BOOST_TEST(refusal("train.steps", std::monostate{}) == "job.yaml:3:5: train.steps: got auto, expected integer >= 1");
  BOOST_TEST(refusal("train.precision", std::string("bf61")) ==
             "job.yaml:3:5: train.precision: got bf61, expected fp32, bf16 or fp64; did you mean bf16?");
  BOOST_TEST(refusal("train.micro", true) == "job.yaml:3:5: train.micro: got true, expected integer >= 1 or auto");
  BOOST_TEST(refusal("optimizer.betas", std::vector<double>{0.9}) ==
             "job.yaml:3:5: optimizer.betas: got [0.9], expected list of 2 numbers in [0, 1)");
  BOOST_TEST(refusal("optimizer.betas", std::vector<double>{0.9, 1.0}) ==
             "job.yaml:3:5: optimizer.betas: got [0.9, 1], expected list of 2 numbers in [0, 1)");
  BOOST_TEST(refusal("train.stepz", int64_t{1}) == "job.yaml:3:5: train.stepz: unknown key");
  BOOST_TEST(!options.is_set("train.steps"));
}

BOOST_AUTO_TEST_CASE(auto_leaves_the_value_unset_but_given) {
  Options options(records());
  BOOST_TEST(options.set("train.micro", std::monostate{}, at(1, 1)).is_ok());
  BOOST_TEST(options.is_set("train.micro"));
  BOOST_TEST(!options.has("train.micro"));
}

BOOST_AUTO_TEST_CASE(a_derived_value_serves_until_the_user_gives_one) {
  Options options(records());
  options.derive("train.micro", int64_t{4}, "from the plan");
  BOOST_TEST(options.get_int("train.micro") == 4);
  BOOST_TEST(options.origin("train.micro").to_string() == "from the plan");
  BOOST_TEST(options.set("train.micro", std::monostate{}, at(1, 1)).is_ok());
  BOOST_TEST(options.get_int("train.micro") == 4);
  BOOST_TEST(options.set("train.micro", int64_t{2}, at(1, 1)).is_ok());
  BOOST_TEST(options.get_int("train.micro") == 2);
}

BOOST_AUTO_TEST_CASE(integers_serve_where_numbers_are_due) {
  Options options(records());
  BOOST_TEST(options.set("optimizer.lr", int64_t{2}, at(1, 1)).is_ok());
  BOOST_TEST(options.get_float("optimizer.lr") == 2.0);
  BOOST_TEST(options.set("optimizer.betas", std::vector<int64_t>{0, 0}, at(1, 1)).is_ok());
  BOOST_TEST(options.get_floats("optimizer.betas").size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_section_has_short_keys_and_messages_with_whole_keys) {
  Options options(records());
  BOOST_TEST(options.set("train.steps", int64_t{20}, at(2, 3)).is_ok());
  options.derive("train.micro", int64_t{4}, "from the plan");
  Options train = options.section("train");
  BOOST_TEST(train.records().size() == 3U);
  BOOST_TEST(train.get_int("steps") == 20);
  BOOST_TEST(train.get_int("micro") == 4);
  BOOST_TEST(train.where("steps") == "job.yaml:2:3: train.steps");
  BOOST_TEST(train.set("steps", int64_t{0}, at(9, 9)).message() ==
             "job.yaml:9:9: train.steps: got 0, expected integer >= 1");
}

BOOST_AUTO_TEST_CASE(all_values_print_sorted_one_per_line) {
  Options options(records());
  StringMap map = {{"block.*", "[-, {tensor}]"}, {"*", "[-]"}};
  BOOST_TEST(options.set("parallel.sharding", map, at(1, 1)).is_ok());
  BOOST_TEST(options.to_string() ==
             "optimizer.betas: [0.9, 0.95]\noptimizer.lr: 1\nparallel.sharding: {block.*: [-, {tensor}], *: [-]}\n"
             "train.micro: unset\ntrain.precision: fp32\ntrain.steps: unset\n");
  BOOST_TEST((options.get_map("parallel.sharding") == map));
}
