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
  options.train = {{path, 1}};
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
  BOOST_TEST(source.num_validation_samples() == 7);  // the last one is short
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
  check_refused(options_for(path, 128, 8), "data.train: 3 samples of 128 tokens, global_batch_size 8");
}

BOOST_AUTO_TEST_CASE(ids_outside_the_models_vocabulary_are_refused_with_place) {
  test::TemporaryDirectory dir;
  BatchSourceOptions options = options_for(packed(dir, "a.h5", 241), 8, 4);
  options.model_vocab_size = 240;
  check_refused(options, "a.h5 has token id 240 at token 240, model.vocab_size is 240");
  options.model_vocab_size = 241;
  BOOST_TEST(BatchSource::open(options).is_ok());
}

BOOST_AUTO_TEST_CASE(a_validation_part_without_a_sample_is_refused) {
  test::TemporaryDirectory dir;
  BatchSourceOptions options = options_for(packed(dir, "a.h5", 241), 8, 4);
  options.validation_fraction = 0.01;
  check_refused(options, "data.validation.fraction: 0.01 of the 30 samples of 8 tokens in ");
  check_refused(options, "a.h5 leaves none for validation; enough: 0.0337");
  options.validation_fraction = 0.0337;
  BOOST_TEST(BatchSource::open(options).value().num_validation_samples() == 1);
  options.validation_path = packed(dir, "b.h5", 1);
  check_refused(options, "b.h5 has 1 token; the loss of a prediction needs 2");
}

BOOST_AUTO_TEST_CASE(one_very_long_line_is_data_like_any_other) {
  test::TemporaryDirectory dir;
  test::write_bytes(dir / "a.txt", std::string(3000000, 'x'));
  BOOST_REQUIRE(pack_text({.inputs = {dir / "a.txt"}, .output = dir / "a.h5"}, *make_byte_tokenizer()).is_ok());
  auto source = BatchSource::open(options_for(dir / "a.h5", 128, 8)).value();
  BOOST_TEST(source.num_training_samples() == 23437);
}

BOOST_AUTO_TEST_CASE(the_last_validation_sample_may_be_short_so_that_every_token_is_predicted) {
  test::TemporaryDirectory dir;
  BatchSourceOptions options = options_for(packed(dir, "a.h5", 241), 8, 4);
  options.validation_path = packed(dir, "b.h5", 12);
  auto source = BatchSource::open(options).value();
  BOOST_TEST(source.num_validation_samples() == 2);
  Batch batch = source.validation_batch(0, 2).value();
  std::vector<int32_t> counted;
  for (int32_t label : batch.labels)
    if (label != kIgnoredLabel) counted.push_back(label);
  std::vector<int32_t> all_but_the_first(11);
  for (int32_t i = 0; i < 11; ++i) all_but_the_first[static_cast<size_t>(i)] = i + 1;
  BOOST_TEST(counted == all_but_the_first, boost::test_tools::per_element());
}

