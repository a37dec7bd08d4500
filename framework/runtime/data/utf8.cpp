#include "framework/runtime/data/utf8.hpp"

namespace altiplano {
namespace {

struct Lead {
  size_t length = 0;                            ///< of the whole character; 0: begins none
  unsigned char lowest = 0x80, highest = 0xBF;  ///< of the second byte
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {};
  if (byte < 0xE0) return {2};
  if (byte < 0xF0) {
    const unsigned char lowest = byte == 0xE0 ? 0xA0 : 0x80, highest = byte == 0xED ? 0x9F : 0xBF;
    return {3, lowest, highest};
  }
  if (byte < 0xF5) {
    const unsigned char lowest = byte == 0xF0 ? 0x90 : 0x80, highest = byte == 0xF4 ? 0x8F : 0xBF;
    return {4, lowest, highest};
  }
  return {};
}

}  // namespace

Utf8Step utf8_step(std::string_view text, size_t at) {
  using Kind = Utf8Step::Kind;
  const Lead lead = lead_of(static_cast<unsigned char>(text[at]));
  if (lead.length == 0) return {Kind::kInvalid, 1};
  for (size_t i = 1; i < lead.length; ++i) {
    if (at + i == text.size()) return {Kind::kUnfinished, i};
    const auto byte = static_cast<unsigned char>(text[at + i]);
    const bool fits = i == 1 ? byte >= lead.lowest && byte <= lead.highest : byte >= 0x80 && byte <= 0xBF;
    if (!fits) return {Kind::kInvalid, i};
  }
  return {Kind::kCharacter, lead.length};
}

std::optional<size_t> first_invalid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    if (step.kind != Utf8Step::Kind::kCharacter) return at;
    at += step.bytes;
  }
  return std::nullopt;
}

std::string Utf8Stream::take(std::string_view bytes) {
  waiting_ += bytes;
  std::string text;
  size_t at = 0;
  while (at < waiting_.size()) {
    const Utf8Step step = utf8_step(waiting_, at);
    if (step.kind == Utf8Step::Kind::kUnfinished) break;
    text += step.kind == Utf8Step::Kind::kCharacter ? waiting_.substr(at, step.bytes) : "\uFFFD";
    at += step.bytes;
  }
  waiting_.erase(0, at);
  return text;
}

}  // namespace altiplano
