#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "framework/checkpoint/layout.hpp"
#include "framework/checkpoint/restore.hpp"
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

/// A model of four tensors; element i of tensor t is 1000 * t + i.
struct Tensor {
  std::string name;
  Shape shape;
  DType dtype;
};
const std::vector<Tensor> kTensors = {{"wte", {257, 6}, DType::kF32},
                                      {"block.0.w", {7, 3, 5}, DType::kF64},
                                      {"block.0.w.m", {7, 3, 5}, DType::kBF16},
                                      {"step", {}, DType::kI64}};

/// A box in memory with its bytes.
struct Held {
  Tensor tensor;
  Box box;
  std::vector<char> bytes;
  bool operator==(const Held& other) const { return box == other.box && bytes == other.bytes; }
};

int64_t global_index(const Shape& shape, const Box& box, int64_t local) {
  int64_t index = 0, stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    index += (local % box.extents[d] + box.origin[d]) * stride;
    local /= box.extents[d];
    stride *= shape[d];
  }
  return index;
}

void put(Held& held, int64_t local, int64_t value) {
  char* at = held.bytes.data() + local * size_of(held.tensor.dtype);
  auto as = [&](auto number) { std::copy_n(reinterpret_cast<char*>(&number), sizeof number, at); };
  switch (held.tensor.dtype) {
    case DType::kF64:
      return as(static_cast<double>(value));
    case DType::kF32:
      return as(static_cast<float>(value));
    case DType::kBF16:
      return as(static_cast<uint16_t>(value));
    case DType::kI32:
      return as(static_cast<int32_t>(value));
    case DType::kI64:
      return as(value);
  }
}

Held held_part(size_t t, const Box& box) {
  Held held{kTensors[t], box, std::vector<char>(static_cast<size_t>(box.num_elements() * size_of(kTensors[t].dtype)))};
  for (int64_t i = 0; i < box.num_elements(); ++i) {
    put(held, i, 1000 * static_cast<int64_t>(t) + global_index(kTensors[t].shape, box, i));
  }
  return held;
}

/// Part `index` of `degree` along one dim, in blocks of ceil(n / degree), the last ones shorter or empty.
void split_dim(Box& box, size_t dim, int degree, int index) {
  int64_t n = box.extents[dim], block = (n + degree - 1) / degree, begin = std::min(n, block * index);
  box.origin[dim] += begin;
  box.extents[dim] = std::min(n, begin + block) - begin;
}

/// What rank (i, j) of rows x columns owns: every tensor split in dim 0 by rows and in dim 1 by columns; scalars belong
/// to rank 0.
std::vector<Held> owned_by(int rows, int columns, int rank) {
  std::vector<Held> parts;
  for (size_t t = 0; t < kTensors.size(); ++t) {
    Box box = Box::whole(kTensors[t].shape);
    if (box.extents.empty() && rank != 0) continue;
    if (!box.extents.empty()) {
      split_dim(box, 0, rows, rank / columns);
      split_dim(box, 1, columns, rank % columns);
    }
    parts.push_back(held_part(t, box));
  }
  return parts;
}

std::vector<TensorPart> as_parts(const std::vector<Held>& held) {
  std::vector<TensorPart> parts;
  for (const Held& h : held)
    parts.push_back({h.tensor.name, h.tensor.dtype, h.tensor.shape, h.box, h.bytes.data(), "parameter"});
  return parts;
}

CheckpointInfo info_of(int64_t step, int world_size, const std::string& run_id = "run-a") {
  CheckpointInfo info;
  info.step = step;
  info.samples_consumed = step * 8;
  info.world_size = world_size;
  info.run_id = run_id;
  info.model_fingerprint = "00000000000000aa";
  info.architecture = {{"hidden_size", "48"}, {"vocab_size", "257"}};
  info.plan = "stages: []\n";
  info.state = R"({"lr":0.001})";
  return info;
}

Result<PublishReport> save(const std::string& dir, const CheckpointInfo& info, int rows, int columns,
                           KeepRule keep = {}) {
  for (int rank = 0; rank < rows * columns; ++rank) {
    Status status = save_shard(dir, info.step, rank, as_parts(owned_by(rows, columns, rank)), info.attempt);
    BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
  }
  return publish_checkpoint(dir, info, keep);
}

void save_ok(const std::string& dir, const CheckpointInfo& info, int rows = 2, int columns = 2, KeepRule keep = {}) {
  auto report = save(dir, info, rows, columns, keep);
  BOOST_REQUIRE_MESSAGE(report.is_ok(), report.status().to_string());
}

