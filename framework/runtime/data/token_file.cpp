#include "framework/runtime/data/token_file.hpp"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "framework/base/plural.hpp"
#include "framework/runtime/data/token_format.hpp"
#include "framework/storage/checksum.hpp"
#include "framework/storage/file_kind.hpp"
#include "framework/storage/input_file.hpp"

namespace altiplano {
namespace {

/// Of names of sources and files of tokenizers: a damaged file must not ask for all memory.
constexpr int64_t kLargestText = int64_t{1} << 30;

Result<std::string> read_text(const Hdf5File& file, const std::string& name) {
  ALTIPLANO_ASSIGN(DatasetInfo info, file.info(name));
  if (info.type != ElementType::kU8 || info.extents.size() != 1) {
    return invalid_argument("{}: dataset '{}' is not text", file.path(), name);
  }
  if (info.extents[0] > kLargestText) {
    return invalid_argument("{}: dataset '{}' says it has {} bytes; at most {} are read", file.path(), name,
                            info.extents[0], kLargestText);
  }
  std::string text(static_cast<size_t>(info.extents[0]), '\0');
  ALTIPLANO_RETURN_IF_ERROR(file.read(name, {0}, info.extents, text.data()));
  return text;
}

Status check_format(const Hdf5File& file) {
  if (!file.has_attribute("/", "format")) {
    return invalid_argument("{}: an HDF5 file, but not one of tokens; make one with: altiplano data pack", file.path());
  }
  ALTIPLANO_ASSIGN(std::string format, file.string_attribute("/", "format"));
  ALTIPLANO_ASSIGN(int64_t version, file.int_attribute("/", "format_version"));
  if (format != kTokenFormat) {
    return invalid_argument("{}: holds '{}', expected '{}'", file.path(), format, kTokenFormat);
  }
  if (version != kTokenFormatVersion) {
    return invalid_argument("{}: token file format {}, this program reads format {}; pack the text again", file.path(),
                            version, kTokenFormatVersion);
  }
  return Status::ok();
}

Status read_numbers(const Hdf5File& file, TokenFileInfo& info) {
  const std::pair<const char*, int64_t*> numbers[] = {{"vocab_size", &info.vocab_size},
                                                      {"num_tokens", &info.num_tokens},
                                                      {"min_id", &info.min_id},
                                                      {"max_id", &info.max_id},
                                                      {"max_id_offset", &info.max_id_offset}};
  for (auto [key, value] : numbers) {
    ALTIPLANO_ASSIGN(*value, file.int_attribute("/", key));
  }
  return Status::ok();
}

Status read_sources(const Hdf5File& file, TokenFileInfo& info) {
  ALTIPLANO_ASSIGN(std::string text, read_text(file, "/sources"));
  auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_array()) return invalid_argument("{}: dataset '/sources' is damaged", file.path());
  for (const auto& source : json)
    info.sources.push_back(source.is_string() ? source.get<std::string>() : source.dump());
  return Status::ok();
}

Status check_datasets(const Hdf5File& file, TokenFileInfo& info) {
  ALTIPLANO_ASSIGN(DatasetInfo tokens, file.info("/tokens"));
  ALTIPLANO_ASSIGN(DatasetInfo documents, file.info("/documents"));
  if (tokens.type != ElementType::kU16 && tokens.type != ElementType::kU32) {
    return invalid_argument("{}: dataset '/tokens' is of {}; token ids are u16 or u32", file.path(),
                            to_string(tokens.type));
  }
  if (tokens.extents.size() != 1 || tokens.extents[0] != info.num_tokens) {
    return invalid_argument("{}: dataset '/tokens' has {} elements, attribute num_tokens says {}; pack the text again",
                            file.path(), tokens.extents.empty() ? 1 : tokens.extents[0], info.num_tokens);
  }
  if (documents.type != ElementType::kI64 || documents.extents.size() != 1) {
    return invalid_argument("{}: dataset '/documents' is no list of i64; pack the text again", file.path());
  }
  if (info.num_tokens == 0) return invalid_argument("{}: has no tokens", file.path());
  info.num_documents = documents.extents[0];
  if (info.num_documents > info.num_tokens) {
    return invalid_argument("{}: has {} and {}; pack the text again", file.path(),
                            counted(info.num_documents, "document"), counted(info.num_tokens, "token"));
  }
  return Status::ok();
}

Status check_numbers(const TokenFileInfo& info) {
  const bool in_order = info.min_id >= 0 && info.min_id <= info.max_id && info.max_id < info.vocab_size;
  if (in_order && info.max_id_offset >= 0 && info.max_id_offset < info.num_tokens) return Status::ok();
  return invalid_argument(
      "{}: its attributes contradict each other: ids {} to {} (at token {} of {}), vocabulary {}; "
      "pack the text again",
      info.path, info.min_id, info.max_id, info.max_id_offset, info.num_tokens, info.vocab_size);
}

}  // namespace

