#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "framework/runtime/data/token_file.hpp"
#include "framework/runtime/data/token_format.hpp"
#include "framework/runtime/data/utf8.hpp"
#include "framework/storage/file_kind.hpp"
#include "framework/storage/input_file.hpp"
#include "framework/storage/removed_on_signal.hpp"

namespace altiplano {
namespace {

Status write_text(Hdf5File& file, const std::string& name, const std::string& text) {
  auto size = static_cast<int64_t>(text.size());
  DatasetOptions options;
  options.chunk = {std::min<int64_t>(size, 1 << 20)};
  options.deflate = 6;
  ALTIPLANO_RETURN_IF_ERROR(file.create_dataset(name, ElementType::kU8, {size}, options));
  return file.write(name, {0}, {size}, text.data());
}

/// Appends tokens to /tokens and keeps count of what the attributes say.
class TokenWriter {
 public:
  TokenWriter(Hdf5File& file, const Tokenizer& tokenizer) : file_(file), tokenizer_(tokenizer) {
    info_.tokenizer = tokenizer.name();
    info_.vocab_size = tokenizer.vocab_size();
  }

  Status begin(int deflate) {
    DatasetOptions options;
    options.chunk = {kTokenChunk};
    options.deflate = deflate;
    options.is_growable = true;
    return file_.create_dataset("/tokens", is_narrow() ? ElementType::kU16 : ElementType::kU32, {0}, options);
  }

  Status begin_document() {
    if (!documents_.empty()) {
      int32_t end = tokenizer_.end_of_text();
      ALTIPLANO_RETURN_IF_ERROR(append({&end, 1}));
    }
    documents_.push_back(info_.num_tokens);
    return Status::ok();
  }

  Status append(std::span<const int32_t> ids) {
    for (int32_t id : ids) count(id);
    auto size = static_cast<int64_t>(ids.size());
    int64_t start = info_.num_tokens - size;
    ALTIPLANO_RETURN_IF_ERROR(file_.grow("/tokens", info_.num_tokens));
    if (!is_narrow()) return file_.write("/tokens", {start}, {size}, ids.data());
    narrow_.assign(ids.begin(), ids.end());
    return file_.write("/tokens", {start}, {size}, narrow_.data());
  }

  Result<TokenFileInfo> finish(const PackOptions& options) {
    info_.path = options.output;
    info_.sources = options.inputs;
    info_.num_documents = static_cast<int64_t>(documents_.size());
    ALTIPLANO_RETURN_IF_ERROR(file_.create_dataset("/documents", ElementType::kI64, {info_.num_documents}));
    ALTIPLANO_RETURN_IF_ERROR(file_.write("/documents", {0}, {info_.num_documents}, documents_.data()));
    auto replace = nlohmann::json::error_handler_t::replace;  // file names need not be UTF-8
    ALTIPLANO_RETURN_IF_ERROR(
        write_text(file_, "/sources", nlohmann::json(info_.sources).dump(-1, ' ', false, replace)));
    for (const auto& [key, text] : tokenizer_.assets()) {
      ALTIPLANO_RETURN_IF_ERROR(write_text(file_, "/tokenizer/" + key, text));
    }
    ALTIPLANO_RETURN_IF_ERROR(write_attributes());
    return info_;
  }

 private:
  bool is_narrow() const { return info_.vocab_size <= 65536; }

  void count(int32_t id) {
    bool is_first = info_.num_tokens == 0;
    if (is_first || id > info_.max_id) {
      info_.max_id = id;
      info_.max_id_offset = info_.num_tokens;
    }
    if (is_first || id < info_.min_id) info_.min_id = id;
    ++info_.num_tokens;
  }

  Status write_attributes() {
    ALTIPLANO_RETURN_IF_ERROR(file_.set_attribute("/", "format", std::string(kTokenFormat)));
    ALTIPLANO_RETURN_IF_ERROR(file_.set_attribute("/", "format_version", kTokenFormatVersion));
    ALTIPLANO_RETURN_IF_ERROR(file_.set_attribute("/", "tokenizer", info_.tokenizer));
    const std::pair<const char*, int64_t> numbers[] = {{"vocab_size", info_.vocab_size},
                                                       {"num_tokens", info_.num_tokens},
                                                       {"min_id", info_.min_id},
                                                       {"max_id", info_.max_id},
                                                       {"max_id_offset", info_.max_id_offset}};
    for (auto [key, value] : numbers) ALTIPLANO_RETURN_IF_ERROR(file_.set_attribute("/", key, value));
    return Status::ok();
  }

