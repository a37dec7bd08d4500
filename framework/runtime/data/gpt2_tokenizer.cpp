#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
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

class Gpt2Tokenizer final : public Tokenizer {
 public:
  static Result<std::unique_ptr<Tokenizer>> make(const std::string& vocab, const std::string& merges) {
    auto tokenizer = std::make_unique<Gpt2Tokenizer>();
    ALTIPLANO_ASSIGN(Ids ids, read_vocab(vocab));
    ALTIPLANO_RETURN_IF_ERROR(tokenizer->take_vocab(ids));
    ALTIPLANO_RETURN_IF_ERROR(tokenizer->take_merges(merges, ids));
    tokenizer->assets_ = {{"vocab", vocab}, {"merges", merges}};
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
  using Ids = std::unordered_map<std::string, int32_t>;

  static Result<Ids> read_vocab(const std::string& text) {
    auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object()) return invalid_argument("gpt2 vocabulary: not a JSON object of token: id");
    Ids ids;
    auto size = static_cast<int64_t>(json.size());
    for (const auto& [token, id] : json.items()) {
      if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= size) {
        return invalid_argument("gpt2 vocabulary: entry '{}' has id {}; ids are 0 to {}", token, id.dump(), size - 1);
      }
      ids[token] = id.get<int32_t>();
    }
    return ids;
  }

  Status take_vocab(const Ids& ids) {
    std::unordered_map<std::string, char> byte_of;
    auto spellings = byte_spellings();
    for (size_t b = 0; b < 256; ++b) byte_of[spellings[b]] = static_cast<char>(b);
    bytes_of_.assign(ids.size(), {});
    std::vector<bool> is_taken(ids.size());
    for (const auto& [token, id] : ids) {
      auto index = static_cast<size_t>(id);
      if (is_taken[index]) return invalid_argument("gpt2 vocabulary: id {} stands for two tokens", id);
      is_taken[index] = true;
      bytes_of_[index] = token == kEndOfText ? token : spelled_bytes(token, byte_of);
      if (bytes_of_[index].empty())
        return invalid_argument("gpt2 vocabulary: token '{}' has a character that stands for no byte", token);
    }
    return take_single_bytes(ids, spellings);
  }

  Status take_single_bytes(const Ids& ids, const std::array<std::string, 256>& spellings) {
    for (size_t b = 0; b < 256; ++b) {
      auto found = ids.find(spellings[b]);
      if (found == ids.end()) return invalid_argument("gpt2 vocabulary: byte {} has no token", b);
      id_of_byte_[b] = found->second;
    }
    auto end = ids.find(std::string(kEndOfText));
    if (end == ids.end()) return invalid_argument("gpt2 vocabulary: {} is missing", kEndOfText);
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

  Status take_merges(const std::string& text, const Ids& ids) {
    std::istringstream lines(text);
    std::string line;
    int32_t rank = 0;
    for (int number = 1; std::getline(lines, line); ++number) {
      if (line.empty() || line.starts_with("#version")) continue;
      std::vector<std::string> parts = split(line, ' ');
      if (parts.size() != 2) return invalid_argument("gpt2 merges line {}: '{}' is not two tokens", number, line);
      auto left = ids.find(parts[0]), right = ids.find(parts[1]), merged = ids.find(parts[0] + parts[1]);
      if (left == ids.end() || right == ids.end() || merged == ids.end()) {
        return invalid_argument("gpt2 merges line {}: '{}' names a token the vocabulary does not have", number, line);
      }
      if (!merges_.add(left->second, right->second, {rank++, merged->second})) {
        return invalid_argument("gpt2 merges line {}: '{}' stands there twice", number, line);
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

Result<std::unique_ptr<Tokenizer>> make_gpt2_tokenizer(const std::string& vocab, const std::string& merges) {
  return Gpt2Tokenizer::make(vocab, merges);
}

}  // namespace altiplano
