#include "framework/runtime/data/tokenizer.hpp"

namespace altiplano {
namespace {

class ByteTokenizer final : public Tokenizer {
 public:
  std::string name() const override { return "byte"; }
  int32_t vocab_size() const override { return 257; }
  int32_t end_of_text() const override { return 256; }
  size_t safe_prefix(std::string_view text) const override { return text.size(); }

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    ids.reserve(ids.size() + text.size());
    for (char c : text) ids.push_back(static_cast<unsigned char>(c));
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (int32_t id : ids) {
      if (id >= 0 && id < 256) {
        text += static_cast<char>(id);
      } else {
        text += id == end_of_text() ? "<|endoftext|>" : "\uFFFD";
      }
    }
    return text;
  }
};

Result<std::string> asset(const std::map<std::string, std::string>& assets, const std::string& key) {
  if (auto found = assets.find(key); found != assets.end()) return found->second;
  return invalid_argument("tokenizer gpt2 needs its {} file", key);
}

}  // namespace

std::unique_ptr<Tokenizer> make_byte_tokenizer() {
  return std::make_unique<ByteTokenizer>();
}

Result<std::unique_ptr<Tokenizer>> make_tokenizer(const std::string& name,
                                                  const std::map<std::string, std::string>& assets) {
  if (name == "byte") return make_byte_tokenizer();
  if (name != "gpt2") return invalid_argument("tokenizer '{}' is not known; there are: byte, gpt2", name);
  ALTIPLANO_ASSIGN(std::string vocab, asset(assets, "vocab"));
  ALTIPLANO_ASSIGN(std::string merges, asset(assets, "merges"));
  return make_gpt2_tokenizer({vocab, "gpt2 vocabulary"}, {merges, "gpt2 merges"});
}

}  // namespace altiplano
