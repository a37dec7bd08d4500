// Care for checkpoints that are there: every damaged bit is found and named, two are compared, old ones are pruned.
#include <numeric>

#include "framework/checkpoint/compare.hpp"
#include "framework/checkpoint/layout.hpp"
#include "framework/checkpoint/prune.hpp"
#include "framework/checkpoint/save.hpp"
#include "framework/storage/atomic_file.hpp"
#include "framework/storage/hdf5_file.hpp"
#include "tests/support/contains.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/checkpoint/steps.hpp"

using namespace altiplano;
using namespace altiplano::test;
namespace fs = std::filesystem;

namespace {

constexpr int64_t kRows = 40, kColumns = 6;

/// Two ranks, each half of a matrix and of a vector; every value is `value`.
void save_rank(const std::string& directory, int64_t step, int rank, double value, int64_t attempt = 1) {
  std::vector<double> matrix(kRows / 2 * kColumns, value), vector(kRows / 2, value);
  const int64_t first = kRows / 2 * rank;
  std::vector<TensorPart> parts = {
      {"w", DType::kF64, {kRows, kColumns}, {{first, 0}, {kRows / 2, kColumns}}, matrix.data(), "parameter"},
      {"w.m", DType::kF64, {kRows}, {{first}, {kRows / 2}}, vector.data(), "optimizer_state"}};
  BOOST_REQUIRE(save_shard(directory, step, rank, parts, attempt).is_ok());
}

void save(const std::string& directory, int64_t step, double value = 1, const std::string& run = "run") {
  for (int rank : {0, 1}) save_rank(directory, step, rank, value);
  CheckpointInfo info;
  info.step = step;
  info.world_size = 2;
  info.run_id = run;
  info.state = R"({"settings": {"optimizer.lr": ")" + std::to_string(step) + R"("}})";
  BOOST_REQUIRE(publish_checkpoint(directory, info, {}).is_ok());
}

void flip(const std::string& path, size_t byte, int bit) {
  std::string bytes = test::read_bytes(path);
  bytes[byte] = static_cast<char>(bytes[byte] ^ (1 << bit));
  test::write_bytes(path, bytes);
}

const PartRecord* part_at(const ShardRecord& shard, int64_t byte) {
  for (const PartRecord& part : shard.parts)
    if (byte >= part.offset && byte < part.offset + part.box.num_elements() * 8) return &part;
  return nullptr;
}

/// The damage is found and named by file, step and, within a dataset's data, by dataset; nobody crashes.
void check_named(const std::string& path, const Manifest& manifest, const std::string& name, size_t byte) {
  const std::string where = fmt::format("{} byte {}", name, byte);
  std::vector<std::string> problems = verify_checkpoint(path);
  BOOST_REQUIRE_MESSAGE(problems.size() == 1, where);
  BOOST_TEST(contains(problems[0], "step-00000007/" + name), where << ": " << problems[0]);
  for (const ShardRecord& shard : manifest.shards) {
    if (shard.file != name) continue;
    const PartRecord* part = part_at(shard, static_cast<int64_t>(byte));
    BOOST_TEST(contains(problems[0], part ? "dataset '" + part->dataset + "'" : "outside of the data of its datasets"),
               where << ": " << problems[0]);
  }
}

/// Whoever reads without looking at the sums first gets the saved values or a refusal.
void check_read(const std::string& path, const std::string& name, size_t byte) {
  auto checkpoint = Checkpoint::open(path, CheckLevel::kSizes);
  if (!checkpoint) return;
  std::vector<double> matrix(kRows * kColumns, -1);
  TensorTarget target{"w", DType::kF64, {kRows, kColumns}, Box::whole({kRows, kColumns}), matrix.data()};
  Status status = checkpoint->restore({&target, 1});
  const bool is_right = std::ranges::count(matrix, 1.0) == kRows * kColumns;
  BOOST_TEST((is_right || !status.is_ok()), name << " byte " << byte);
}

std::vector<int64_t> steps_of(const std::vector<PrunableCheckpoint>& checkpoints) {
  std::vector<int64_t> steps;
  for (const PrunableCheckpoint& one : checkpoints) steps.push_back(one.step);
  return steps;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_flipped_bit_in_any_file_is_named_with_file_dataset_and_step_and_crashes_nobody) {
  test::TemporaryDirectory dir;
  save(dir.path(), 7);
  const std::string path = step_folder(dir.path(), 7);
  const Manifest manifest = Checkpoint::open(path, CheckLevel::kSizes)->manifest();
  for (const char* name : {"manifest.json", "rank-0000.h5", "rank-0001.h5", "index.h5"}) {
    const std::string file = path + "/" + name;
    const size_t size = fs::file_size(file);
    // HDF5's own structures lie mostly at the beginning.
    for (size_t i = 0, byte = 0; byte < size; ++i, byte = i < 40 ? i * 5 : byte + size / 40 + 1) {
      flip(file, byte, static_cast<int>(i % 8));
      check_named(path, manifest, name, byte);
      check_read(path, name, byte);
      flip(file, byte, static_cast<int>(i % 8));
    }
  }
  BOOST_TEST(verify_checkpoint(path).empty());
}

BOOST_AUTO_TEST_CASE(a_part_that_is_read_is_checked_even_when_only_some_of_it_is_wanted) {
  test::TemporaryDirectory dir;
  save(dir.path(), 7);
  const std::string path = step_folder(dir.path(), 7);
  auto checkpoint = Checkpoint::open(path, CheckLevel::kSizes);
  BOOST_REQUIRE(checkpoint.is_ok());
  const PartRecord& part = checkpoint->manifest().shards[1].parts[0];
  flip(path + "/rank-0001.h5", static_cast<size_t>(part.offset) + 300, 3);
  std::vector<double> row(kColumns);
  TensorTarget target{"w", DType::kF64, {kRows, kColumns}, {{25, 0}, {1, kColumns}}, row.data()};
  BOOST_TEST(contains(checkpoint->restore({&target, 1}).message(), "rank-0001.h5: dataset '/w/20_0'"));
  BOOST_TEST(checkpoint->verify_share(0, 2).is_ok());
  BOOST_TEST(contains(checkpoint->verify_share(1, 2).message(), "dataset '/w/20_0' (box [20:40, 0:6] of w)"));
}

BOOST_AUTO_TEST_CASE(what_hdf5_reads_by_name_lies_where_the_manifest_says) {
  test::TemporaryDirectory dir;
  save(dir.path(), 7);
  auto checkpoint = Checkpoint::open(step_folder(dir.path(), 7), CheckLevel::kSizes);
  for (const ShardRecord& shard : checkpoint->manifest().shards)
    for (const PartRecord& part : shard.parts) {
      const std::string path = checkpoint->path() + "/" + shard.file;
      auto file = Hdf5File::open(path);
      std::vector<double> by_name(static_cast<size_t>(part.box.num_elements())), by_place(by_name.size());
      BOOST_REQUIRE(
          file->read(part.dataset, Extents(part.box.extents.size()), part.box.extents, by_name.data()).is_ok());
      BOOST_REQUIRE(read_file_range(path, part.offset, by_place.data(), by_place.size() * 8).is_ok());
      BOOST_TEST((by_name == by_place), part.dataset);
    }
}

BOOST_AUTO_TEST_CASE(what_a_run_left_behind_does_not_come_again) {
  test::TemporaryDirectory dir;
  save(dir.path(), 10000);
  for (int rank : {0, 1}) save_rank(dir.path(), 500, rank, 2, /*attempt=*/2);
  CheckpointInfo info;
  info.step = 500, info.world_size = 2, info.attempt = 2, info.run_id = "run";
  BOOST_REQUIRE(publish_checkpoint(dir.path(), info, {}).is_ok());
  auto found = find_checkpoint(dir.path(), "auto", CheckLevel::kChecksums);
  BOOST_TEST(found->checkpoint->manifest().info.step == 500);
  BOOST_TEST(found->skipped.empty());
}

BOOST_AUTO_TEST_CASE(a_folder_that_stepped_aside_counts_until_its_successor_is_there) {
  test::TemporaryDirectory dir;
  save(dir.path(), 7);
  fs::rename(step_folder(dir.path(), 7), aside_folder(step_folder(dir.path(), 7)));
  BOOST_TEST(find_checkpoint(dir.path(), "must", CheckLevel::kChecksums)->checkpoint->manifest().info.step == 7);
  BOOST_TEST(remove_unfinished(dir.path()).empty());
  BOOST_TEST(fs::exists(step_folder(dir.path(), 7) + "/manifest.json"));
}

BOOST_AUTO_TEST_CASE(two_checkpoints_are_compared_by_values_and_by_what_they_say) {
  test::TemporaryDirectory dir;
  save(dir.path(), 1, 1.5), save(dir.path(), 2, 1.25);
  auto first = Checkpoint::open(step_folder(dir.path(), 1), CheckLevel::kChecksums).value();
  auto second = Checkpoint::open(step_folder(dir.path(), 2), CheckLevel::kChecksums).value();
  auto same = compare_checkpoints(first, first);
  BOOST_TEST((same->facts.empty() && same->tensors.empty() && same->num_tensors == 2));
  auto different = compare_checkpoints(first, second);
  BOOST_REQUIRE(different->tensors.size() == 2u);
  BOOST_TEST(different->tensors[0].name == "w");
  BOOST_TEST(different->tensors[0].largest == 0.25);
  BOOST_TEST(different->tensors[0].num_differing == kRows * kColumns);
  const std::vector<std::string> facts = {"optimizer.lr: 1 against 2", "step: 1 against 2"};
  BOOST_TEST(different->facts == facts, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(pruning_shows_what_goes_and_keeps_the_last_good_one) {
  test::TemporaryDirectory dir;
  for (int64_t step : {100, 200, 300, 400, 500}) save(dir.path(), step);
  auto plan = plan_prune(dir.path(), {.last = 1, .every = 200}, false);
  BOOST_TEST(steps_of(plan->removed) == (std::vector<int64_t>{300, 100}), boost::test_tools::per_element());
  BOOST_TEST(steps_of(plan->kept) == (std::vector<int64_t>{500, 400, 200}), boost::test_tools::per_element());
  BOOST_TEST(steps_in(dir.path()).size() == 5u);  // only planned

  // The newest is damaged in a dataset, the next one by its size: neither counts as the one that stays.
  const Manifest newest = Checkpoint::open(step_folder(dir.path(), 500), CheckLevel::kSizes)->manifest();
  flip(step_folder(dir.path(), 500) + "/rank-0000.h5", static_cast<size_t>(newest.shards[0].parts[0].offset), 0);
  fs::resize_file(step_folder(dir.path(), 400) + "/rank-0001.h5", 100);
  plan = plan_prune(dir.path(), {.last = 1}, false);
  BOOST_TEST(plan->damaged.size() == 2u);
  BOOST_TEST(steps_of(plan->kept) == std::vector<int64_t>{300}, boost::test_tools::per_element());
  BOOST_REQUIRE(prune_checkpoints(dir.path(), *plan).is_ok());
  BOOST_TEST(steps_in(dir.path()) == (std::vector<int64_t>{500, 400, 300}), boost::test_tools::per_element());
  BOOST_TEST(test::read_bytes(dir / "latest") == "step-00000300\n");

  plan = plan_prune(dir.path(), {.last = 1}, true);
  BOOST_REQUIRE(prune_checkpoints(dir.path(), *plan).is_ok());
  BOOST_TEST(steps_in(dir.path()) == std::vector<int64_t>{300}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(pruning_removes_nothing_of_a_run_that_has_no_good_one) {
  test::TemporaryDirectory dir;
  save(dir.path(), 100);
  fs::remove(step_folder(dir.path(), 100) + "/rank-0000.h5");
  BOOST_TEST(exit_code_of(plan_prune(dir.path(), {.last = 1}, true).status().code()) == 4);
  save(dir.path(), 200, 1, "other");
  BOOST_TEST(plan_prune(dir.path(), {.last = 1}, false).is_ok());
  BOOST_TEST(steps_in(dir.path()).size() == 2u);
}

BOOST_AUTO_TEST_CASE(what_a_symbolic_link_holds_is_never_removed) {
  test::TemporaryDirectory dir;
  const std::string away = dir / "away", here = dir / "here";
  save(away, 250);
  for (int64_t step : {100, 200, 300, 400}) save(here, step);
  fs::create_directory_symlink("step-00000100", here + "/best");
  fs::create_directory_symlink(step_folder(away, 250), step_folder(here, 250));
  const auto plan = plan_prune(here, {.last = 1}, true);
  BOOST_TEST(steps_of(plan->removed) == (std::vector<int64_t>{300, 200}), boost::test_tools::per_element());
  BOOST_REQUIRE(prune_checkpoints(here, *plan).is_ok());
  BOOST_TEST(steps_in(here) == (std::vector<int64_t>{400, 250, 100}), boost::test_tools::per_element());
  BOOST_TEST(verify_checkpoint(here + "/best").empty());
  BOOST_TEST(verify_checkpoint(step_folder(away, 250)).empty());

  // A run prunes by the same rule, and damage does not lift it.
  fs::remove(step_folder(here, 100) + "/rank-0000.h5");
  save(here, 500);
  BOOST_REQUIRE(prune_checkpoints(here, *plan_prune(here, {.last = 1}, true)).is_ok());
  BOOST_TEST(steps_in(here) == (std::vector<int64_t>{500, 250, 100}), boost::test_tools::per_element());
  for (int rank : {0, 1}) save_rank(here, 600, rank, 1);
  CheckpointInfo info = Checkpoint::open(step_folder(here, 500), CheckLevel::kSizes)->manifest().info;
  info.step = 600;
  auto report = publish_checkpoint(here, info, {.last = 1});
  BOOST_TEST_REQUIRE(report.is_ok(), report.status().to_string());
  BOOST_TEST(steps_in(here) == (std::vector<int64_t>{600, 250, 100}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_copy_under_the_name_of_another_step_does_not_count_and_stays) {
  test::TemporaryDirectory dir;
  for (int64_t step : {100, 200, 300}) save(dir.path(), step);
  fs::copy(step_folder(dir.path(), 100), step_folder(dir.path(), 900), fs::copy_options::recursive);
  fs::create_directory_symlink("step-00000200", step_folder(dir.path(), 800));

  auto opened = Checkpoint::open(step_folder(dir.path(), 900) + "/", CheckLevel::kSizes);
  BOOST_TEST(is_misnamed(opened.status()));
  BOOST_TEST(contains(opened.status().message(), "step-00000900/: holds step 100, not 900 as its name says"),
             opened.status().message());
  auto found = find_checkpoint(dir.path(), "auto", CheckLevel::kChecksums);
  BOOST_REQUIRE(found.is_ok());
  BOOST_TEST(found->checkpoint->manifest().info.step == 300);
  BOOST_TEST(found->skipped.size() == 2u);

  const auto plan = plan_prune(dir.path(), {.last = 1}, true);
  BOOST_TEST(plan->misnamed.size() == 2u);
  BOOST_TEST(plan->damaged.empty());
  BOOST_REQUIRE(prune_checkpoints(dir.path(), *plan).is_ok());
  // 200 stays for the link that points to it.
  BOOST_TEST(steps_in(dir.path()) == (std::vector<int64_t>{900, 800, 300, 200}), boost::test_tools::per_element());
  fs::copy(step_folder(dir.path(), 300), dir / "a copy to keep", fs::copy_options::recursive);
  BOOST_TEST(Checkpoint::open(dir / "a copy to keep", CheckLevel::kChecksums).is_ok());
}
