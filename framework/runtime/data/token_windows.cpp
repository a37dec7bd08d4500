#include "framework/runtime/data/token_windows.hpp"

#include <algorithm>

namespace altiplano {

Result<TokenWindows> TokenWindows::open(const std::string& path, int64_t length, bool separated) {
  ALTIPLANO_ASSERT(length > 0, "windows of {} tokens", length);
  ALTIPLANO_ASSIGN(TokenFile file, TokenFile::open(path));
  TokenWindows windows(std::move(file), length);
  if (separated) ALTIPLANO_RETURN_IF_ERROR(windows.find_documents());
  return windows;
}

Status TokenWindows::find_documents() {
  ALTIPLANO_ASSIGN(starts_, file_.documents());
  // The end of text before a document is its first input.
  for (size_t i = 1; i < starts_.size(); ++i) --starts_[i];
  return Status::ok();
}

int64_t TokenWindows::num_from(int64_t begin) const {
  const int64_t labels = file_.info().num_tokens - 1 - begin;
  return labels <= 0 ? 0 : (labels + length_ - 1) / length_;
}

Status TokenWindows::read(const WindowRange& range, int64_t window, const SampleSpans& sample) const {
  const int64_t offset = range.begin + window * length_;
  const int64_t count = std::min(length_ + 1, file_.info().num_tokens - offset);
  std::vector<int32_t> ids(static_cast<size_t>(count));
  ALTIPLANO_RETURN_IF_ERROR(file_.read(offset, ids));
  read_nothing(sample);
  std::copy(ids.begin(), ids.end() - 1, sample.tokens.begin());
  std::copy(ids.begin() + 1, ids.end(), sample.labels.begin());
  place_documents(offset, sample);
  return Status::ok();
}

void TokenWindows::read_nothing(const SampleSpans& sample) {
  std::ranges::fill(sample.tokens, 0);
  std::ranges::fill(sample.labels, kIgnoredLabel);
  std::ranges::fill(sample.document_start, 0);
  for (size_t i = 0; i < sample.positions.size(); ++i) sample.positions[i] = static_cast<int32_t>(i);
}

void TokenWindows::place_documents(int64_t offset, const SampleSpans& sample) const {
  auto next = std::ranges::upper_bound(starts_, offset);
  int64_t start = 0;
  for (int64_t i = 0; i < length_; ++i) {
    while (next != starts_.end() && *next <= offset + i) start = *next++ - offset;
    sample.document_start[static_cast<size_t>(i)] = static_cast<int32_t>(start);
    sample.positions[static_cast<size_t>(i)] = static_cast<int32_t>(i - start);
  }
}

}  // namespace altiplano
