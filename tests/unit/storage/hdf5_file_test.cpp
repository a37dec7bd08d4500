#include "framework/storage/hdf5_file.hpp"

#include <hdf5.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <numeric>
#include <thread>

#include "tests/support/contains.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace altiplano;
using namespace altiplano::test;

/// HDF5 1.10 loses one of its own blocks when it cannot write a file it closes (a_full_disk_is_a_status); read by
/// LeakSanitizer.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libhdf5_serial";
}

namespace {

std::vector<float> counted(size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

/// /group/x: f32 [8, 6] holding 0..47.
void write_example(const std::string& path, const DatasetOptions& options = {}) {
  auto file = Hdf5File::create(path);
  BOOST_REQUIRE_MESSAGE(file.is_ok(), file.status().to_string());
  BOOST_REQUIRE(file->create_dataset("/group/x", ElementType::kF32, {8, 6}, options).is_ok());
  BOOST_REQUIRE(file->write("/group/x", {0, 0}, {8, 6}, counted(48).data()).is_ok());
  BOOST_REQUIRE(file->close().is_ok());
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_element_type_comes_back_with_its_bits) {
  test::TemporaryDirectory dir;
  auto file = Hdf5File::create(dir / "a.h5");
  BOOST_REQUIRE(file.is_ok());
  std::string bits(6 * 8, '\0');
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<char>(i * 37 + 1);
  for (ElementType type : {ElementType::kF64, ElementType::kF32, ElementType::kBF16, ElementType::kI64,
                           ElementType::kI32, ElementType::kU32, ElementType::kU16, ElementType::kU8}) {
    std::string name = to_string(type);
    BOOST_REQUIRE(file->create_dataset(name, type, {6}).is_ok());
    BOOST_REQUIRE(file->write(name, {0}, {6}, bits.data()).is_ok());
  }
  BOOST_REQUIRE(file->close().is_ok());
  auto reader = Hdf5File::open(dir / "a.h5");
  BOOST_REQUIRE(reader.is_ok());
  std::vector<std::string> names = reader->dataset_names().value();
  BOOST_TEST(names.size() == 8u);
  for (const std::string& name : names) {
    DatasetInfo info = reader->info(name).value();
    BOOST_TEST("/" + std::string(to_string(info.type)) == name);
    std::string read(static_cast<size_t>(6 * size_of(info.type)), '\0');
    BOOST_REQUIRE(reader->read(name, {0}, {6}, read.data()).is_ok());
    BOOST_TEST(read == bits.substr(0, read.size()), name);
  }
}

BOOST_AUTO_TEST_CASE(a_box_is_written_and_read_alone) {
  test::TemporaryDirectory dir;
  write_example(dir / "a.h5");
  auto file = Hdf5File::open(dir / "a.h5");
  std::vector<float> box(6);
  BOOST_REQUIRE(file->read("/group/x", {2, 3}, {3, 2}, box.data()).is_ok());
  BOOST_TEST(box == (std::vector<float>{15, 16, 21, 22, 27, 28}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(scalars_and_empty_extents_are_datasets_too) {
  test::TemporaryDirectory dir;
  auto file = Hdf5File::create(dir / "a.h5");
  double value = 2.5;
  BOOST_REQUIRE(file->create_dataset("scalar", ElementType::kF64, {}).is_ok());
  BOOST_REQUIRE(file->write("scalar", {}, {}, &value).is_ok());
  BOOST_REQUIRE(file->create_dataset("empty", ElementType::kF32, {0, 4}).is_ok());
  BOOST_REQUIRE(file->write("empty", {0, 0}, {0, 4}, nullptr).is_ok());
  BOOST_REQUIRE(file->close().is_ok());
  auto reader = Hdf5File::open(dir / "a.h5");
  double read = 0;
  BOOST_REQUIRE(reader->read("scalar", {}, {}, &read).is_ok());
  BOOST_TEST(read == 2.5);
  BOOST_TEST((reader->info("empty").value().extents == Extents{0, 4}));
}

BOOST_AUTO_TEST_CASE(a_growable_dataset_grows_in_the_first_dim) {
  test::TemporaryDirectory dir;
  auto file = Hdf5File::create(dir / "a.h5");
  DatasetOptions options;
  options.chunk = {4};
  options.deflate = 4;
  options.is_growable = true;
  BOOST_REQUIRE(file->create_dataset("x", ElementType::kF32, {0}, options).is_ok());
  BOOST_REQUIRE(file->grow("x", 7).is_ok());
  BOOST_REQUIRE(file->write("x", {0}, {7}, counted(7).data()).is_ok());
  BOOST_TEST((file->info("x").value().extents == Extents{7}));
}

BOOST_AUTO_TEST_CASE(attributes_keep_text_integers_and_doubles) {
  test::TemporaryDirectory dir;
  auto file = Hdf5File::create(dir / "a.h5");
  BOOST_REQUIRE(file->set_attribute("/", "name", std::string("naïve 你好")).is_ok());
  BOOST_REQUIRE(file->set_attribute("/", "name", std::string("")).is_ok());
  BOOST_REQUIRE(file->set_attribute("/", "count", int64_t{1} << 40).is_ok());
  BOOST_REQUIRE(file->set_attribute("/", "rate", 0.1).is_ok());
  BOOST_TEST(file->string_attribute("/", "name").value() == "");
  BOOST_TEST(file->int_attribute("/", "count").value() == int64_t{1} << 40);
  BOOST_TEST(file->double_attribute("/", "rate").value() == 0.1);
  BOOST_TEST(!file->has_attribute("/", "other"));
  BOOST_TEST(contains(file->int_attribute("/", "other").status().message(), "attribute 'other' of '/'"));
}

BOOST_AUTO_TEST_CASE(a_box_outside_is_refused_with_both_boxes) {
  test::TemporaryDirectory dir;
  write_example(dir / "a.h5");
  auto file = Hdf5File::open(dir / "a.h5");
  float value = 0;
  std::string message = file->read("/group/x", {8, 0}, {1, 1}, &value).message();
  BOOST_TEST(contains(message, "'/group/x' of extents [0:8, 0:6] has no box [8:9, 0:1]"), message);
}

BOOST_AUTO_TEST_CASE(a_flipped_bit_in_a_chunk_is_found_and_names_file_and_dataset) {
  test::TemporaryDirectory dir;
  DatasetOptions options;
  options.chunk = {4, 6};
  write_example(dir / "a.h5", options);
  std::string bytes = test::read_bytes(dir / "a.h5");
  float marker = 30;  // in the second chunk
  size_t at = bytes.find(std::string(reinterpret_cast<char*>(&marker), 4));
  BOOST_REQUIRE(at != std::string::npos);
  test::flip_bit(dir / "a.h5", at);
  auto file = Hdf5File::open(dir / "a.h5");
  BOOST_REQUIRE(file.is_ok());
  std::vector<float> values(48);
  BOOST_TEST(file->read("/group/x", {0, 0}, {4, 6}, values.data()).is_ok());
  std::string message = file->read("/group/x", {0, 0}, {8, 6}, values.data()).message();
  BOOST_TEST(contains(message, "a.h5: dataset '/group/x' box [0:8, 0:6]: cannot be read"), message);
  BOOST_TEST(contains(message, "bits of the file have changed"), message);
}

BOOST_AUTO_TEST_CASE(a_truncated_file_is_explained) {
  test::TemporaryDirectory dir;
  write_example(dir / "a.h5");
  std::string bytes = test::read_bytes(dir / "a.h5");
  test::write_bytes(dir / "a.h5", bytes.substr(0, bytes.size() - 100));
  std::string message = Hdf5File::open(dir / "a.h5").status().message();
  BOOST_TEST(contains(message, "shorter than its own header says"), message);
}

BOOST_AUTO_TEST_CASE(missing_and_foreign_files_are_told_apart) {
  test::TemporaryDirectory dir;
  test::write_bytes(dir / "text", "In the beginning");
  BOOST_TEST(contains(Hdf5File::open(dir / "none.h5").status().message(), "there is no such file"));
  BOOST_TEST(contains(Hdf5File::open(dir / "text").status().message(), "not an HDF5 file"));
  write_example(dir / "a.h5");
  std::string message = Hdf5File::open(dir / "a.h5")->info("/group/y").status().message();
  BOOST_TEST(contains(message, "a.h5: dataset '/group/y': cannot be opened"), message);
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_a_status) {
  test::TemporaryDirectory dir;
  std::filesystem::create_symlink("/dev/full", dir / "full.h5");
  auto file = Hdf5File::create(dir / "full.h5");
  Status status = file ? Status::ok() : file.status();
  if (file) {
    status = file->create_dataset("x", ElementType::kF32, {1024});
    if (status) status = file->write("x", {0}, {1024}, counted(1024).data());
    if (status) status = file->close();
  }
  BOOST_TEST(contains(status.message(), "full.h5: cannot be written: No space left on device"), status.message());
}

BOOST_AUTO_TEST_CASE(a_virtual_dataset_shows_parts_of_other_files_as_one) {
  test::TemporaryDirectory dir;
  write_example(dir / "a.h5");
  write_example(dir / "b.h5");
  auto file = Hdf5File::create(dir / "index.h5");
  BOOST_REQUIRE(
      file->create_virtual_dataset("/x", ElementType::kF32, {8, 12},
                                   {{"a.h5", "/group/x", {0, 0}, {8, 6}}, {"b.h5", "/group/x", {0, 6}, {8, 6}}})
          .is_ok());
  BOOST_REQUIRE(file->close().is_ok());
  auto reader = Hdf5File::open(dir / "index.h5");
  std::vector<float> row(12);
  BOOST_REQUIRE(reader->read("/x", {1, 0}, {1, 12}, row.data()).is_ok());
  BOOST_TEST(row == (std::vector<float>{6, 7, 8, 9, 10, 11, 6, 7, 8, 9, 10, 11}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(threads_may_read_one_file_at_the_same_time) {
  test::TemporaryDirectory dir;
  write_example(dir / "a.h5");
  auto file = Hdf5File::open(dir / "a.h5");
  std::vector<std::thread> threads;
  std::vector<int> good(4);
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        float value = -1;
        bool is_read = file->read("/group/x", {static_cast<int64_t>(t), 0}, {1, 1}, &value).is_ok();
        good[t] += is_read && value == static_cast<float>(6 * t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(good == (std::vector<int>{50, 50, 50, 50}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_versions_of_headers_and_library_are_known) {
  Hdf5Versions versions = hdf5_versions();
  BOOST_TEST(std::count(versions.headers.begin(), versions.headers.end(), '.') == 2);
  BOOST_TEST(std::count(versions.library.begin(), versions.library.end(), '.') == 2);
}

BOOST_AUTO_TEST_CASE(a_file_whose_writer_was_killed_is_explained) {
  test::TemporaryDirectory dir;
  const std::string path = dir / "a.h5";
  const pid_t child = fork();
  if (child == 0) {  // as h5py writes with libver="latest": the file says that it is open for writing
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  BOOST_REQUIRE(WIFSIGNALED(status));
  const std::string message = Hdf5File::open(path).status().message();
  BOOST_TEST(
      contains(message, "a.h5: cannot be opened: a writer died while it had the file open; write it again (HDF5: "),
      message);
}
