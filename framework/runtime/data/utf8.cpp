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

void Utf8Check::take(std::string_view bytes) {
  if (is_wrong_) return;
  std::string joined;
  if (!waiting_.empty()) {
    joined = waiting_ + std::string(bytes);
    bytes = joined;
  }
  size_t at = 0;
  Utf8Step step;
  while (at < bytes.size() && (step = utf8_step(bytes, at)).kind == Utf8Step::Kind::kCharacter) at += step.bytes;
  checked_ += static_cast<int64_t>(at);
  is_wrong_ = at < bytes.size() && step.kind == Utf8Step::Kind::kInvalid;
  waiting_ = std::string(bytes.substr(at));
  if (is_wrong_) waiting_.clear();
}

std::optional<int64_t> Utf8Check::first_invalid() const {
  return is_wrong_ || !waiting_.empty() ? std::optional(checked_) : std::nullopt;
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
