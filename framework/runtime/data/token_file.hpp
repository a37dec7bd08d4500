#pragma once
// Token files: one HDF5 file of token ids. /tokens (u16 when the vocabulary fits, else u32; chunked, checksummed per
// chunk), /documents (i64 start of each document in tokens), /sources (JSON list of text file names),
// /tokenizer/<asset> (what rebuilds the tokenizer); attributes format, format_version, tokenizer, vocab_size,
// num_tokens, min_id, max_id, max_id_offset.
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/runtime/data/tokenizer.hpp"
#include "framework/storage/atomic_file.hpp"
#include "framework/storage/hdf5_file.hpp"

namespace altiplano {

struct TokenFileInfo {
  std::string path, tokenizer;
  int64_t vocab_size = 0, num_tokens = 0, num_documents = 0;
  int64_t min_id = 0, max_id = 0, max_id_offset = 0;  ///< offset: first token with max_id
  std::vector<std::string> sources;
};

/// A token file for reading. Stateless but for the open file; any thread.
class TokenFile {
 public:
  /// Refuses other formats and versions, files without tokens, and what contradicts itself.
  static Result<TokenFile> open(const std::string& path);
  const TokenFileInfo& info() const { return info_; }
  /// Tokens [offset, offset + ids.size()). An id above the file's own max_id is damage and named.
  Status read(int64_t offset, std::span<int32_t> ids) const;
  /// Where documents start, ascending from 0; refuses a list that is none.
  Result<std::vector<int64_t>> documents() const;
  /// Equal for files whose ids mean the same text.
  Result<uint64_t> tokenizer_fingerprint() const;
  Result<std::unique_ptr<Tokenizer>> tokenizer() const;

 private:
  Result<std::map<std::string, std::string>> assets() const;
  TokenFile(Hdf5File file, TokenFileInfo info) : file_(std::move(file)), info_(std::move(info)) {}
  Hdf5File file_;
  TokenFileInfo info_;
};

struct PackOptions {
  std::vector<std::string> inputs;  ///< text files, one document each; end of text is put between documents
  std::string output;
  int deflate = 0;                ///< gzip level of the tokens; 0: none
  int64_t block_bytes = 1 << 20;  ///< text read at a time
  /// Called with what is odd but kept: text that is no UTF-8, with the offset. Null: nobody is told.
  std::function<void(const std::string&)> note = {};
};

/// Text files to a token file, in blocks (memory does not grow with the files), published atomically. Refuses an empty
/// input.
Result<TokenFileInfo> pack_text(const PackOptions& options, const Tokenizer& tokenizer);

}  // namespace altiplano
