#include "framework/runtime/data/batch_source.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "tests/support/temporary_directory.hpp"

using namespace altiplano;

namespace {

/// A token file whose token at position i is i % 251: a window tells where it was taken from, for fewer than 251
/// tokens.
std::string packed(const test::TemporaryDirectory& dir, const std::string& name, int64_t num_tokens) {
  std::string text;
  for (int64_t i = 0; i < num_tokens; ++i) text += static_cast<char>(i % 251);
  test::write_bytes(dir / (name + ".txt"), text);
  auto info = pack_text({.inputs = {dir / (name + ".txt")}, .output = dir / name}, *make_byte_tokenizer());
  BOOST_REQUIRE_MESSAGE(info.is_ok(), info.status().to_string());
  return dir / name;
}

BatchSourceOptions options_for(const std::string& path, int64_t seq_length, int64_t global_batch) {
  BatchSourceOptions options;
  options.train_path = path;
  options.seq_length = seq_length;
  options.global_batch_size = global_batch;
  options.model_vocab_size = 257;
  options.seed = 11;
  return options;
}

void check_refused(const BatchSourceOptions& options, const std::string& part) {
  Status status = BatchSource::open(options).status();
  BOOST_TEST(status.message().find(part) != std::string::npos, status.message());
}

}  // namespace

BOOST_AUTO_TEST_CASE(labels_are_the_tokens_one_later) {
  test::TemporaryDirectory dir;
  auto source = BatchSource::open(options_for(packed(dir, "a.h5", 241), 8, 4));
  BOOST_REQUIRE_MESSAGE(source.is_ok(), source.status().to_string());
  BOOST_TEST(source->num_training_samples() == 30);
  Batch batch = source->training_batch(0, 4).value();
  BOOST_TEST(batch.tokens.size() == 32u);
  for (size_t i = 0; i < batch.tokens.size(); ++i) {
    BOOST_TEST(batch.labels[i] == batch.tokens[i] + 1);
    BOOST_TEST(batch.tokens[i] % 8 == static_cast<int32_t>(i % 8));
  }
}

BOOST_AUTO_TEST_CASE(ranks_four_then_two_then_three_see_every_sample_once_per_epoch) {
  test::TemporaryDirectory dir;
  constexpr int64_t kSamples = 24, kBatch = 12;
  auto source = BatchSource::open(options_for(packed(dir, "a.h5", kSamples * 8 + 1), 8, kBatch)).value();
  BOOST_REQUIRE(source.num_training_samples() == kSamples);
  std::map<int32_t, int> times;
  int64_t consumed = 0;
  for (int ranks : {4, 2, 3, 4, 3, 2}) {  // six steps: three epochs
    for (int rank = 0; rank < ranks; ++rank) {
      int64_t share = kBatch / ranks;
      Batch batch = source.training_batch(consumed + rank * share, share).value();
      for (int64_t i = 0; i < share; ++i) ++times[batch.tokens[static_cast<size_t>(i * 8)]];
    }
    consumed += kBatch;
    if (consumed % kSamples == 0) {
      BOOST_TEST(times.size() == static_cast<size_t>(kSamples));
      for (auto [sample, count] : times) BOOST_TEST(count == consumed / kSamples);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_batch_may_reach_into_the_next_epoch) {
  test::TemporaryDirectory dir;
  auto source = BatchSource::open(options_for(packed(dir, "a.h5", 10 * 8 + 1), 8, 4)).value();
  std::multiset<int32_t> starts;
  Batch batch = source.training_batch(8, 12).value();
  Batch before = source.training_batch(0, 8).value();
  for (size_t i = 0; i < 12; ++i) starts.insert(batch.tokens[i * 8]);
  for (size_t i = 0; i < 8; ++i) starts.insert(before.tokens[i * 8]);
  for (int32_t window = 0; window < 10; ++window) BOOST_TEST(starts.count(window * 8) == 2u);
}

BOOST_AUTO_TEST_CASE(validation_tokens_are_in_no_training_sample) {
  test::TemporaryDirectory dir;
  BatchSourceOptions options = options_for(packed(dir, "a.h5", 248), 8, 4);
  options.validation_fraction = 0.2;
  auto source = BatchSource::open(options).value();
  BOOST_TEST(source.num_training_samples() == 24);
  BOOST_TEST(source.num_validation_samples() == 6);
  Batch training = source.training_batch(0, 24).value(), validation = source.validation_batch(0, 6).value();
  int32_t last_training = *std::ranges::max_element(training.labels);
  int32_t first_validation = *std::ranges::min_element(validation.tokens);
  BOOST_TEST(first_validation == last_training + 1);
}

BOOST_AUTO_TEST_CASE(validation_may_have_a_file_of_its_own) {
  test::TemporaryDirectory dir;
  BatchSourceOptions options = options_for(packed(dir, "a.h5", 241), 8, 4);
  options.validation_path = packed(dir, "b.h5", 33);
  auto source = BatchSource::open(options).value();
  BOOST_TEST(source.num_training_samples() == 30);
  BOOST_TEST(source.num_validation_samples() == 4);
}

BOOST_AUTO_TEST_CASE(past_the_last_validation_sample_labels_are_ignored) {
  test::TemporaryDirectory dir;
  BatchSourceOptions options = options_for(packed(dir, "a.h5", 241), 8, 4);
  options.validation_path = packed(dir, "b.h5", 33);
  Batch batch = BatchSource::open(options).value().validation_batch(3, 2).value();
  BOOST_TEST(batch.labels[7] == 32);
  for (size_t i = 8; i < 16; ++i) BOOST_TEST(batch.labels[i] == kIgnoredLabel);
}

BOOST_AUTO_TEST_CASE(data_smaller_than_one_batch_is_refused_with_both_numbers) {
  test::TemporaryDirectory dir;
  std::string path = packed(dir, "a.h5", 3 * 128 + 1);
  check_refused(options_for(path, 128, 8), "data.train has 3 samples of 128 tokens, global_batch_size 8");
}

BOOST_AUTO_TEST_CASE(ids_outside_the_models_vocabulary_are_refused_with_place) {
  test::TemporaryDirectory dir;
  BatchSourceOptions options = options_for(packed(dir, "a.h5", 241), 8, 4);
  options.model_vocab_size = 240;
  check_refused(options, "a.h5 has token id 240 at token 240, model.vocab_size is 240");
  options.model_vocab_size = 241;
  BOOST_TEST(BatchSource::open(options).is_ok());
}

BOOST_AUTO_TEST_CASE(a_validation_part_without_a_whole_sample_is_refused) {
  test::TemporaryDirectory dir;
  BatchSourceOptions options = options_for(packed(dir, "a.h5", 241), 8, 4);
  options.validation_fraction = 0.01;
  check_refused(options, "0.01 of 30 samples of 8 tokens leaves no whole sample for validation; smallest: 0.0667");
  options.validation_path = packed(dir, "b.h5", 8);
  check_refused(options, "b.h5 has 8 tokens, one sample of 8 needs 9");
}

BOOST_AUTO_TEST_CASE(one_very_long_line_is_data_like_any_other) {
  test::TemporaryDirectory dir;
  test::write_bytes(dir / "a.txt", std::string(3000000, 'x'));
  BOOST_REQUIRE(pack_text({.inputs = {dir / "a.txt"}, .output = dir / "a.h5"}, *make_byte_tokenizer()).is_ok());
  auto source = BatchSource::open(options_for(dir / "a.h5", 128, 8)).value();
  BOOST_TEST(source.num_training_samples() == 23437);
}
