#pragma once
// What programs keep between runs (plans, measured kernels and clusters) goes to a folder of the test's own.
#include <cstdlib>
#include <string>

namespace altiplano::test {

class OwnCache {
 public:
  explicit OwnCache(const std::string& folder) : before_(std::getenv("XDG_CACHE_HOME")) {
    setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  }
  ~OwnCache() { setenv("XDG_CACHE_HOME", before_.c_str(), 1); }
  OwnCache(const OwnCache&) = delete;

 private:
  std::string before_;
};

}  // namespace altiplano::test
