// A save that is interrupted at any call that changes a file: some of them here, all of them in tests/slow.
#include "tests/support/faults.hpp"

using namespace altiplano::test;

BOOST_AUTO_TEST_CASE(a_save_killed_at_any_boundary_leaves_the_last_good_checkpoint) {
  for (const SaveScene& scene : save_scenes()) BOOST_TEST(check_interrupted_saves(scene, "kill", 5) > 10, scene.name);
}

BOOST_AUTO_TEST_CASE(a_write_cut_in_half_leaves_the_last_good_checkpoint) {
  for (const SaveScene& scene : save_scenes()) BOOST_TEST(check_interrupted_saves(scene, "torn", 7) > 1, scene.name);
}

BOOST_AUTO_TEST_CASE(a_full_disk_or_a_failing_one_at_any_boundary_is_told_and_leaves_the_last_good_checkpoint) {
  for (const SaveScene& scene : save_scenes()) {
    BOOST_TEST(check_interrupted_saves(scene, "EIO", 17) > 2, scene.name);
    BOOST_TEST(check_interrupted_saves(scene, "ENOSPC", 13) > 2, scene.name);
  }
}

BOOST_AUTO_TEST_CASE(writes_that_take_few_bytes_each_save_the_same_checkpoint) {
  BOOST_TEST(save_with_short_writes(7) > 3 * save_with_short_writes(0));
}
