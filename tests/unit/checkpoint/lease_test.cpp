#include "framework/checkpoint/lease.hpp"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <set>
#include <thread>

#include "framework/checkpoint/layout.hpp"
#include "framework/checkpoint/save.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

EpochLease taken(const std::string& directory, const std::string& owner, int64_t least = 1) {
  auto lease = EpochLease::take(directory, owner, least);
  BOOST_REQUIRE_MESSAGE(lease.is_ok(), lease.status().to_string());
  return *lease;
}

/// A checkpoint of one number, saved and published by the start that has `lease`.
Status save_number(const std::string& directory, const EpochLease& lease, int64_t step, float number) {
  const TensorPart part{"x", DType::kF32, {1}, Box::whole({1}), &number, "parameter"};
  ALTIPLANO_RETURN_IF_ERROR(save_shard(directory, step, 0, {{part}}, lease.epoch()));
  CheckpointInfo info;
  info.step = step;
  info.attempt = lease.epoch();
  info.run_id = "run";
  return publish_checkpoint(directory, info, KeepRule{}, [&] { return lease.check(); }).status();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(lease)

BOOST_AUTO_TEST_CASE(a_later_start_takes_the_next_number_and_the_earlier_one_hears_whose_turn_it_is) {
  const TemporaryDirectory folder;
  const EpochLease first = taken(folder.path(), "job 14.0, host n1");
  BOOST_TEST(first.epoch() == 1);
  BOOST_TEST(first.check().is_ok());
  const EpochLease second = taken(folder.path(), "job 14.1, host n2");
  BOOST_TEST(second.epoch() == 2);
  BOOST_TEST(second.check().is_ok());
  BOOST_TEST((first.check().code() == StatusCode::kCancelled));
  BOOST_TEST(first.check().message() ==
             folder.path().string() +
                 ": start 2 of the run (job 14.1, host n2) has taken over from this one, start 1, which "
                 "saves nothing more");
  BOOST_TEST(taken(folder.path(), "", 7).epoch() == 7);
}

BOOST_AUTO_TEST_CASE(starts_at_one_instant_get_different_numbers) {
  const TemporaryDirectory folder;
  constexpr int kStarts = 8;
  std::vector<int64_t> epochs(kStarts);
  {
    std::vector<std::jthread> starts;
    for (int64_t& epoch : epochs) starts.emplace_back([&] { epoch = EpochLease::take(folder.path(), "x")->epoch(); });
  }
  BOOST_TEST(std::set<int64_t>(epochs.begin(), epochs.end()).size() == static_cast<size_t>(kStarts));
}

BOOST_AUTO_TEST_CASE(a_start_that_was_cut_off_and_comes_back_damages_nothing) {
  const TemporaryDirectory folder;
  const EpochLease lost = taken(folder.path(), "lost");
  BOOST_TEST(save_number(folder.path(), lost, 10, 1).is_ok());
  const float number = 2;  // the lost start is in the middle of saving step 20
  const TensorPart part{"x", DType::kF32, {1}, Box::whole({1}), &number, "parameter"};
  BOOST_TEST(save_shard(folder.path(), 20, 0, {{part}}, lost.epoch()).is_ok());
  const EpochLease next = taken(folder.path(), "next");
  BOOST_TEST(save_number(folder.path(), next, 20, 3).is_ok());
  const std::string before = read_bytes(step_folder(folder.path(), 20) + "/manifest.json");
  BOOST_TEST((save_number(folder.path(), lost, 20, 2).code() == StatusCode::kCancelled));
  BOOST_TEST((save_number(folder.path(), lost, 30, 2).code() == StatusCode::kCancelled));
  BOOST_TEST(read_bytes(step_folder(folder.path(), 20) + "/manifest.json") == before);
  BOOST_TEST(!std::filesystem::exists(step_folder(folder.path(), 30)));
  BOOST_TEST(temporary_folder(folder.path(), 20, 1) != temporary_folder(folder.path(), 20, 2));
  BOOST_TEST(unfinished_step(temporary_folder(folder.path(), 20, 2)).value_or(0) == 20);
}

BOOST_AUTO_TEST_SUITE_END()