/// Restores the boxes of rank `rank` of rows x columns into memory full of 0x55.
std::vector<Held> restored(const Checkpoint& checkpoint, int rows, int columns, int rank) {
  std::vector<Held> held = owned_by(rows, columns, rank);
  std::vector<TensorTarget> targets;
  for (Held& h : held) {
    std::ranges::fill(h.bytes, 0x55);
    targets.push_back({h.tensor.name, h.tensor.dtype, h.tensor.shape, h.box, h.bytes.data()});
  }
  Status status = checkpoint.restore(targets);
  BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
  return held;
}

void check_restores_as(const std::string& path, int rows, int columns) {
  auto checkpoint = Checkpoint::open(path, CheckLevel::kChecksums);
  BOOST_REQUIRE_MESSAGE(checkpoint.is_ok(), checkpoint.status().to_string());
  for (int rank = 0; rank < rows * columns; ++rank) {
    BOOST_TEST((restored(*checkpoint, rows, columns, rank) == owned_by(rows, columns, rank)),
               rows << "x" << columns << " rank " << rank);
  }
}

#define CHECK_CONTAINS(text, part) BOOST_TEST(contains(text, part), text)

}  // namespace

BOOST_AUTO_TEST_CASE(any_layout_restores_from_any_other) {
  test::TemporaryDirectory dir;
  const std::pair<int, int> layouts[] = {{2, 2}, {3, 1}, {1, 1}, {1, 3}, {4, 2}};
  int64_t step = 1;
  for (auto [rows, columns] : layouts) {
    save_ok(dir.path(), info_of(step, rows * columns), rows, columns);
    for (auto [new_rows, new_columns] : layouts)
      check_restores_as(step_folder(dir.path(), step), new_rows, new_columns);
    ++step;
  }
}

BOOST_AUTO_TEST_CASE(two_by_two_goes_to_three_goes_to_one) {
  test::TemporaryDirectory dir;
  save_ok(dir.path(), info_of(10, 4), 2, 2);
  auto first = Checkpoint::open(step_folder(dir.path(), 10), CheckLevel::kChecksums).value();
  for (int rank = 0; rank < 3; ++rank) {
    std::vector<Held> held = restored(first, 3, 1, rank);
    BOOST_REQUIRE(save_shard(dir.path(), 20, rank, as_parts(held)).is_ok());
  }
  BOOST_REQUIRE(publish_checkpoint(dir.path(), info_of(20, 3), {}).is_ok());
  check_restores_as(step_folder(dir.path(), 20), 1, 1);
}

BOOST_AUTO_TEST_CASE(the_manifest_keeps_what_the_run_knew) {
  test::TemporaryDirectory dir;
  save_ok(dir.path(), info_of(120, 4));
  BOOST_TEST(test::read_bytes(dir / "latest") == "step-00000120\n");
  auto found = find_checkpoint(dir.path(), "auto", CheckLevel::kChecksums);
  BOOST_REQUIRE(found.is_ok());
  const CheckpointInfo& info = found->checkpoint->manifest().info;
  BOOST_TEST(info.step == 120);
  BOOST_TEST(info.samples_consumed == 960);
  BOOST_TEST(info.world_size == 4);
  BOOST_TEST(info.run_id == "run-a");
  BOOST_TEST(info.plan == "stages: []\n");
  BOOST_TEST(info.state == R"({"lr":0.001})");
  BOOST_TEST(verify_checkpoint(found->checkpoint->path()).empty());
  BOOST_TEST(std::distance(fs::directory_iterator(found->checkpoint->path()), {}) == 6);  // 4 shards, index, manifest
}

BOOST_AUTO_TEST_CASE(a_flipped_bit_anywhere_is_found) {
  test::TemporaryDirectory dir;
  save_ok(dir.path(), info_of(1, 2), 1, 2);
  std::string path = step_folder(dir.path(), 1);
  for (const char* name : {"rank-0000.h5", "rank-0001.h5", "manifest.json"}) {
    std::string file = path + "/" + name;
    size_t size = test::read_bytes(file).size();
    for (size_t i = 0; i < 25; ++i) {
      size_t at = i * (size - 2) / 24;
      test::flip_bit(file, at);
      auto opened = Checkpoint::open(path, CheckLevel::kChecksums);
      BOOST_TEST(!opened.is_ok(), name << " byte " << at);
      CHECK_CONTAINS(opened.status().message(), name);
      BOOST_TEST(!verify_checkpoint(path).empty());
      test::flip_bit(file, at);
    }
  }
  BOOST_TEST(verify_checkpoint(path).empty());
  test::flip_bit(path + "/index.h5", 900);
  BOOST_REQUIRE(verify_checkpoint(path).size() == 1u);
  CHECK_CONTAINS(verify_checkpoint(path)[0], "index.h5");
}

