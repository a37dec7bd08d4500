#pragma once
// UTF-8 (Unicode 15, table 3-7): where text stops being valid, and bytes that come in pieces as text that can be shown.
#include <cstddef>
#include <cstdint>
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

/// Looks for the first byte that is no part of a character, in bytes that come in pieces.
class Utf8Check {
 public:
  void take(std::string_view bytes);
  /// Offset of that byte when no more comes; nothing when all was valid.
  std::optional<int64_t> first_invalid() const;

 private:
  std::string waiting_;    ///< the beginning of a character that the pieces so far end in
  int64_t checked_ = 0;    ///< bytes of whole characters
  bool is_wrong_ = false;  ///< at `checked_`
};

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