namespace {

/// A source of `texts`, one file each; byte b at a token tells the file and the place.
std::string packed_text(const test::TemporaryDirectory& dir, const std::string& name,
                        const std::vector<std::string>& documents) {
  PackOptions options;
  options.output = dir / name;
  for (size_t i = 0; i < documents.size(); ++i) {
    options.inputs.push_back(dir / (name + std::to_string(i) + ".txt"));
    test::write_bytes(options.inputs.back(), documents[i]);
  }
  BOOST_REQUIRE(pack_text(options, *make_byte_tokenizer()).is_ok());
  return options.output;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_mix_takes_samples_in_proportion_to_the_weights_and_each_once_per_epoch) {
  test::TemporaryDirectory dir;
  BatchSourceOptions options = options_for("", 4, 6);
  options.train = {{packed_text(dir, "a.h5", {std::string(4 * 10 + 1, 'a')}), 0.5},
                   {packed_text(dir, "b.h5", {std::string(4 * 100 + 1, 'b')}), 1.5},
                   {packed(dir, "c.h5", 4 * 30 + 1), 1}};
  auto source = BatchSource::open(options).value();
  BOOST_TEST(source.num_training_samples() == 140);
  BOOST_TEST(source.training_name() == "a.h5 (16.7 %) + b.h5 (50.0 %) + c.h5 (33.3 %)");
  std::map<char, int64_t> times;
  std::map<int32_t, int> windows_of_c;
  constexpr int64_t kSamples = 900;
  for (int64_t n = 0; n < kSamples; ++n) {
    Batch batch = source.training_batch(n, 1).value();
    const int32_t token = batch.tokens[0];
    const char file = token == 'a' || token == 'b' ? (batch.tokens[1] == token ? static_cast<char>(token) : 'c') : 'c';
    ++times[file];
    if (file == 'c') ++windows_of_c[token];
    const double total = static_cast<double>(n + 1);
    BOOST_TEST(std::abs(static_cast<double>(times['a']) - total / 6) <= 1.0);
    BOOST_TEST(std::abs(static_cast<double>(times['b']) - total / 2) <= 2.0);
  }
  BOOST_TEST(times['c'] == 300);  // ten epochs of 30
  BOOST_TEST(windows_of_c.size() == 30u);
  for (auto [window, count] : windows_of_c) BOOST_TEST(count == 10);
}

BOOST_AUTO_TEST_CASE(a_mix_of_one_file_is_that_file) {
  test::TemporaryDirectory dir;
  BatchSourceOptions one = options_for(packed(dir, "a.h5", 241), 8, 4), weighted = one;
  weighted.train[0].weight = 0.3;
  Batch a = BatchSource::open(one).value().training_batch(7, 40).value();
  Batch b = BatchSource::open(weighted).value().training_batch(7, 40).value();
  BOOST_TEST(a.tokens == b.tokens, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_batch_of_a_mix_does_not_depend_on_how_it_is_cut) {
  test::TemporaryDirectory dir;
  BatchSourceOptions options = options_for("", 4, 6);
  options.train = {{packed(dir, "a.h5", 101), 2}, {packed_text(dir, "b.h5", {std::string(50, 'x')}), 1}};
  auto source = BatchSource::open(options).value();
  Batch whole = source.training_batch(123, 24).value();
  for (int64_t share : {1, 2, 3, 8}) {
    std::vector<int32_t> tokens;
    for (int64_t first = 123; first < 147; first += share) {
      Batch part = source.training_batch(first, share).value();
      tokens.insert(tokens.end(), part.tokens.begin(), part.tokens.end());
    }
    BOOST_TEST(tokens == whole.tokens, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(validation_parts_of_a_mix_take_turns_and_hold_every_window_once) {
  test::TemporaryDirectory dir;
  BatchSourceOptions options = options_for("", 4, 6);
  options.train = {{packed(dir, "a.h5", 201), 1}, {packed_text(dir, "b.h5", {std::string(101, 'x')}), 9}};
  options.validation_fraction = 0.2;
  auto source = BatchSource::open(options).value();
  BOOST_TEST(source.num_validation_samples() == 15);
  Batch batch = source.validation_batch(0, 15).value();
  std::set<int32_t> of_a;
  int of_b = 0;
  for (size_t i = 0; i < 15; ++i) {
    const bool is_b = batch.tokens[4 * i] == 'x' && batch.tokens[4 * i + 1] == 'x';
    if (is_b) ++of_b;
    if (!is_b) of_a.insert(batch.tokens[4 * i]);
    if (i % 3 == 2) BOOST_TEST(of_b == static_cast<int>(i / 3) + 1);
  }
  BOOST_TEST(of_b == 5);
  BOOST_TEST(of_a.size() == 10u);
}

BOOST_AUTO_TEST_CASE(files_of_different_tokenizers_are_not_mixed) {
  test::TemporaryDirectory dir;
  auto read = [](const char* name) {
    return test::read_bytes(ALTIPLANO_SOURCE_DIR "/tests/fixtures/gpt2/" + std::string(name));
  };
  test::write_bytes(dir / "g.txt", std::string(500, 'x'));
  auto gpt2 = make_tokenizer("gpt2", {{"vocab", read("encoder.json")}, {"merges", read("vocab.bpe")}}).value();
  BOOST_REQUIRE(pack_text({.inputs = {dir / "g.txt"}, .output = dir / "g.h5"}, *gpt2).is_ok());
  BatchSourceOptions options = options_for("", 4, 4);
  options.model_vocab_size = 50257;
  options.train = {{packed(dir, "a.h5", 101), 1}, {dir / "g.h5", 1}};
  check_refused(options, "g.h5 was packed with tokenizer gpt2 of 50257 ids, ");
  options.train = {{dir / "g.h5", 1}};
  options.validation_path = dir / "a.h5";
  check_refused(options, "data.validation.file: ");
}

BOOST_AUTO_TEST_CASE(each_token_knows_its_document_and_its_place_in_it) {
  test::TemporaryDirectory dir;
  BatchSourceOptions options = options_for(packed_text(dir, "a.h5", {"abc", "defgh", "i", "jklmnopqr"}), 4, 1);
  options.validation_path = options.train[0].path;
  options.separates_documents = true;
  auto source = BatchSource::open(options).value();
  // a b c | E d e f g h | E i | E j k l m n o p q r, cut every four tokens; E, the end of text, opens what follows.
  Batch batch = source.validation_batch(0, 6).value();
  const std::vector<int32_t> tokens = {'a', 'b', 'c', 256, 'd', 'e', 'f', 'g', 'h', 256, 'i', 256,
                                       'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 0,   0,   0,   0};
  const std::vector<int32_t> start = {0, 0, 0, 3, 0, 0, 0, 0, 0, 1, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0};
  const std::vector<int32_t> positions = {0, 1, 2, 0, 0, 1, 2, 3, 0, 0, 1, 0, 0, 1, 2, 3, 0, 1, 2, 3};
  BOOST_TEST(batch.tokens == tokens, boost::test_tools::per_element());
  for (size_t i = 0; i < start.size(); ++i) {
    BOOST_TEST(batch.document_start[i] == start[i], "token " << i);
    BOOST_TEST(batch.positions[i] == positions[i], "token " << i);
  }
  // No label is left out at a boundary: each is in the document of its token.
  BOOST_TEST(batch.labels[2] == 256);
  BOOST_TEST(batch.labels[3] == 'd');
  options.separates_documents = false;
  Batch whole = BatchSource::open(options).value().validation_batch(0, 1).value();
  BOOST_TEST(whole.document_start == (std::vector<int32_t>{0, 0, 0, 0}), boost::test_tools::per_element());
  BOOST_TEST(whole.positions == (std::vector<int32_t>{0, 1, 2, 3}), boost::test_tools::per_element());
}
