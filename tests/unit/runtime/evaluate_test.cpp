#include "framework/runtime/evaluate.hpp"

#include <cmath>

#include "tests/support/temporary_directory.hpp"

using namespace altiplano;

namespace {

std::string gpt2_file(const std::string& name) {
  return test::read_bytes(ALTIPLANO_SOURCE_DIR "/tests/fixtures/gpt2/" + name);
}

std::unique_ptr<Tokenizer> gpt2() {
  return make_tokenizer("gpt2", {{"vocab", gpt2_file("encoder.json")}, {"merges", gpt2_file("vocab.bpe")}}).value();
}

}  // namespace

BOOST_AUTO_TEST_CASE(bytes_of_text_are_those_of_all_labels_and_an_end_of_text_has_none) {
  test::TemporaryDirectory dir;
  const std::string first = "In the beginning God created the heaven and the earth.", second = "caf\u00e9 \xff\xfe!";
  test::write_bytes(dir / "a.txt", first);
  test::write_bytes(dir / "b.txt", second);
  BOOST_REQUIRE(pack_text({.inputs = {dir / "a.txt", dir / "b.txt"}, .output = dir / "ab.h5"}, *gpt2()).is_ok());
  BatchSourceOptions options;
  options.validation_path = dir / "ab.h5";
  options.seq_length = 4;
  options.model_vocab_size = 50257;
  auto data = BatchSource::open(options);
  BOOST_REQUIRE_MESSAGE(data.is_ok(), data.status().to_string());
  // Everything but the first token, "In", is a label once.
  const auto all = static_cast<int64_t>(first.size() + second.size() - 2);
  for (int64_t batch : {1, 2, 3, 100}) BOOST_TEST(count_text_bytes(*data, batch, 0).value() == all);
  // " the beginning God created" are the labels of the first sample.
  BOOST_TEST(count_text_bytes(*data, 1, 1).value() == 26);
}

BOOST_AUTO_TEST_CASE(perplexity_and_bits_per_byte_follow_from_the_loss) {
  const Evaluation result{.loss_sum = 100 * std::log(8.0), .tokens = 100, .text_bytes = 150};
  BOOST_TEST(result.loss() == std::log(8.0));
  BOOST_CHECK_CLOSE(result.perplexity(), 8.0, 1e-10);
  BOOST_CHECK_CLOSE(result.bits_per_byte(), 2.0, 1e-10);
  BOOST_TEST(Evaluation{}.bits_per_byte() == 0);
}
