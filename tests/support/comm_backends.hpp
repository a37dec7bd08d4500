#pragma once
// The comm plugins a conformance test runs over.
#include <boost/test/unit_test.hpp>
#include <vector>

#include "framework/plugin/registry.hpp"
#include "tests/support/ranks.hpp"

namespace altiplano::test {

inline CommOptions test_options() {
  CommOptions options;
  options.deadline = std::chrono::seconds(30);
  return options;
}

inline CommBackend* comm_backend(const std::string& name) {
  PluginRegistry::instance().add_search_path(ALTIPLANO_TEST_PLUGIN_DIR);
  auto backend = PluginRegistry::instance().comm(name);
  BOOST_REQUIRE_MESSAGE(backend.is_ok(), backend.status().to_string());
  return *backend;
}

inline std::vector<CommBackend*> comm_backends() {
  return {comm_backend("inproc"), comm_backend("shm")};
}

}  // namespace altiplano::test
