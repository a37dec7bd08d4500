#pragma once
// UTF-8 (Unicode 15, table 3-7): where text stops being valid, and bytes that come in pieces as text that can be shown.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace altiplano {

/// What stands at `at` (< text.size()): a character, the beginning of one that `text` ends in, or bytes that begin
/// none.
struct Utf8Step {
  enum class Kind : unsigned char { kCharacter, kUnfinished, kInvalid } kind = Kind::kInvalid;
  size_t bytes = 1;  ///< of an invalid part: the longest that could have begun a character, at least one
};
Utf8Step utf8_step(std::string_view text, size_t at);

/// Offset of the first byte that is no part of a character; nothing when all of `text` is valid.
std::optional<size_t> first_invalid_utf8(std::string_view text);

/// Bytes in, valid UTF-8 out: each invalid part becomes U+FFFD, and the beginning of a character waits for its rest.
class Utf8Stream {
 public:
  std::string take(std::string_view bytes);
  /// Bytes of a character that is not whole yet.
  size_t num_waiting() const { return waiting_.size(); }

 private:
  std::string waiting_;
};

}  // namespace altiplano
