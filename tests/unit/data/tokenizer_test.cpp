#include "framework/runtime/data/tokenizer.hpp"

#include <random>

#include "framework/base/text.hpp"
#include "framework/runtime/data/pretokenize.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace altiplano;

namespace {

std::string fixture(const std::string& name) {
  return test::read_bytes(ALTIPLANO_SOURCE_DIR "/tests/fixtures/gpt2/" + name);
}

const Tokenizer& gpt2() {
  static const std::unique_ptr<Tokenizer> tokenizer =
      make_tokenizer("gpt2", {{"vocab", fixture("encoder.json")}, {"merges", fixture("vocab.bpe")}}).value();
  return *tokenizer;
}

std::vector<std::string> pieces(const std::string& text) {
  std::vector<std::string> out;
  for (size_t start = 0, end = 0; start < text.size(); start = end) {
    end = piece_end(text, start);
    out.push_back(text.substr(start, end - start));
  }
  return out;
}

std::string random_bytes(std::mt19937& random, size_t size, const std::string& alphabet = "") {
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(alphabet.empty() ? random() % 256 : alphabet[random() % alphabet.size()]);
  return text;
}

struct Vector {
  const char* text;
  std::vector<int32_t> ids;
};

const std::vector<Vector> kVectors = {
    {"Hello,", {15496, 11}},
    {"Hello, world!", {15496, 11, 995, 0}},
    {" In the beginning God created the heaven and the earth.",
     {554, 262, 3726, 1793, 2727, 262, 9538, 290, 262, 4534, 13}},
    {"naïve café — 你好\n", {2616, 38776, 40304, 851, 220, 19526, 254, 25001, 121, 198}},
    {"a  b\t\tc\r\n\r\nd", {64, 220, 275, 197, 197, 66, 201, 198, 201, 198, 67}},
    {"def f(x):\n    return x**2\n", {4299, 277, 7, 87, 2599, 198, 220, 220, 220, 1441, 2124, 1174, 17, 198}},
    {"12345678", {10163, 2231, 30924}},
    {"it's I'LL we've", {270, 338, 314, 6, 3069, 356, 1053}},
    {"<|endoftext|>", {27, 91, 437, 1659, 5239, 91, 29}},
    // From the package `tokenizers` with the same two files.
    {"Hello,  world\n\n  x", {15496, 11, 220, 995, 628, 220, 2124}},
    {"a\u00a0b", {64, 1849, 65}},
    {"\u3000\u3000x y", {5099, 222, 5099, 222, 87, 331}},
    {"don't DON'T it's", {9099, 470, 23917, 6, 51, 340, 338}},
    {"\u0661\u0662\u0663abc", {149, 94, 149, 95, 149, 96, 39305}},
    {"e\u0301clair", {68, 136, 223, 27659}},
    {"\U0001F600\U0001F600 ok", {47249, 222, 47249, 222, 12876}},
    {"  \n  a", {220, 220, 198, 220, 257}},
    {"\t\tif x:\r\n", {197, 197, 361, 2124, 25, 201, 198}},
    {"x'sy 'llama 'Tis 've", {87, 338, 88, 705, 297, 1689, 705, 51, 271, 705, 303}},
    {"\u2028a\u2029b", {447, 101, 64, 447, 102, 65}},
    {"1\u00bd2", {16, 23141, 17}},
    {"a   ", {64, 220, 220, 220}},
    {"\u200bzero", {9525, 22570}},
    {"\u0e01\u0e33", {19567, 223, 19567, 111}},
    {"_under_score__ 12ab34", {62, 4625, 62, 26675, 834, 1105, 397, 2682}},
    {"\u1e9e\u00df", {157, 118, 252, 39683}},
};

}  // namespace

BOOST_AUTO_TEST_CASE(gpt2_gives_the_published_ids_and_decodes_them_back) {
  BOOST_TEST(gpt2().vocab_size() == 50257);
  BOOST_TEST(gpt2().end_of_text() == 50256);
  for (const Vector& vector : kVectors) {
    BOOST_TEST_CONTEXT(vector.text) {
      BOOST_TEST(gpt2().encode(vector.text) == vector.ids, boost::test_tools::per_element());
      BOOST_TEST(gpt2().decode(vector.ids) == vector.text);
    }
  }
}

