#include "tests/fuzz/fuzz.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace altiplano::fuzz {
namespace {

struct OwnFolder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("altiplano-fuzz-" + std::to_string(static_cast<long>(getpid())));
  OwnFolder() { std::filesystem::create_directories(path); }
  ~OwnFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

std::string file_with(const std::string& bytes, const std::string& name) {
  static const OwnFolder folder;
  const auto path = folder.path / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
  return path.string();
}

}  // namespace altiplano::fuzz