  Hdf5File& file_;
  const Tokenizer& tokenizer_;
  TokenFileInfo info_;
  std::vector<int64_t> documents_;
  std::vector<uint16_t> narrow_;
};

/// Reads up to `bytes` more of the stream; false at its end.
bool read_more(std::ifstream& stream, std::string& text, size_t bytes) {
  size_t before = text.size();
  text.resize(before + bytes);
  stream.read(text.data() + before, static_cast<std::streamsize>(bytes));
  text.resize(before + static_cast<size_t>(stream.gcount()));
  return text.size() > before;
}

/// A block without a safe place to cut grows by its own size, so that even one endless word is scanned a bounded number
/// of times.
Status pack_file(const std::string& path, const PackOptions& options, const Tokenizer& tokenizer, TokenWriter& writer) {
  std::ifstream stream(path, std::ios::binary);
  std::string text;
  auto block = static_cast<size_t>(options.block_bytes);
  if (!stream) return invalid_argument("{}: cannot be read: {}", path, std::strerror(errno));
  if (!read_more(stream, text, block)) {
    return invalid_argument(
        "{}: is {}", path, stream.bad() ? "no readable file" : "empty; each file is one document of at least one byte");
  }
  ALTIPLANO_RETURN_IF_ERROR(writer.begin_document());
  Utf8Check check;
  check.take(text);
  std::vector<int32_t> ids;
  bool has_more = true;
  while (!text.empty()) {
    size_t cut = has_more ? tokenizer.safe_prefix(text) : text.size();
    ids.clear();
    tokenizer.encode(std::string_view(text).substr(0, cut), ids);
    ALTIPLANO_RETURN_IF_ERROR(writer.append(ids));
    text.erase(0, cut);
    const size_t kept = text.size();
    if (has_more) has_more = read_more(stream, text, std::max(block, kept));
    check.take(std::string_view(text).substr(kept));
  }
  if (stream.bad()) return runtime_failure("{}: reading failed", path);
  if (auto offset = check.first_invalid(); offset && options.note)
    options.note(fmt::format("{}: is no UTF-8 from byte {} on; kept byte by byte", path, *offset));
  return Status::ok();
}

}  // namespace

Result<TokenFileInfo> pack_text(const PackOptions& options, const Tokenizer& tokenizer) {
  if (options.inputs.empty()) return invalid_argument("data pack: no text files given");
  for (const std::string& path : options.inputs) {
    ALTIPLANO_RETURN_IF_ERROR(check_input_file(path));
    ALTIPLANO_RETURN_IF_ERROR(check_file_kind(path, FileKind::kText));
    std::error_code error;
    if (std::filesystem::equivalent(path, options.output, error))
      return invalid_argument("data pack: the output {} is one of the text files", options.output);
  }
  ALTIPLANO_RETURN_IF_ERROR(check_replaceable(options.output, FileKind::kData));
  std::optional<EndingSignalsHeld> held(std::in_place);
  ALTIPLANO_ASSIGN(AtomicFile target, AtomicFile::create_named(options.output));
  const RemovedOnSignal removal(target.temporary_path());
  held.reset();
  ALTIPLANO_ASSIGN(Hdf5File file, Hdf5File::create(target.temporary_path()));
  TokenWriter writer(file, tokenizer);
  ALTIPLANO_RETURN_IF_ERROR(writer.begin(options.deflate));
  for (const std::string& path : options.inputs) {
    ALTIPLANO_RETURN_IF_ERROR(pack_file(path, options, tokenizer, writer));
  }
  ALTIPLANO_ASSIGN(TokenFileInfo info, writer.finish(options));
  ALTIPLANO_RETURN_IF_ERROR(file.close());
  ALTIPLANO_RETURN_IF_ERROR(target.commit());
  return info;
}

}  // namespace altiplano