BOOST_AUTO_TEST_CASE(damage_in_a_dataset_names_the_dataset) {
  test::TemporaryDirectory dir;
  save_ok(dir.path(), info_of(1, 2), 1, 2);
  std::string path = step_folder(dir.path(), 1), file = path + "/rank-0001.h5";
  double marker = 1000 + 25;  // an element of block.0.w with 2 in dim 1
  size_t at = test::read_bytes(file).find(std::string(reinterpret_cast<char*>(&marker), 8));
  BOOST_REQUIRE(at != std::string::npos);
  test::flip_bit(file, at);
  std::string message = Checkpoint::open(path, CheckLevel::kChecksums).status().message();
  CHECK_CONTAINS(message, "rank-0001.h5");
  CHECK_CONTAINS(message, "dataset '/block.0.w/0_2_0' (box [0:7, 2:3, 0:5] of block.0.w)");
  // Opened by sizes only, the part's own checksum still finds it.
  auto checkpoint = Checkpoint::open(path, CheckLevel::kSizes);
  BOOST_REQUIRE(checkpoint.is_ok());
  Held held = held_part(1, {{0, 2, 0}, {7, 1, 5}});
  TensorTarget target{"block.0.w", DType::kF64, {7, 3, 5}, held.box, held.bytes.data()};
  CHECK_CONTAINS(checkpoint->restore({&target, 1}).message(), "dataset '/block.0.w/0_2_0'");
}

BOOST_AUTO_TEST_CASE(truncated_and_missing_shards_are_named_with_sizes) {
  test::TemporaryDirectory dir;
  save_ok(dir.path(), info_of(1, 2), 1, 2);
  std::string path = step_folder(dir.path(), 1), file = path + "/rank-0001.h5", bytes = test::read_bytes(file);
  for (size_t size : {size_t{0}, bytes.size() / 2, bytes.size() - 1}) {
    test::write_bytes(file, bytes.substr(0, size));
    std::string message = Checkpoint::open(path, CheckLevel::kSizes).status().message();
    CHECK_CONTAINS(message, fmt::format("rank-0001.h5: has {} bytes, expected {}: cut off", size, bytes.size()));
  }
  fs::remove(file);
  CHECK_CONTAINS(Checkpoint::open(path, CheckLevel::kSizes).status().message(), "rank-0001.h5: missing");
  std::string manifest = test::read_bytes(path + "/manifest.json");
  for (size_t size = 0; size < manifest.size() - 2; size += 97) {
    test::write_bytes(path + "/manifest.json", manifest.substr(0, size));
    CHECK_CONTAINS(Checkpoint::open(path, CheckLevel::kSizes).status().message(), "manifest.json");
  }
}

BOOST_AUTO_TEST_CASE(the_newest_complete_checkpoint_wins_and_damaged_ones_are_named) {
  test::TemporaryDirectory dir;
  for (int64_t step : {900, 9000, 10000}) save_ok(dir.path(), info_of(step, 4));
  fs::remove(step_folder(dir.path(), 10000) + "/manifest.json");
  test::flip_bit(step_folder(dir.path(), 9000) + "/rank-0002.h5", 3000);
  auto found = find_checkpoint(dir.path(), "auto", CheckLevel::kChecksums);
  BOOST_REQUIRE(found.is_ok());
  BOOST_TEST(found->checkpoint->manifest().info.step == 900);
  BOOST_REQUIRE(found->skipped.size() == 2u);
  CHECK_CONTAINS(found->skipped[0].reason, "step-00010000: has no manifest");
  CHECK_CONTAINS(found->skipped[1].reason, "step-00009000/rank-0002.h5");
}