BOOST_AUTO_TEST_CASE(text_is_split_as_gpt2s_pattern_splits_it) {
  using Pieces = std::vector<std::string>;
  const std::pair<std::string, Pieces> cases[] = {
      {"we'll 've'd", {"we", "'ll", " '", "ve", "'d"}},
      {"a\n\n\nb", {"a", "\n\n", "\n", "b"}},
      {"a \u00a0 b", {"a", " \u00a0", " b"}},
      {"x  ", {"x", "  "}},
      {"  12½Ⅷa_b!?", {" ", " 12½Ⅷ", "a", "_", "b", "!?"}},
      {"Ωμέγα слово", {"Ωμέγα", " слово"}},
      {" \xff\xfe z", {" \xff\xfe", " z"}},
      {"e\u0301x", {"e", "\u0301", "x"}},
  };
  for (const auto& [text, expected] : cases) BOOST_TEST(pieces(text) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(any_bytes_come_back_from_both_tokenizers) {
  std::mt19937 random(1);
  auto byte = make_byte_tokenizer();
  for (int i = 0; i < 300; ++i) {
    std::string text = random_bytes(random, random() % 200);
    BOOST_TEST((gpt2().decode(gpt2().encode(text)) == text));
    BOOST_TEST((byte->decode(byte->encode(text)) == text));
  }
}

BOOST_AUTO_TEST_CASE(every_pair_of_bytes_comes_back_from_both_tokenizers) {
  auto byte = make_byte_tokenizer();
  int wrong = 0;
  for (int a = 0; a < 256; ++a)
    for (int b = 0; b < 256; ++b) {
      const std::string text = {static_cast<char>(a), static_cast<char>(b)};
      wrong += gpt2().decode(gpt2().encode(text)) != text;
      wrong += byte->decode(byte->encode(text)) != text;
    }
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(a_text_may_be_encoded_up_to_its_safe_prefix) {
  std::mt19937 random(2);
  for (int i = 0; i < 2000; ++i) {
    std::string text = random_bytes(random, random() % 30, "ab1 \n\t'sl!\xc3\xa9\xc2\xa0");
    std::string more = random_bytes(random, random() % 10, "ab1 \n\t'sl!\xc3\xa9\xc2\xa0");
    size_t cut = gpt2().safe_prefix(text);
    std::vector<int32_t> parts;
    gpt2().encode(text.substr(0, cut), parts);
    gpt2().encode(text.substr(cut) + more, parts);
    BOOST_TEST((parts == gpt2().encode(text + more)));
  }
}

BOOST_AUTO_TEST_CASE(one_endless_word_is_encoded_in_reasonable_time) {
  std::string word;
  std::mt19937 random(3);
  word = random_bytes(random, 1 << 20, "abcdefghijklmnopqrstuvwxyz");
  auto ids = gpt2().encode(word);
  BOOST_TEST((gpt2().decode(ids) == word));
  BOOST_TEST(ids.size() < word.size());
}

BOOST_AUTO_TEST_CASE(the_byte_tokenizer_has_257_ids) {
  auto byte = make_byte_tokenizer();
  BOOST_TEST(byte->vocab_size() == 257);
  BOOST_TEST(byte->end_of_text() == 256);
  BOOST_TEST(byte->encode("a\xff") == (std::vector<int32_t>{97, 255}), boost::test_tools::per_element());
  BOOST_TEST(byte->decode(std::vector<int32_t>{104, 105, 256, 999}) == "hi<|endoftext|>\uFFFD");
}

BOOST_AUTO_TEST_CASE(wrong_vocabularies_and_merges_are_refused_by_line) {
  auto message = [](const std::string& vocab, const std::string& merges) {
    return make_gpt2_tokenizer({vocab, "encoder.json"}, {merges, "vocab.bpe"}).status().message();
  };
  auto has = [](const std::string& text, const std::string& part) {
    BOOST_TEST(text.find(part) != std::string::npos, text);
  };
  std::string vocab = fixture("encoder.json");
  has(message("[]", ""), "encoder.json:1:1: not a JSON object");
  has(message("{\"a\": 7}", ""), "encoder.json:1:2: entry 'a' has id 7; ids are 0 to 0");
  has(message("{\"a\": 0,\n  \"\\\"b}\": -1}", ""), "encoder.json:2:3: entry '\"b}' has id -1; ids are 0 to 1");
  has(message("{\"a\": 0,\n\"b\": 1, \"a\": 1}", ""), "encoder.json:2:9: token 'a' stands there twice");
  has(message("{\"a\": 0,\n", ""), "encoder.json:2:1: not valid JSON");
  has(message("{\"a\": 0}", ""), "encoder.json: byte 0 has no token");
  has(message(vocab, "#version: 0.2\nx\n"), "vocab.bpe:2: 'x' is not two tokens");
  has(message(vocab, "qqqq zzzz\n"), "vocab.bpe:1: 'qqqq zzzz' names a token the vocabulary does not have");
  has(make_tokenizer("word", {}).status().message(), "there are: byte, gpt2");
  has(make_tokenizer("gpt2", {}).status().message(), "needs its vocab file");
}

BOOST_AUTO_TEST_CASE(the_king_james_bible_comes_back_from_gpt2) {
  auto bible = test::run_command("bible -f 'gen1:1-rev22:21'");
  if (bible.exit_code != 0) {
    BOOST_TEST_MESSAGE("skipped: the program `bible` (package bible-kjv) is not installed");
    return;
  }
  auto ids = gpt2().encode(bible.output);
  BOOST_TEST(bible.output.size() == 4404412u);
  // Counted and summed up (FNV-1a of the ids as u16, little-endian) by an independent implementation: the package
  // `tokenizers` with the same two files.
  BOOST_TEST(ids.size() == 1169600u);
  std::string bytes;
  for (int32_t id : ids) bytes += {static_cast<char>(id & 0xff), static_cast<char>(id >> 8)};
  BOOST_TEST(fingerprint(bytes) == 0x02304c46cc1c8ab7u);
  BOOST_TEST((gpt2().decode(ids) == bible.output));
}
