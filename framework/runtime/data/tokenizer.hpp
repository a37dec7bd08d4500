#pragma once
// runtime/data/: text to tokens, token files, sample order, batches. May include base/, storage/ and its own headers.
//
// Tokenizer: text <-> ids in [0, vocab_size). decode(encode(text)) == text for any bytes, valid UTF-8 or not.
// Immutable, thread-safe.
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.hpp"

namespace altiplano {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::string name() const = 0;  ///< "byte", "gpt2"
  virtual int32_t vocab_size() const = 0;
  virtual int32_t end_of_text() const = 0;  ///< id between documents; encode() never produces it
  /// Appends the ids of `text` to `ids`.
  virtual void encode(std::string_view text, std::vector<int32_t>& ids) const = 0;
  /// Ids outside the vocabulary decode to U+FFFD, end of text to "<|endoftext|>".
  virtual std::string decode(std::span<const int32_t> ids) const = 0;
  /// Length of the longest prefix that may be encoded on its own when more text follows: encode(a) + encode(b) ==
  /// encode(a + b). 0 when there is none. Lets files larger than memory be encoded in blocks.
  virtual size_t safe_prefix(std::string_view text) const = 0;
  /// Texts from which make_tokenizer(name(), assets()) builds it again; token files carry them.
  virtual std::map<std::string, std::string> assets() const { return {}; }

  std::vector<int32_t> encode(std::string_view text) const {
    std::vector<int32_t> ids;
    encode(text, ids);
    return ids;
  }
};

/// 256 bytes and end of text: vocabulary 257.
std::unique_ptr<Tokenizer> make_byte_tokenizer();
/// A text with the name that refusals call it by: of its file, where it has one.
struct TokenizerText {
  std::string text, name;
};
/// GPT-2's byte-pair encoding (Radford et al. 2019, section 2.2) from the contents of encoder.json and vocab.bpe. Fails
/// with name, line and entry of what is wrong.
Result<std::unique_ptr<Tokenizer>> make_gpt2_tokenizer(const TokenizerText& vocab, const TokenizerText& merges);
/// By name: "byte" (no assets) or "gpt2" (assets "vocab" and "merges").
Result<std::unique_ptr<Tokenizer>> make_tokenizer(const std::string& name,
                                                  const std::map<std::string, std::string>& assets);

}  // namespace altiplano
