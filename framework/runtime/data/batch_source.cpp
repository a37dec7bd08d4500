#include "framework/runtime/data/batch_source.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/runtime/data/sample_order.hpp"
#include "framework/storage/input_file.hpp"

namespace altiplano {
namespace {

Status check_readable(const std::string& key, const std::string& path) {
  const std::string why = why_not_readable(path);
  if (why.empty()) return Status::ok();
  if (why == std::strerror(ENOENT))
    return invalid_argument("{}: there is no file {}; `altiplano data pack -o {} TEXT` makes one", key, path, path);
  return invalid_argument("{}: {} cannot be read: {}; give the file that `altiplano data pack` wrote", key, path, why);
}

Status check_ids(const std::string& key, const TokenFileInfo& info, int64_t vocab_size) {
  if (info.max_id < vocab_size) return Status::ok();
  return invalid_argument(
      "{}: {} has token id {} at token {}, model.vocab_size is {}; every id must be below it: the {} tokenizer needs "
      "vocab_size {} or more",
      key, info.path, info.max_id, info.max_id_offset, vocab_size, info.tokenizer, info.vocab_size);
}

/// That leaves `needed` of `all` samples, rounded down to the three digits that are printed.
double largest_fraction(int64_t all, int64_t needed) {
  const double exact = static_cast<double>(all - needed) / static_cast<double>(all);
  return exact <= 0 ? 0 : std::floor(exact * 1000) / 1000;
}

/// Files of one mix follow each other through different permutations.
uint64_t seed_of(uint64_t seed, size_t file) {
  return seed + 0x9E3779B97F4A7C15ull * file;
}

void resize(Batch& batch, int64_t count, int64_t seq_length) {
  batch.count = count;
  batch.seq_length = seq_length;
  for (auto* part : {&batch.tokens, &batch.labels, &batch.document_start, &batch.positions})
    part->resize(static_cast<size_t>(count * seq_length));
}

SampleSpans sample_of(Batch& batch, int64_t index) {
  auto part = [&](std::vector<int32_t>& all) {
    return std::span(all).subspan(static_cast<size_t>(index * batch.seq_length), static_cast<size_t>(batch.seq_length));
  };
  return {part(batch.tokens), part(batch.labels), part(batch.document_start), part(batch.positions)};
}

}  // namespace

Result<BatchSource> BatchSource::open(const BatchSourceOptions& options) {
  ALTIPLANO_ASSERT(options.seq_length > 0 && options.global_batch_size > 0, "sizes of a batch must be positive");
  ALTIPLANO_ASSERT(!options.train.empty() || !options.validation_path.empty(), "no data at all");
  BatchSource source(options);
  ALTIPLANO_RETURN_IF_ERROR(source.open_files());
  ALTIPLANO_RETURN_IF_ERROR(source.check_tokenizers());
  ALTIPLANO_RETURN_IF_ERROR(source.split());
  return source;
}

/// Whatever keeps a file from being opened is a wrong job file.
Result<TokenWindows> BatchSource::open_file(const std::string& key, const std::string& path) const {
  ALTIPLANO_RETURN_IF_ERROR(check_readable(key, path));
  auto windows = TokenWindows::open(path, options_.seq_length, options_.separates_documents);
  if (!windows) return invalid_argument("{}: {}", key, windows.status().message());
  ALTIPLANO_RETURN_IF_ERROR(check_ids(key, windows->file().info(), options_.model_vocab_size));
  return windows;
}

Status BatchSource::open_files() {
  for (const WeightedFile& file : options_.train) {
    ALTIPLANO_ASSIGN(TokenWindows windows, open_file(options_.train_key, file.path));
    train_.push_back({std::move(windows), {}, {}});
  }
  if (options_.validation_path.empty()) return Status::ok();
  ALTIPLANO_ASSIGN(TokenWindows windows, open_file(options_.validation_key, options_.validation_path));
  own_validation_.emplace(Source{std::move(windows), {}, {}});
  return Status::ok();
}

Status BatchSource::check_tokenizers() const {
  const TokenFileInfo& first = first_file().info();
  auto check = [&](const std::string& key, const TokenFile& file) -> Status {
    if (&file == &first_file()) return Status::ok();
    ALTIPLANO_ASSIGN(const uint64_t expected, first_file().tokenizer_fingerprint());
    ALTIPLANO_ASSIGN(const uint64_t got, file.tokenizer_fingerprint());
    if (got == expected) return Status::ok();
    const TokenFileInfo& other = file.info();
    return invalid_argument(
        "{}: {} was packed with tokenizer {} of {} ids{}, {} with {} of {} ids: the same ids mean different text; pack "
        "them with one tokenizer",
        key, other.path, other.tokenizer, other.vocab_size,
        other.tokenizer == first.tokenizer && other.vocab_size == first.vocab_size ? " (other vocabulary or merges)"
                                                                                   : "",
        first.path, first.tokenizer, first.vocab_size);
  };
  for (const Source& source : train_) ALTIPLANO_RETURN_IF_ERROR(check(options_.train_key, source.windows.file()));
  return own_validation_ ? check(options_.validation_key, own_validation_->windows.file()) : Status::ok();
}

Status BatchSource::split() {
  for (Source& source : train_) ALTIPLANO_RETURN_IF_ERROR(split_file(source));
  if (own_validation_) own_validation_->validation = {0, own_validation_->windows.num_from(0)};
  ALTIPLANO_RETURN_IF_ERROR(check_sizes());
  if (!train_.empty()) training_order_ = MixOrder::from_weights(options_.train);
  std::vector<int64_t> counts;
  for (const Source* source : validation_sources()) counts.push_back(source->validation.count);
  validation_order_ = MixOrder(std::move(counts));
  return Status::ok();
}

Status BatchSource::split_file(Source& source) {
  const int64_t seq = options_.seq_length, all = source.windows.num_whole();
  const bool by_fraction = !own_validation_ && options_.validation_fraction > 0;
  const auto wanted =
      by_fraction ? static_cast<int64_t>(std::floor(static_cast<double>(all) * options_.validation_fraction)) : 0;
  source.training = {0, all - wanted};
  // One token later than the last training window: that token is a label of training.
  const int64_t begin = source.training.count * seq + 1;
  if (!by_fraction || all == 0) return Status::ok();
  source.validation = {begin, wanted == 0 ? 0 : source.windows.num_from(begin)};
  if (source.validation.count > 0) return Status::ok();
  return invalid_argument("{}: {} of the {} of {} in {} leaves none for validation; enough: {:.3g}",
                          options_.fraction_key, options_.validation_fraction, counted(all, "sample"),
                          counted(seq, "token"), source.windows.file().info().path,
                          (seq > 1 ? 1.01 : 2.01) / static_cast<double>(all));
}

Status BatchSource::check_sizes() const {
  const int64_t seq = options_.seq_length;
  for (const Source& source : train_) {
    const TokenFileInfo& info = source.windows.file().info();
    if (source.training.count > 0) continue;
    return invalid_argument(
        "{}: {} has {}, one sample of train.seq_length {} needs {}; use shorter samples or more text",
        options_.train_key, info.path, counted(info.num_tokens, "token"), seq, seq + 1);
  }
  if (!train_.empty() && num_training_samples() < options_.global_batch_size) {
    int64_t all = 0;
    for (const Source& source : train_) all += source.windows.num_whole();
    if (all >= options_.global_batch_size && all > num_training_samples())
      return invalid_argument(
          "{}: {} of the {} of {} leaves {} for training, one step needs global_batch_size {}; at most {:.3g}",
          options_.fraction_key, options_.validation_fraction, counted(all, "sample"), counted(seq, "token"),
          num_training_samples(), options_.global_batch_size, largest_fraction(all, options_.global_batch_size));
    return invalid_argument(
        "{}: {} of {}, global_batch_size {}: one step needs a whole batch; use a smaller "
        "train.global_batch_size or train.seq_length, or more text ({} has {})",
        options_.train_key, counted(num_training_samples(), "sample"), counted(seq, "token"),
        options_.global_batch_size, training_name(), counted(num_training_tokens(), "token"));
  }
  if (own_validation_ && own_validation_->validation.count == 0) {
    return invalid_argument("{}: {} has 1 token; the loss of a prediction needs 2", options_.validation_key,
                            options_.validation_path);
  }
  return Status::ok();
}

std::vector<const BatchSource::Source*> BatchSource::validation_sources() const {
  std::vector<const Source*> sources;
  for (const Source& source : train_)
    if (source.validation.count > 0) sources.push_back(&source);
  if (own_validation_) sources.push_back(&*own_validation_);
  return sources;
}

int64_t BatchSource::num_training_samples() const {
  int64_t sum = 0;
  for (const Source& source : train_) sum += source.training.count;
  return sum;
}

int64_t BatchSource::num_validation_samples() const {
  int64_t sum = 0;
  for (const Source* source : validation_sources()) sum += source->validation.count;
  return sum;
}

int64_t BatchSource::num_training_tokens() const {
  int64_t sum = 0;
  for (const Source& source : train_) sum += source.windows.file().info().num_tokens;
  return sum;
}

std::string BatchSource::training_name() const {
  double total = 0;
  for (const WeightedFile& file : options_.train) total += file.weight;
  std::vector<std::string> parts;
  for (const WeightedFile& file : options_.train) {
    std::string name = std::filesystem::path(file.path).filename();
    parts.push_back(options_.train.size() == 1 ? name : fmt::format("{} ({:.1f} %)", name, 100 * file.weight / total));
  }
  return join(parts, " + ");
}

const TokenFile& BatchSource::first_file() const {
  return train_.empty() ? own_validation_->windows.file() : train_[0].windows.file();
}

std::vector<const TokenFile*> BatchSource::training_files() const {
  std::vector<const TokenFile*> files;
  for (const Source& source : train_) files.push_back(&source.windows.file());
  return files;
}

Status BatchSource::read_training(int64_t first, int64_t count, Batch& batch) const {
  resize(batch, count, options_.seq_length);
  for (int64_t i = 0; i < count; ++i) {
    const MixOrder::Place place = training_order_.place_of(first + i);
    const Source& source = train_[place.file];
    const int64_t window = sample_at(seed_of(options_.seed, place.file), place.index, source.training.count);
    ALTIPLANO_RETURN_IF_ERROR(source.windows.read(source.training, window, sample_of(batch, i)));
  }
  return Status::ok();
}

Status BatchSource::read_validation(int64_t first, int64_t count, Batch& batch) const {
  resize(batch, count, options_.seq_length);
  const std::vector<const Source*> sources = validation_sources();
  const int64_t total = num_validation_samples();
  for (int64_t i = 0; i < count; ++i) {
    if (first + i >= total) {
      TokenWindows::read_nothing(sample_of(batch, i));
      continue;
    }
    const MixOrder::Place place = validation_order_.place_of(first + i);
    const Source& source = *sources[place.file];
    ALTIPLANO_RETURN_IF_ERROR(source.windows.read(source.validation, place.index, sample_of(batch, i)));
  }
  return Status::ok();
}

Result<Batch> BatchSource::training_batch(int64_t first, int64_t count) const {
  Batch batch;
  ALTIPLANO_RETURN_IF_ERROR(read_training(first, count, batch));
  return batch;
}

Result<Batch> BatchSource::validation_batch(int64_t first, int64_t count) const {
  Batch batch;
  ALTIPLANO_RETURN_IF_ERROR(read_validation(first, count, batch));
  return batch;
}

}  // namespace altiplano
