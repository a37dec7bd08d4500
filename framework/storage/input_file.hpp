#pragma once
// Files that a person named: job files, plans, clusters, vocabularies, texts, token files. Only regular files are read:
// a pipe, a socket or an endless device would be read for ever.
#include <cstdint>
#include <string>

#include "framework/base/status.hpp"

namespace altiplano {

/// Of files that people write (job files, plans, clusters).
inline constexpr int64_t kMostWrittenBytes = int64_t{16} << 20;

/// Why `path` is no regular file that can be read: "No such file or directory", "it is a folder", "it is a pipe; a
/// regular file is needed"; empty when it is one. Never waits.
std::string why_not_readable(const std::string& path);

/// kInvalidArgument "<path>: cannot be read: <why>" unless `path` is a regular file that can be read.
Status check_input_file(const std::string& path);

/// The whole file as text; refused as by check_input_file, and when it has more than `most_bytes`.
Result<std::string> read_input_file(const std::string& path, int64_t most_bytes);

}  // namespace altiplano
