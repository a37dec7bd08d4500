#include "framework/base/text.hpp"

#include <boost/test/unit_test.hpp>

using namespace altiplano;

BOOST_AUTO_TEST_CASE(splitting_keeps_empty_parts_and_joining_undoes_it) {
  for (const char* text : {"", "a", "a,b", ",", "a,,b,"}) BOOST_TEST(join(split(text, ','), ",") == text);
  BOOST_TEST(split("a,,b", ',').size() == 3u);
  BOOST_TEST(split("", ',').size() == 1u);
}

BOOST_AUTO_TEST_CASE(trimming_removes_blanks_and_carriage_returns_at_both_ends_only) {
  BOOST_TEST(trim(" \t a b\r\n") == "a b");
  BOOST_TEST(trim(" \r\n").empty());
}

BOOST_AUTO_TEST_CASE(numbers_parse_only_when_the_whole_text_is_one) {
  BOOST_TEST(*parse_int("-42") == -42);
  BOOST_TEST(*parse_int("9223372036854775807") == INT64_MAX);
  for (const char* text : {"", "4x", " 4", "4 ", "1.5", "9223372036854775808", "+4"})
    BOOST_TEST(!parse_int(text).has_value(), text);
  BOOST_TEST(*parse_double("6e-4") == 6e-4);
  BOOST_TEST(!parse_double("1.5s").has_value());
  BOOST_TEST(!parse_double("").has_value());
}

BOOST_AUTO_TEST_CASE(thousands_are_separated_from_the_right) {
  BOOST_TEST(with_thousands(0) == "0");
  BOOST_TEST(with_thousands(999) == "999");
  BOOST_TEST(with_thousands(1000) == "1,000");
  BOOST_TEST(with_thousands(-4404412) == "-4,404,412");
}

BOOST_AUTO_TEST_CASE(a_close_word_is_suggested_and_a_far_one_is_not) {
  std::vector<std::string> keys = {"num_hidden_layers", "hidden_size", "vocab_size"};
  BOOST_TEST(*did_you_mean("num_hiden_layers", keys) == "num_hidden_layers");
  BOOST_TEST(*did_you_mean("vocab-size", keys) == "vocab_size");
  BOOST_TEST(!did_you_mean("q", keys).has_value());
  BOOST_TEST(!did_you_mean("anything", {}).has_value());
}

BOOST_AUTO_TEST_CASE(a_glob_star_stands_for_any_run_of_characters) {
  BOOST_TEST(glob_match("block.*.attention.qkv.weight", "block.11.attention.qkv.weight"));
  BOOST_TEST(glob_match("*", ""));
  BOOST_TEST(glob_match("a*b*c", "abbbc"));
  BOOST_TEST(glob_match("*.bias", "a.b.bias"));
  BOOST_TEST(!glob_match("block.*.weight", "block.1.bias"));
  BOOST_TEST(!glob_match("a", "ab"));
  BOOST_TEST(!glob_match("", "a"));
}

BOOST_AUTO_TEST_CASE(fingerprints_are_fnv1a_and_differ_by_one_letter) {
  BOOST_TEST(fingerprint("") == 0xcbf29ce484222325ull);
  BOOST_TEST(fingerprint("a") == 0xaf63dc4c8601ec8cull);  // published FNV-1a test vector
  BOOST_TEST(fingerprint("foobar") == 0x85944171f73967e8ull);
}
