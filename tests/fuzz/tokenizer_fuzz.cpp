// Text through the byte tokenizer and GPT-2's: decode(encode(text)) is the text, whatever the bytes.
#include "framework/runtime/data/tokenizer.hpp"
#include "framework/storage/atomic_file.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace altiplano;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string folder = ALTIPLANO_SOURCE_DIR "/tests/fixtures/gpt2/";
  static const auto gpt2 = make_tokenizer("gpt2", {{"vocab", read_file(folder + "encoder.json").value()},
                                                   {"merges", read_file(folder + "vocab.bpe").value()}})
                               .value();
  static const auto byte = make_byte_tokenizer();
  const std::string text = fuzz::text_of(data, size);
  for (const Tokenizer* tokenizer : {gpt2.get(), byte.get()}) {
    const auto ids = tokenizer->encode(text);
    fuzz::require(tokenizer->decode(ids) == text, "decode(encode(text)) is the text");
    const size_t prefix = tokenizer->safe_prefix(text);
    fuzz::require(prefix <= text.size(), "a prefix is not longer than its text");
    auto joined = tokenizer->encode(text.substr(0, prefix));
    tokenizer->encode(std::string_view(text).substr(prefix), joined);
    fuzz::require(joined == ids, "a text may be encoded in two parts at its safe prefix");
  }
  return 0;
}
