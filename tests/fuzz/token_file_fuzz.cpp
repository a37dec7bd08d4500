// Token files: whatever the bytes, tokens or an error that names the file.
#include <algorithm>
#include <vector>

#include "framework/runtime/data/token_file.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace altiplano;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string path = fuzz::file_with(fuzz::text_of(data, size), "tokens.h5");
  const auto file = TokenFile::open(path);
  if (!file.is_ok()) {
    fuzz::require(file.status().message().find(path) != std::string::npos, "an error names the file");
    return 0;
  }
  fuzz::require(file->info().num_tokens > 0, "a file that opens has tokens");
  std::vector<int32_t> ids(static_cast<size_t>(std::min<int64_t>(file->info().num_tokens, 1 << 16)));
  if (file->read(0, ids).is_ok())
    for (const int32_t id : ids)
      fuzz::require(id >= 0 && id < file->info().vocab_size, "ids are inside the vocabulary");
  (void)file->documents();
  (void)file->tokenizer();
  return 0;
}
