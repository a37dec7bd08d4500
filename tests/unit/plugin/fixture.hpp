#pragma once
#include <string>

namespace altiplano::test {

/// Where the build puts plugins that are made to be tested.
inline std::string fixture_directory() {
  return std::string(ALTIPLANO_BINARY_DIR) + "/fixtures/plugins";
}
inline std::string fixture(const std::string& name) {
  return fixture_directory() + "/" + name + ".so";
}

}  // namespace altiplano::test
