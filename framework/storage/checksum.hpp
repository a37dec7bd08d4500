#pragma once
// Checksums of buffers and whole files: XXH3-64 (xxhash). Text form in manifests: 16 lower-case hex digits.
// Thread-safe.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "framework/base/status.hpp"

namespace altiplano {

uint64_t checksum(const void* data, size_t bytes);

struct FileDigest {
  int64_t bytes = 0;
  uint64_t checksum = 0;
  bool operator==(const FileDigest&) const = default;
};

/// Reads the whole file, 1 MiB at a time. Fails with the path and the system's reason.
Result<FileDigest> digest_file(const std::string& path);

std::string checksum_text(uint64_t checksum);  ///< "00c0ffee00c0ffee"
std::optional<uint64_t> checksum_from_text(std::string_view text);

}  // namespace altiplano