BOOST_AUTO_TEST_CASE(auto_starts_afresh_only_where_there_is_no_checkpoint_at_all) {
  test::TemporaryDirectory dir;
  auto fresh = find_checkpoint(dir / "none", "auto", CheckLevel::kSizes);
  BOOST_REQUIRE(fresh.is_ok());
  BOOST_TEST(!fresh->checkpoint.has_value());
  BOOST_REQUIRE(save_shard(dir.path(), 5, 0, as_parts(owned_by(1, 1, 0))).is_ok());  // never published
  BOOST_TEST(!find_checkpoint(dir.path(), "auto", CheckLevel::kSizes)->checkpoint.has_value());

  save_ok(dir.path(), info_of(7, 1), 1, 1);
  test::flip_bit(step_folder(dir.path(), 7) + "/rank-0000.h5", 100);
  Status damaged = find_checkpoint(dir.path(), "auto", CheckLevel::kChecksums).status();
  BOOST_TEST(exit_code_of(damaged.code()) == 4);
  CHECK_CONTAINS(damaged.message(), "its only checkpoint cannot be used");
  CHECK_CONTAINS(damaged.message(), "step-00000007/rank-0000.h5");
  BOOST_TEST(!find_checkpoint(dir.path(), "none", CheckLevel::kChecksums)->checkpoint.has_value());
}

BOOST_AUTO_TEST_CASE(must_and_a_path_require_a_checkpoint) {
  test::TemporaryDirectory dir;
  BOOST_TEST(exit_code_of(find_checkpoint(dir.path(), "must", CheckLevel::kSizes).status().code()) == 4);
  Status missing = find_checkpoint(dir.path(), dir / "other", CheckLevel::kSizes).status();
  BOOST_TEST(exit_code_of(missing.code()) == 4);
  CHECK_CONTAINS(missing.message(), "there is no such folder");
  save_ok(dir.path(), info_of(3, 4));
  save_ok(dir.path(), info_of(4, 4));
  BOOST_TEST(find_checkpoint("unused", dir.path(), CheckLevel::kSizes)->checkpoint->manifest().info.step == 4);
  std::string third = step_folder(dir.path(), 3);
  BOOST_TEST(find_checkpoint("unused", third, CheckLevel::kSizes)->checkpoint->manifest().info.step == 3);
}

