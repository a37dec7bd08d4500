// A save that is interrupted at every call that changes a file, in every way.
#include <boost/test/unit_test.hpp>

#include "tests/support/faults.hpp"

namespace altiplano::test {

BOOST_AUTO_TEST_SUITE(interrupted_save)

BOOST_AUTO_TEST_CASE(at_every_boundary_and_in_every_way_the_last_good_checkpoint_loads) {
  for (const SaveScene& scene : save_scenes()) {
    for (const char* mode : {"kill", "torn", "ENOSPC", "EIO"}) {
      int tried = check_interrupted_saves(scene, mode, 1);
      BOOST_TEST_MESSAGE(scene.name << ", " << mode << ": " << tried << " saves");
    }
    check_interrupted_saves(scene, "ENOSPC", 1, true);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
