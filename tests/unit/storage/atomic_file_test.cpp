#include "framework/storage/atomic_file.hpp"

#include "framework/storage/checksum.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace altiplano;
namespace fs = std::filesystem;

BOOST_AUTO_TEST_CASE(a_file_without_commit_leaves_nothing_behind) {
  test::TemporaryDirectory dir;
  {
    auto file = AtomicFile::create(dir / "a");
    BOOST_REQUIRE(file.is_ok());
    test::write_bytes(file->temporary_path(), "half");
  }
  BOOST_TEST(fs::is_empty(dir.path()));
}

BOOST_AUTO_TEST_CASE(a_commit_replaces_the_old_content_whole) {
  test::TemporaryDirectory dir;
  BOOST_REQUIRE(write_file_atomically(dir / "a", "old").is_ok());
  auto file = AtomicFile::create(dir / "a");
  BOOST_REQUIRE(file.is_ok());
  test::write_bytes(file->temporary_path(), "new");
  BOOST_TEST(read_file(dir / "a").value() == "old");
  BOOST_REQUIRE(file->commit().is_ok());
  BOOST_TEST(read_file(dir / "a").value() == "new");
  BOOST_TEST(std::distance(fs::directory_iterator(dir.path()), {}) == 1);
}

BOOST_AUTO_TEST_CASE(a_missing_directory_is_named_with_the_reason) {
  Status status = write_file_atomically("/no/such/folder/a", "text");
  BOOST_TEST(status.message().find("/no/such/folder/a") != std::string::npos, status.message());
  BOOST_TEST(status.message().find("No such file or directory") != std::string::npos, status.message());
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_reported_and_the_old_content_stays) {
  // /dev/full fails every write with ENOSPC; the temporary name beside it cannot be made, so write through a link.
  test::TemporaryDirectory dir;
  BOOST_REQUIRE(write_file_atomically(dir / "a", "old").is_ok());
  fs::create_symlink("/dev/full", dir / ("a.tmp-" + std::to_string(::getpid())));
  Status status = write_file_atomically(dir / "a", "new");
  BOOST_TEST(status.message().find("No space left on device") != std::string::npos, status.message());
  BOOST_TEST(read_file(dir / "a").value() == "old");
}

BOOST_AUTO_TEST_CASE(a_directory_is_published_only_where_nothing_is) {
  test::TemporaryDirectory dir;
  fs::create_directory(dir / "from");
  test::write_bytes(dir / "from/x", "1");
  BOOST_REQUIRE(publish_directory(dir / "from", dir / "to").is_ok());
  BOOST_TEST(test::read_bytes(dir / "to/x") == "1");
  fs::create_directory(dir / "from");
  Status again = publish_directory(dir / "from", dir / "to");
  BOOST_TEST(again.message().find("exists already") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_digest_of_a_file_is_the_checksum_of_its_bytes) {
  test::TemporaryDirectory dir;
  std::string bytes(3 * 1024 * 1024 + 17, 'x');
  test::write_bytes(dir / "a", bytes);
  FileDigest digest = digest_file(dir / "a").value();
  BOOST_TEST(digest.bytes == static_cast<int64_t>(bytes.size()));
  BOOST_TEST(digest.checksum == checksum(bytes.data(), bytes.size()));
  test::flip_bit(dir / "a", 2 * 1024 * 1024);
  BOOST_TEST(digest_file(dir / "a").value().checksum != digest.checksum);
}

BOOST_AUTO_TEST_CASE(checksums_print_and_parse) {
  BOOST_TEST(checksum_text(0xC0FFEE) == "0000000000c0ffee");
  BOOST_TEST(checksum_from_text("0000000000c0ffee").value() == 0xC0FFEEu);
  BOOST_TEST(!checksum_from_text("c0ffee").has_value());
  BOOST_TEST(!checksum_from_text("0000000000c0ffeg").has_value());
  // The published value of XXH3-64 for no bytes: the files stay readable by other programs.
  BOOST_TEST(checksum_text(checksum(nullptr, 0)) == "2d06800538d394c2");
}
