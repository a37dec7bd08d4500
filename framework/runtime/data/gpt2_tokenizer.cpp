#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "framework/base/text.hpp"
#include "framework/runtime/data/byte_pair_encoding.hpp"
#include "framework/runtime/data/pretokenize.hpp"
#include "framework/runtime/data/tokenizer.hpp"

namespace altiplano {
namespace {

constexpr std::string_view kEndOfText = "<|endoftext|>";

std::string to_utf8(char32_t c) {  // below U+0800 here
  if (c < 0x80) return std::string(1, static_cast<char>(c));
  return {static_cast<char>(0xC0 | (c >> 6)), static_cast<char>(0x80 | (c & 0x3F))};
}

/// GPT-2's files write each byte as a printable character: printable Latin-1 stands for itself, the others for U+0100
/// onwards.
std::array<std::string, 256> byte_spellings() {
  std::array<std::string, 256> spellings;
  char32_t next = 0x100;
  for (char32_t b = 0; b < 256; ++b) {
    bool is_printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    spellings[b] = to_utf8(is_printable ? b : next++);
  }
  return spellings;
}

using Ids = std::unordered_map<std::string, int32_t>;

/// The vocabulary's file: a JSON object of token: id. Refusals name the place of the entry.
class VocabFile {
 public:
  explicit VocabFile(const TokenizerText& file) : file_(file) {}

  Result<Ids> read() const {
    size_t num_keys = 0;
    Json json;
    const auto count = [&](int depth, Json::parse_event_t event, const Json&) {
      num_keys += event == Json::parse_event_t::key && depth == 1;
      return true;
    };
    try {
      json = Json::parse(file_.text, count);
    } catch (const Json::parse_error& error) {
      return invalid_argument("{}: not valid JSON", at(error.byte == 0 ? 0 : error.byte - 1));
    }
    if (!json.is_object()) return invalid_argument("{}: not a JSON object of token: id", at(0));
    if (num_keys != json.size()) return twice();
    return ids_of(json);
  }

  Status refuse(const std::string& token, const std::string& what) const {
    for (const auto& [key, offset] : keys())
      if (key == token) return invalid_argument("{}: {}", at(offset), what);
    return invalid_argument("{}: {}", file_.name, what);
  }
  Status refuse(const std::string& what) const { return invalid_argument("{}: {}", file_.name, what); }

 private:
  using Json = nlohmann::json;

  Result<Ids> ids_of(const Json& json) const {
    Ids ids;
    const auto size = static_cast<int64_t>(json.size());
    for (const auto& [token, id] : json.items()) {
      if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= size)
        return refuse(token, fmt::format("entry '{}' has id {}; ids are 0 to {}", token, id.dump(), size - 1));
      ids[token] = id.get<int32_t>();
    }
    return ids;
  }

  Status twice() const {
    std::set<std::string> seen;
    for (const auto& [key, offset] : keys())
      if (!seen.insert(key).second) return invalid_argument("{}: token '{}' stands there twice", at(offset), key);
    return refuse("a token stands there twice");
  }

  /// "encoder.json:3:14"
  std::string at(size_t offset) const {
    const std::string_view before = std::string_view(file_.text).substr(0, offset);
    const size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    return fmt::format("{}:{}:{}", file_.name, 1 + std::ranges::count(before, '\n'), 1 + offset - line_start);
  }

  /// The object's own keys, in the order of the text, which is valid JSON.
  std::vector<std::pair<std::string, size_t>> keys() const {
    std::vector<std::pair<std::string, size_t>> keys;
    const std::string& text = file_.text;
    int depth = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      depth += text[i] == '{' || text[i] == '[';
      depth -= text[i] == '}' || text[i] == ']';
      if (text[i] != '"') continue;
      const size_t begin = i++;
      for (; text[i] != '"'; ++i) i += text[i] == '\\';
      const size_t next = text.find_first_not_of(" \t\r\n", i + 1);
      if (depth == 1 && next != std::string::npos && text[next] == ':')
        keys.emplace_back(Json::parse(text.substr(begin, i + 1 - begin)).get<std::string>(), begin);
    }
    return keys;
  }

  const TokenizerText& file_;
};

class Gpt2Tokenizer final : public Tokenizer {
 public:
  static Result<std::unique_ptr<Tokenizer>> make(const TokenizerText& vocab, const TokenizerText& merges) {
    auto tokenizer = std::make_unique<Gpt2Tokenizer>();
    const VocabFile file(vocab);
    ALTIPLANO_ASSIGN(Ids ids, file.read());
    ALTIPLANO_RETURN_IF_ERROR(tokenizer->take_vocab(file, ids));
    ALTIPLANO_RETURN_IF_ERROR(tokenizer->take_merges(merges, ids));
    tokenizer->assets_ = {{"vocab", vocab.text}, {"merges", merges.text}};
    return std::unique_ptr<Tokenizer>(std::move(tokenizer));
  }

