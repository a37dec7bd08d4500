// One dataset of more than 2 GiB, which a single write or read of the system does not take.
#include <boost/test/unit_test.hpp>
#include <cstring>

#include "framework/checkpoint/restore.hpp"
#include "framework/checkpoint/save.hpp"
#include "tests/support/temporary_directory.hpp"

namespace altiplano::test {

BOOST_AUTO_TEST_SUITE(large_dataset)

BOOST_AUTO_TEST_CASE(a_tensor_of_more_than_two_gibibytes_is_saved_checked_and_restored) {
  constexpr int64_t kElements = (int64_t{1} << 29) + 12345;  // of 4 bytes each
  std::vector<uint32_t> values(kElements);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint32_t>(i * 2654435761u);
  const auto is_right = [&] {
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i] != static_cast<uint32_t>(i * 2654435761u)) return false;
    return true;
  };
  TemporaryDirectory directory;
  const Box whole = Box::whole({kElements});
  const TensorPart part{"w", DType::kI32, {kElements}, whole, values.data(), "parameter"};
  Status saved = save_shard(directory.path(), 1, 0, {&part, 1});
  BOOST_REQUIRE_MESSAGE(saved.is_ok(), saved.to_string());
  CheckpointInfo info;
  info.step = info.world_size = 1;
  info.run_id = "run";
  BOOST_REQUIRE(publish_checkpoint(directory.path(), info, {}).is_ok());
  std::memset(values.data(), 0, values.size() * sizeof values[0]);
  auto found = find_checkpoint(directory.path(), "must", CheckLevel::kChecksums);
  BOOST_REQUIRE_MESSAGE(found.is_ok(), found.status().to_string());
  const TensorTarget target{"w", DType::kI32, {kElements}, whole, values.data()};
  Status restored = found->checkpoint->restore({&target, 1});
  BOOST_REQUIRE_MESSAGE(restored.is_ok(), restored.to_string());
  BOOST_TEST(is_right());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
