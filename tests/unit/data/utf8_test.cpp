#include "framework/runtime/data/utf8.hpp"

#include <random>

using namespace altiplano;

namespace {

std::optional<int64_t> first_invalid(const std::string& bytes, size_t piece = 3) {
  Utf8Check check;
  for (size_t at = 0; at < bytes.size(); at += piece) check.take(std::string_view(bytes).substr(at, piece));
  return check.first_invalid();
}

std::string shown(const std::string& bytes, size_t piece) {
  Utf8Stream stream;
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += piece) text += stream.take(bytes.substr(at, piece));
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(valid_text_passes_through_in_pieces_of_any_size) {
  const std::string text = "In the beginning \u00e9\u4f60\U0001F600 \u07ff\u0800\uffff\U0010ffff!";
  for (size_t piece = 1; piece < 9; ++piece) BOOST_TEST(shown(text, piece) == text);
  BOOST_TEST(!first_invalid(text).has_value());
}

BOOST_AUTO_TEST_CASE(half_a_character_waits_and_is_never_shown) {
  Utf8Stream stream;
  BOOST_TEST(stream.take("a\xf0\x9f") == "a");
  BOOST_TEST(stream.num_waiting() == 2u);
  BOOST_TEST(stream.take("\x98") == "");
  BOOST_TEST(stream.take("\x80z") == "\U0001F600z");
  BOOST_TEST(stream.num_waiting() == 0u);
}

BOOST_AUTO_TEST_CASE(invalid_parts_become_one_replacement_each) {
  const std::pair<std::string, std::string> cases[] = {
      {"\xff", "\uFFFD"},
      {"\x80\x80", "\uFFFD\uFFFD"},
      {"\xc0\xaf", "\uFFFD\uFFFD"},                      // overlong
      {"\xe0\x80\xaf", "\uFFFD\uFFFD\uFFFD"},            // overlong
      {"\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD"},            // a surrogate
      {"\xf4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},  // above U+10FFFF
      {"\xe2\x82z", "\uFFFDz"},                          // cut off
      {"\xf0\x9f\x98"
       "a\xc3\xa9",
       "\uFFFDa\u00e9"},
  };
  for (const auto& [bytes, text] : cases)
    for (size_t piece : {1, 2, 7}) BOOST_TEST(shown(bytes, piece) == text);
}

BOOST_AUTO_TEST_CASE(whatever_comes_what_is_shown_is_valid) {
  std::mt19937 random(4);
  for (int i = 0; i < 500; ++i) {
    std::string bytes(random() % 60, 0);
    for (char& c : bytes) c = static_cast<char>(random() % 3 == 0 ? random() % 256 : 0x80 + random() % 0x7f);
    const std::string text = shown(bytes, 1 + random() % 5);
    BOOST_TEST(!first_invalid(text).has_value());
  }
}

BOOST_AUTO_TEST_CASE(the_first_invalid_byte_is_found_in_pieces_of_any_size) {
  for (size_t piece = 1; piece < 6; ++piece) {
    BOOST_TEST(first_invalid("abc\xff", piece).value() == 3);
    BOOST_TEST(first_invalid("\u00e9\xc3", piece).value() == 2);
    BOOST_TEST(first_invalid("\xed\xa0\x80", piece).value() == 0);
    BOOST_TEST(first_invalid("ab\u4f60\xe4\xbdz\xff", piece).value() == 5);
    BOOST_TEST(!first_invalid("\u00e9\u4f60\U0001F600 a", piece).has_value());
  }
  BOOST_TEST(!first_invalid("").has_value());
}