Result<TokenFile> TokenFile::open(const std::string& path) {
  ALTIPLANO_RETURN_IF_ERROR(check_input_file(path));
  ALTIPLANO_RETURN_IF_ERROR(check_file_kind(path, FileKind::kData));
  ALTIPLANO_ASSIGN(Hdf5File file, Hdf5File::open(path));
  ALTIPLANO_RETURN_IF_ERROR(check_format(file));
  TokenFileInfo info;
  info.path = path;
  ALTIPLANO_ASSIGN(info.tokenizer, file.string_attribute("/", "tokenizer"));
  ALTIPLANO_RETURN_IF_ERROR(read_numbers(file, info));
  ALTIPLANO_RETURN_IF_ERROR(read_sources(file, info));
  ALTIPLANO_RETURN_IF_ERROR(check_datasets(file, info));
  ALTIPLANO_RETURN_IF_ERROR(check_numbers(info));
  return TokenFile(std::move(file), std::move(info));
}

Status TokenFile::read(int64_t offset, std::span<int32_t> ids) const {
  auto count = static_cast<int64_t>(ids.size());
  ALTIPLANO_ASSIGN(DatasetInfo tokens, file_.info("/tokens"));
  if (tokens.type == ElementType::kU32) {
    ALTIPLANO_RETURN_IF_ERROR(file_.read("/tokens", {offset}, {count}, ids.data()));
  } else {
    std::vector<uint16_t> narrow(ids.size());
    ALTIPLANO_RETURN_IF_ERROR(file_.read("/tokens", {offset}, {count}, narrow.data()));
    std::copy(narrow.begin(), narrow.end(), ids.begin());
  }
  auto wrong = std::ranges::find_if(ids, [&](int32_t id) { return id < 0 || id > info_.max_id; });
  if (wrong == ids.end()) return Status::ok();
  return runtime_failure("{}: token {} is {}, the file's own largest id is {}: it is damaged; pack the text again",
                         info_.path, offset + (wrong - ids.begin()), *wrong, info_.max_id);
}

Result<std::vector<int64_t>> TokenFile::documents() const {
  std::vector<int64_t> starts(static_cast<size_t>(info_.num_documents));
  ALTIPLANO_RETURN_IF_ERROR(file_.read("/documents", {0}, {info_.num_documents}, starts.data()));
  const bool in_order = !starts.empty() && starts[0] == 0 && starts.back() < info_.num_tokens &&
                        std::ranges::adjacent_find(starts, std::greater_equal<>()) == starts.end();
  if (in_order) return starts;
  return invalid_argument("{}: dataset '/documents' is no ascending list of token offsets from 0; pack the text again",
                          info_.path);
}

Result<std::map<std::string, std::string>> TokenFile::assets() const {
  std::map<std::string, std::string> assets;
  for (const char* key : {"vocab", "merges"}) {
    std::string name = std::string("/tokenizer/") + key;
    if (!file_.has(name)) continue;
    ALTIPLANO_ASSIGN(assets[key], read_text(file_, name));
  }
  return assets;
}

Result<uint64_t> TokenFile::tokenizer_fingerprint() const {
  ALTIPLANO_ASSIGN(const auto texts, assets());
  std::string all = fmt::format("{} {}", info_.tokenizer, info_.vocab_size);
  for (const auto& [key, text] : texts) all += fmt::format("\n{} {} {}", key, text.size(), text);
  return checksum(all.data(), all.size());
}

Result<std::unique_ptr<Tokenizer>> TokenFile::tokenizer() const {
  ALTIPLANO_ASSIGN(const auto assets, this->assets());
  auto tokenizer = make_tokenizer(info_.tokenizer, assets);
  if (!tokenizer)
    return Status(tokenizer.status()).with_context(fmt::format("while reading the tokenizer of {}", info_.path));
  return tokenizer;
}

}  // namespace altiplano
