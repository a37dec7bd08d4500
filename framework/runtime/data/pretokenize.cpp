#include "framework/runtime/data/pretokenize.hpp"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <cstdint>

namespace altiplano {
namespace {

enum class Class { kLetter, kNumber, kSpace, kOther };

Class class_of(UChar32 c) {
  if (c < 0) return Class::kOther;  // no UTF-8
  if (u_isUWhiteSpace(c)) return Class::kSpace;
  uint32_t mask = U_MASK(u_charType(c));
  if (mask & U_GC_L_MASK) return Class::kLetter;
  return mask & U_GC_N_MASK ? Class::kNumber : Class::kOther;
}

struct Character {
  Class kind;
  size_t end;  ///< byte after it
};

/// A wrong byte is one character of its own.
Character character_at(std::string_view text, size_t at) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  auto size = static_cast<int64_t>(text.size());
  auto next = static_cast<int64_t>(at);
  UChar32 c = 0;
  U8_NEXT(bytes, next, size, c);
  return {class_of(c), c < 0 ? at + 1 : static_cast<size_t>(next)};
}

size_t contraction_end(std::string_view text, size_t start) {
  for (std::string_view suffix : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.substr(start, suffix.size()) == suffix) return start + suffix.size();
  }
  return start;
}

size_t run_end(std::string_view text, size_t start, Class kind) {
  size_t at = start;
  while (at < text.size()) {
    Character next = character_at(text, at);
    if (next.kind != kind) break;
    at = next.end;
  }
  return at;
}

/// `\s+(?!\S)|\s+`: the run without its last character when text follows and something is left, else the whole run.
size_t space_end(std::string_view text, size_t start) {
  size_t last = start, end = start;
  while (end < text.size()) {
    Character next = character_at(text, end);
    if (next.kind != Class::kSpace) break;
    last = end;
    end = next.end;
  }
  return end == text.size() || last == start ? end : last;
}

}  // namespace

size_t piece_end(std::string_view text, size_t start) {
  if (size_t end = contraction_end(text, start); end != start) return end;
  size_t word = text[start] == ' ' ? start + 1 : start;
  if (word < text.size()) {
    Class kind = character_at(text, word).kind;
    if (kind != Class::kSpace) return run_end(text, word, kind);
  }
  return space_end(text, start);
}

size_t last_piece_boundary(std::string_view text) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  for (size_t at = text.size(); at-- > 1;) {
    char c = text[at];
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r') continue;
    size_t window = at < U8_MAX_LENGTH ? at : U8_MAX_LENGTH;  // U8_PREV counts in 32 bits
    auto before = static_cast<int32_t>(window);
    UChar32 previous = 0;
    U8_PREV(bytes + (at - window), 0, before, previous);
    if (class_of(previous) != Class::kSpace) return at;
  }
  return 0;
}

}  // namespace altiplano
