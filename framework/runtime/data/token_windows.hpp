#pragma once
// Windows of a token file: window w is the tokens [begin + w * length, + length) with the labels one later, and where
// each token's document begins.
//
// Documents: the end of text between two documents is the last label of the first and the first input of the second, as
// GPT-2 has it. So every label is predicted from its own document, and none is left out at a boundary.
#include <span>
#include <vector>

#include "framework/runtime/data/token_file.hpp"

namespace altiplano {

/// Labels below 0 count nowhere.
inline constexpr int32_t kIgnoredLabel = -1;

/// `count` windows that follow each other from token `begin` of a file.
struct WindowRange {
  int64_t begin = 0, count = 0;
};

/// One sample's parts, each of the window's length.
struct SampleSpans {
  std::span<int32_t> tokens, labels;
  std::span<int32_t> document_start;  ///< position in the sample of the first token of the token's document
  std::span<int32_t> positions;       ///< position of the token in its document, as far as the sample shows it
};

class TokenWindows {
 public:
  /// Reads where documents are only if they are `separated`; refuses starts that are none.
  static Result<TokenWindows> open(const std::string& path, int64_t length, bool separated);

  const TokenFile& file() const { return file_; }
  int64_t length() const { return length_; }
  int64_t num_whole() const { return (file_.info().num_tokens - 1) / length_; }  ///< from token 0
  /// From token `begin`, the last one perhaps short.
  int64_t num_from(int64_t begin) const;

  /// A short window (the file's last) is filled up with token 0 and ignored labels.
  Status read(const WindowRange& range, int64_t window, const SampleSpans& sample) const;
  /// A sample of nothing: token 0, ignored labels.
  static void read_nothing(const SampleSpans& sample);

 private:
  TokenWindows(TokenFile file, int64_t length) : file_(std::move(file)), length_(length) {}
  Status find_documents();
  void place_documents(int64_t offset, const SampleSpans& sample) const;

  TokenFile file_;
  int64_t length_;
  std::vector<int64_t>
      starts_;  ///< tokens that open a document as inputs, ascending; empty: documents are not told apart
};

}  // namespace altiplano