  std::string name() const override { return "gpt2"; }
  int32_t vocab_size() const override { return static_cast<int32_t>(bytes_of_.size()); }
  int32_t end_of_text() const override { return end_of_text_; }
  std::map<std::string, std::string> assets() const override { return assets_; }
  size_t safe_prefix(std::string_view text) const override { return last_piece_boundary(text); }

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    std::unordered_map<std::string_view, std::vector<int32_t>> seen;  // most words come again
    for (size_t start = 0, end = 0; start < text.size(); start = end) {
      end = piece_end(text, start);
      std::string_view piece = text.substr(start, end - start);
      auto [entry, is_new] = seen.try_emplace(piece);
      if (is_new) entry->second = encode_piece(piece);
      ids.insert(ids.end(), entry->second.begin(), entry->second.end());
    }
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (int32_t id : ids) text += id >= 0 && id < vocab_size() ? bytes_of_[static_cast<size_t>(id)] : "\uFFFD";
    return text;
  }

 private:
  Status take_vocab(const VocabFile& file, const Ids& ids) {
    std::unordered_map<std::string, char> byte_of;
    auto spellings = byte_spellings();
    for (size_t b = 0; b < 256; ++b) byte_of[spellings[b]] = static_cast<char>(b);
    bytes_of_.assign(ids.size(), {});
    std::vector<bool> is_taken(ids.size());
    for (const auto& [token, id] : ids) {
      auto index = static_cast<size_t>(id);
      if (is_taken[index]) return file.refuse(token, fmt::format("id {} stands for two tokens", id));
      is_taken[index] = true;
      bytes_of_[index] = token == kEndOfText ? token : spelled_bytes(token, byte_of);
      if (bytes_of_[index].empty())
        return file.refuse(token, fmt::format("token '{}' has a character that stands for no byte", token));
    }
    return take_single_bytes(file, ids, spellings);
  }

  Status take_single_bytes(const VocabFile& file, const Ids& ids, const std::array<std::string, 256>& spellings) {
    for (size_t b = 0; b < 256; ++b) {
      auto found = ids.find(spellings[b]);
      if (found == ids.end()) return file.refuse(fmt::format("byte {} has no token", b));
      id_of_byte_[b] = found->second;
    }
    auto end = ids.find(std::string(kEndOfText));
    if (end == ids.end()) return file.refuse(fmt::format("{} is missing", kEndOfText));
    end_of_text_ = end->second;
    return Status::ok();
  }

  /// Empty when a character stands for no byte.
  static std::string spelled_bytes(const std::string& token, const std::unordered_map<std::string, char>& byte_of) {
    std::string bytes;
    for (size_t at = 0; at < token.size();) {
      size_t length = static_cast<unsigned char>(token[at]) < 0x80 ? 1 : 2;
      auto found = byte_of.find(token.substr(at, length));
      if (found == byte_of.end()) return {};
      bytes += found->second;
      at += length;
    }
    return bytes;
  }

  Status take_merges(const TokenizerText& file, const Ids& ids) {
    std::istringstream lines(file.text);
    std::string line;
    int32_t rank = 0;
    for (int number = 1; std::getline(lines, line); ++number) {
      if (line.empty() || line.starts_with("#version")) continue;
      std::vector<std::string> parts = split(line, ' ');
      if (parts.size() != 2) return invalid_argument("{}:{}: '{}' is not two tokens", file.name, number, line);
      auto left = ids.find(parts[0]), right = ids.find(parts[1]), merged = ids.find(parts[0] + parts[1]);
      if (left == ids.end() || right == ids.end() || merged == ids.end()) {
        return invalid_argument("{}:{}: '{}' names a token the vocabulary does not have", file.name, number, line);
      }
      if (!merges_.add(left->second, right->second, {rank++, merged->second})) {
        return invalid_argument("{}:{}: '{}' stands there twice", file.name, number, line);
      }
    }
    return Status::ok();
  }

  std::vector<int32_t> encode_piece(std::string_view piece) const {
    std::vector<int32_t> symbols;
    symbols.reserve(piece.size());
    for (char c : piece) symbols.push_back(id_of_byte_[static_cast<unsigned char>(c)]);
    merge_pairs(merges_, symbols);
    return symbols;
  }

  std::vector<std::string> bytes_of_;
  std::array<int32_t, 256> id_of_byte_{};
  MergeTable merges_;
  int32_t end_of_text_ = -1;
  std::map<std::string, std::string> assets_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> make_gpt2_tokenizer(const TokenizerText& vocab, const TokenizerText& merges) {
  return Gpt2Tokenizer::make(vocab, merges);
}

}  // namespace altiplano
