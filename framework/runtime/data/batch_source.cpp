#include "framework/runtime/data/batch_source.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "framework/runtime/data/sample_order.hpp"

namespace altiplano {
namespace {

/// A window of s tokens needs one more for its last label.
int64_t windows_in(int64_t num_tokens, int64_t seq_length) {
  return std::max<int64_t>(0, (num_tokens - 1) / seq_length);
}

Status check_exists(const char* key, const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) return Status::ok();
  return invalid_argument("{}: there is no file {}; `altiplano data pack -o {} TEXT` makes one", key, path, path);
}

Status check_ids(const char* key, const TokenFileInfo& info, int64_t vocab_size) {
  if (info.max_id < vocab_size) return Status::ok();
  return invalid_argument(
      "{}: {} has token id {} at token {}, model.vocab_size is {}; every id must be below it: the {} tokenizer needs "
      "vocab_size {} or more",
      key, info.path, info.max_id, info.max_id_offset, vocab_size, info.tokenizer, info.vocab_size);
}

}  // namespace

Result<BatchSource> BatchSource::open(const BatchSourceOptions& options) {
  ALTIPLANO_ASSERT(options.seq_length > 0 && options.global_batch_size > 0, "sizes of a batch must be positive");
  ALTIPLANO_RETURN_IF_ERROR(check_exists("data.train", options.train_path));
  ALTIPLANO_ASSIGN(TokenFile train, TokenFile::open(options.train_path));
  BatchSource source(options, std::move(train));
  ALTIPLANO_RETURN_IF_ERROR(check_ids("data.train", source.train_.info(), options.model_vocab_size));
  if (!options.validation_path.empty()) {
    ALTIPLANO_RETURN_IF_ERROR(check_exists("data.validation", options.validation_path));
    ALTIPLANO_ASSIGN(source.own_validation_, TokenFile::open(options.validation_path));
    ALTIPLANO_RETURN_IF_ERROR(check_ids("data.validation", source.own_validation_->info(), options.model_vocab_size));
  }
  ALTIPLANO_RETURN_IF_ERROR(source.split());
  return source;
}

Status BatchSource::split() {
  int64_t seq = options_.seq_length, tokens = train_.info().num_tokens, all = windows_in(tokens, seq);
  bool by_fraction = !own_validation_ && options_.validation_fraction > 0;
  auto wanted =
      by_fraction ? static_cast<int64_t>(std::floor(static_cast<double>(all) * options_.validation_fraction)) : 0;
  training_ = {0, all - wanted};
  // One token later than the last training window: that token is a label of training.
  int64_t begin = training_.count * seq + 1;
  if (by_fraction) validation_ = {begin, windows_in(tokens - begin, seq)};
  if (own_validation_) validation_ = {0, windows_in(own_validation_->info().num_tokens, seq)};
  if (training_.count < options_.global_batch_size) {
    return invalid_argument(
        "data.train has {} samples of {} tokens, global_batch_size {}: one step needs a whole batch; use a smaller "
        "train.global_batch_size "
        "or train.seq_length, or more text ({} has {} tokens)",
        training_.count, seq, options_.global_batch_size, options_.train_path, tokens);
  }
  if (own_validation_ && validation_.count == 0) {
    return invalid_argument("data.validation: {} has {} tokens, one sample of {} needs {}", options_.validation_path,
                            own_validation_->info().num_tokens, seq, seq + 1);
  }
  if (by_fraction && validation_.count == 0) {
    return invalid_argument(
        "data.validation.fraction: {} of {} samples of {} tokens leaves no whole sample for validation; smallest: "
        "{:.3g}",
        options_.validation_fraction, all, seq, 2.0 / static_cast<double>(all));
  }
  return Status::ok();
}

Status BatchSource::read_window(const TokenFile& file, const WindowRange& range, int64_t window,
                                std::span<int32_t> tokens, std::span<int32_t> labels) const {
  std::vector<int32_t> ids(tokens.size() + 1);
  ALTIPLANO_RETURN_IF_ERROR(file.read(range.begin + window * options_.seq_length, ids));
  std::copy(ids.begin(), ids.end() - 1, tokens.begin());
  std::copy(ids.begin() + 1, ids.end(), labels.begin());
  return Status::ok();
}

Status BatchSource::training_samples(int64_t first, int64_t count, std::span<int32_t> tokens,
                                     std::span<int32_t> labels) const {
  auto seq = static_cast<size_t>(options_.seq_length);
  for (int64_t i = 0; i < count; ++i) {
    size_t at = static_cast<size_t>(i) * seq;
    int64_t window = sample_at(options_.seed, first + i, training_.count);
    ALTIPLANO_RETURN_IF_ERROR(read_window(train_, training_, window, tokens.subspan(at, seq), labels.subspan(at, seq)));
  }
  return Status::ok();
}

Status BatchSource::validation_samples(int64_t first, int64_t count, std::span<int32_t> tokens,
                                       std::span<int32_t> labels) const {
  const TokenFile& file = own_validation_ ? *own_validation_ : train_;
  auto seq = static_cast<size_t>(options_.seq_length);
  for (int64_t i = 0; i < count; ++i) {
    auto sample_tokens = tokens.subspan(static_cast<size_t>(i) * seq, seq);
    auto sample_labels = labels.subspan(static_cast<size_t>(i) * seq, seq);
    if (first + i < validation_.count) {
      ALTIPLANO_RETURN_IF_ERROR(read_window(file, validation_, first + i, sample_tokens, sample_labels));
    } else {
      std::ranges::fill(sample_tokens, 0);
      std::ranges::fill(sample_labels, kIgnoredLabel);
    }
  }
  return Status::ok();
}

static Batch empty_batch(int64_t count, int64_t seq_length) {
  std::vector<int32_t> zeros(static_cast<size_t>(count * seq_length));
  return {count, seq_length, zeros, zeros};
}

Result<Batch> BatchSource::training_batch(int64_t first, int64_t count) const {
  Batch batch = empty_batch(count, options_.seq_length);
  ALTIPLANO_RETURN_IF_ERROR(training_samples(first, count, batch.tokens, batch.labels));
  return batch;
}

Result<Batch> BatchSource::validation_batch(int64_t first, int64_t count) const {
  Batch batch = empty_batch(count, options_.seq_length);
  ALTIPLANO_RETURN_IF_ERROR(validation_samples(first, count, batch.tokens, batch.labels));
  return batch;
}

}  // namespace altiplano
