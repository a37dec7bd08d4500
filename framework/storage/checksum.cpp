#include "framework/storage/checksum.hpp"

#include <xxhash.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

namespace altiplano {

uint64_t checksum(const void* data, size_t bytes) {
  return XXH3_64bits(data, bytes);
}

Result<FileDigest> digest_file(const std::string& path) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) return runtime_failure("{}: cannot be read: {}", path, std::strerror(errno));
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(), &XXH3_freeState);
  XXH3_64bits_reset(state.get());
  std::vector<char> block(1 << 20);
  FileDigest digest;
  while (size_t read = std::fread(block.data(), 1, block.size(), file.get())) {
    XXH3_64bits_update(state.get(), block.data(), read);
    digest.bytes += static_cast<int64_t>(read);
  }
  if (std::ferror(file.get())) {
    return runtime_failure("{}: reading failed at byte {}: {}", path, digest.bytes, std::strerror(errno));
  }
  digest.checksum = XXH3_64bits_digest(state.get());
  return digest;
}

std::string checksum_text(uint64_t checksum) {
  return fmt::format("{:016x}", checksum);
}

std::optional<uint64_t> checksum_from_text(std::string_view text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.size() != 16 || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace altiplano
