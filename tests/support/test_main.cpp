// The one main() of every test executable.
#define BOOST_TEST_MODULE altiplano
#include <boost/test/unit_test.hpp>
#include <cstdlib>

namespace {

/// What jobs keep between runs (the kernel database) lies in the build folder, not in the home of who runs the tests.
struct OwnCache {
  OwnCache() { setenv("XDG_CACHE_HOME", ALTIPLANO_BINARY_DIR "/cache", 1); }
};

}  // namespace

BOOST_TEST_GLOBAL_CONFIGURATION(OwnCache);