BOOST_AUTO_TEST_CASE(pruning_goes_by_number_and_spares_the_new_one_and_other_runs) {
  test::TemporaryDirectory dir;
  save_ok(dir.path(), info_of(800, 4, "run-b"));
  for (int64_t step : {900, 9000, 10000}) save_ok(dir.path(), info_of(step, 4), 2, 2, {2});
  BOOST_TEST(steps_in(dir.path()) == (std::vector<int64_t>{10000, 9000, 800}), boost::test_tools::per_element());
  // A run that went back to an earlier step keeps what it has just written.
  CheckpointInfo again = info_of(500, 4);
  again.attempt = 2;
  auto report = save(dir.path(), again, 2, 2, {1});
  BOOST_REQUIRE(report.is_ok());
  BOOST_TEST(steps_in(dir.path()) == (std::vector<int64_t>{800, 500}), boost::test_tools::per_element());
  BOOST_TEST(report->pruned.size() == 2u);
  BOOST_TEST(report->kept == std::vector<int64_t>{500}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_step_that_is_there_is_replaced_only_within_the_run) {
  test::TemporaryDirectory dir;
  save_ok(dir.path(), info_of(10, 4));
  save_ok(dir.path(), info_of(10, 1), 1, 1);
  check_restores_as(step_folder(dir.path(), 10), 2, 2);
  Status other = save(dir.path(), info_of(10, 4, "run-b"), 2, 2).status();
  CHECK_CONTAINS(other.message(), "is a checkpoint of run run-a, this is run run-b");
  CHECK_CONTAINS(check_no_other_run(dir.path(), "run-b").message(), "step-00000010 of run run-a");
  BOOST_TEST(check_no_other_run(dir.path(), "run-a").is_ok());
}

BOOST_AUTO_TEST_CASE(shards_that_do_not_make_whole_tensors_are_not_published) {
  test::TemporaryDirectory dir;
  auto check = [&](std::vector<Held> first, std::vector<Held> second, const std::string& expected) {
    BOOST_REQUIRE(save_shard(dir.path(), 1, 0, as_parts(first)).is_ok());
    BOOST_REQUIRE(save_shard(dir.path(), 1, 1, as_parts(second)).is_ok());
    CHECK_CONTAINS(publish_checkpoint(dir.path(), info_of(1, 2), {}).status().message(), expected);
  };
  Held upper = held_part(0, {{0, 0}, {129, 6}}), lower = held_part(0, {{129, 0}, {128, 6}}),
       less = held_part(0, {{130, 0}, {127, 6}});
  check({upper}, {less}, "tensor wte [257,6]: the shards hold 1536 of its 1542 elements");
  check({upper}, {upper}, "tensor wte: box [0:129, 0:6] is both in rank-0000.h5 and in rank-0001.h5");
  lower.tensor.dtype = DType::kI32;
  check({upper}, {lower}, "tensor wte is f32 [257,6] in rank-0000.h5 but i32 [257,6] in rank-0001.h5");
  CHECK_CONTAINS(publish_checkpoint(dir.path(), info_of(1, 3), {}).status().message(), "rank-0002.json");
  BOOST_TEST(steps_in(dir.path()).empty());
}

BOOST_AUTO_TEST_CASE(wrong_targets_are_refused_before_anything_is_read) {
  test::TemporaryDirectory dir;
  save_ok(dir.path(), info_of(1, 4));
  auto checkpoint = Checkpoint::open(step_folder(dir.path(), 1), CheckLevel::kSizes).value();
  std::vector<char> memory(10000, 'x');
  Box whole = Box::whole({257, 6});
  auto message = [&](std::vector<TensorTarget> targets) { return checkpoint.restore(targets).message(); };
  TensorTarget good{"wte", DType::kF32, {257, 6}, whole, memory.data()};
  CHECK_CONTAINS(message({good, {"wtf", DType::kF32, {257, 6}, whole, memory.data()}}),
                 "has no tensor wtf; nearest to the first: wte");
  CHECK_CONTAINS(message({good, {"wte", DType::kF64, {257, 6}, whole, memory.data()}}),
                 "wte is f32 [257,6] there, f64 [257,6] is wanted");
  BOOST_TEST(std::ranges::count(memory, 'x') == 10000);
}

BOOST_AUTO_TEST_CASE(another_model_is_refused_with_the_fields_that_differ) {
  CheckpointInfo saved = info_of(5, 1);
  BOOST_TEST(check_architecture(saved, "00000000000000aa", {}).is_ok());
  Status status =
      check_architecture(saved, "00000000000000bb", {{"hidden_size", "64"}, {"vocab_size", "257"}, {"tied", "true"}});
  CHECK_CONTAINS(status.message(),
                 "\n  model.hidden_size: got 64, expected 48\n  model.tied: got true, expected nothing");
  BOOST_TEST(!contains(status.message(), "vocab_size"));
}

BOOST_AUTO_TEST_CASE(another_format_version_names_both_programs) {
  test::TemporaryDirectory dir;
  save_ok(dir.path(), info_of(1, 4));
  std::string file = step_folder(dir.path(), 1) + "/manifest.json", text = test::read_bytes(file);
  size_t at = text.find("\"format_version\": 1");
  BOOST_REQUIRE(at != std::string::npos);
  test::write_bytes(file, text.replace(at, 19, "\"format_version\": 2"));
  std::string message = Checkpoint::open(step_folder(dir.path(), 1), CheckLevel::kSizes).status().message();
  CHECK_CONTAINS(message, "checkpoint format 2 written by Altiplano 0.1.0, this is 0.1.0, which reads format 1");
}

BOOST_AUTO_TEST_CASE(a_full_disk_leaves_the_older_checkpoint_and_no_half_shard) {
  test::TemporaryDirectory dir;
  save_ok(dir.path(), info_of(1, 1), 1, 1);
  // Writing the shard's record fails with ENOSPC.
  fs::create_directories(temporary_folder(dir.path(), 2));
  std::string record = temporary_folder(dir.path(), 2) + "/" + shard_record_name(0);
  fs::create_symlink("/dev/full", temporary_name(record));
  Status status = save_shard(dir.path(), 2, 0, as_parts(owned_by(1, 1, 0)));
  CHECK_CONTAINS(status.to_string(), "No space left on device");
  CHECK_CONTAINS(status.to_string(), "while saving step 2 of rank 0");
  BOOST_TEST(!fs::exists(temporary_folder(dir.path(), 2) + "/rank-0000.h5"));
  discard_unfinished(dir.path(), 2);
  BOOST_TEST(list_leftovers(dir.path()).empty());
  check_restores_as(step_folder(dir.path(), 1), 1, 1);
}

BOOST_AUTO_TEST_CASE(leftovers_of_dead_runs_are_removed_and_named) {
  test::TemporaryDirectory dir;
  BOOST_REQUIRE(save_shard(dir.path(), 30, 0, as_parts(owned_by(1, 1, 0))).is_ok());
  std::vector<std::string> removed = remove_unfinished(dir.path());
  BOOST_TEST(removed == std::vector<std::string>{temporary_folder(dir.path(), 30)}, boost::test_tools::per_element());
  BOOST_TEST(fs::is_empty(dir.path()));
}

BOOST_AUTO_TEST_CASE(a_run_killed_at_any_instant_of_its_saves_leaves_a_complete_checkpoint) {
  test::TemporaryDirectory dir;
  std::mt19937 random(7);
  save_ok(dir.path(), info_of(1, 2), 1, 2);
  int64_t last = 1;
  for (int kill = 0; kill < 12; ++kill) {
    pid_t child = ::fork();
    if (child == 0) {
      for (int64_t step = last + 1;; ++step) {
        for (int rank = 0; rank < 2; ++rank) {
          if (!save_shard(dir.path(), step, rank, as_parts(owned_by(1, 2, rank)))) ::_exit(1);
        }
        if (!publish_checkpoint(dir.path(), info_of(step, 2), {2})) ::_exit(1);
      }
    }
    ::usleep(static_cast<useconds_t>(random() % 150000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    BOOST_REQUIRE(WIFSIGNALED(status));
    auto found = find_checkpoint(dir.path(), "must", CheckLevel::kChecksums);
    BOOST_REQUIRE_MESSAGE(found.is_ok(), found.status().to_string());
    BOOST_TEST(found->skipped.empty());
    BOOST_TEST(found->checkpoint->manifest().info.step >= last);
    last = found->checkpoint->manifest().info.step;
    check_restores_as(found->checkpoint->path(), 2, 1);
  }
  remove_unfinished(dir.path());
  for (const auto& entry : fs::directory_iterator(dir.path())) {
    std::string name = entry.path().filename();
    BOOST_TEST((name.starts_with("step-") || name.starts_with("latest")), name);
  }
}

BOOST_AUTO_TEST_CASE(a_checkpoint_of_format_1_still_loads) {
  std::string path = ALTIPLANO_SOURCE_DIR "/tests/fixtures/checkpoint_v1";
  BOOST_TEST(verify_checkpoint(step_folder(path, 120)).empty());
  check_restores_as(step_folder(path, 120), 3, 1);
  auto found = find_checkpoint(path, "must", CheckLevel::kChecksums);
  BOOST_REQUIRE(found.is_ok());
  BOOST_TEST(found->checkpoint->manifest().info.samples_consumed == 960);
  BOOST_TEST(found->checkpoint->manifest().info.architecture.at("vocab_size") == "257");
}

BOOST_AUTO_TEST_CASE(the_index_shows_whole_tensors_to_other_programs) {
  test::TemporaryDirectory dir;
  save_ok(dir.path(), info_of(1, 4));
  auto index = Hdf5File::open(step_folder(dir.path(), 1) + "/index.h5");
  BOOST_REQUIRE(index.is_ok());
  for (size_t t = 0; t < kTensors.size(); ++t) {
    Held whole = held_part(t, Box::whole(kTensors[t].shape)), read = whole;
    std::ranges::fill(read.bytes, 0);
    Status status = index->read("/" + kTensors[t].name, whole.box.origin, whole.box.extents, read.bytes.data());
    BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
    BOOST_TEST((read == whole), kTensors[t].name);
  }
  // From another working directory: the shards are found beside the index.
  auto dump =
      test::run_command("cd / && h5dump -d /block.0.w -s 0,1,0 -c 1,1,5 " + step_folder(dir.path(), 1) + "/index.h5");
  if (dump.exit_code == 127) {
    BOOST_TEST_MESSAGE("skipped: h5dump (package hdf5-tools) is not installed");
    return;
  }
  CHECK_CONTAINS(dump.output, "1005, 1006, 1007, 1008, 1009");
}

BOOST_AUTO_TEST_CASE(empty_and_zero_sized_checkpoints_are_legal) {
  test::TemporaryDirectory dir;
  BOOST_REQUIRE(save_shard(dir.path(), 1, 0, {}).is_ok());
  BOOST_REQUIRE(publish_checkpoint(dir.path(), info_of(1, 1), {}).is_ok());
  BOOST_TEST(verify_checkpoint(step_folder(dir.path(), 1)).empty());
}
