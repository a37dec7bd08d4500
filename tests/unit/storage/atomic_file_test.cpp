#include "framework/storage/atomic_file.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "framework/storage/checksum.hpp"
#include "framework/storage/removed_on_signal.hpp"
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
  fs::create_symlink("/dev/full", temporary_name(dir / "a"));
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

BOOST_AUTO_TEST_CASE(a_path_that_a_person_named_and_that_cannot_be_written_is_their_mistake) {
  test::TemporaryDirectory dir;
  test::write_bytes(dir / "file", "x");
  const std::pair<std::string, std::string> wrong[] = {{"/no/such/folder/a", "No such file or directory"},
                                                       {dir / "file/a", "Not a directory"},
                                                       {"/proc/a", "No such file or directory"},
                                                       {dir / std::string(300, 'n'), "File name too long"}};
  for (const auto& [path, why] : wrong) {
    const Status status = write_named_file(path, "text");
    BOOST_TEST(exit_code_of(status.code()) == 2, path);
    BOOST_TEST(status.message() == path + ": cannot be written: " + why);
    BOOST_TEST(exit_code_of(write_file_atomically(path, "text").code()) == 1, path);
  }
  fs::create_symlink("/dev/full", temporary_name(dir / "a"));
  BOOST_TEST(exit_code_of(write_named_file(dir / "a", "new").code()) == 1);  // a full disk is nobody's mistake
}

BOOST_AUTO_TEST_CASE(the_file_behind_a_symbolic_link_is_replaced_and_the_link_stays) {
  test::TemporaryDirectory dir;
  fs::create_directory(dir / "elsewhere");
  test::write_bytes(dir / "elsewhere/a", "old");
  fs::create_symlink("elsewhere/a", dir / "link");
  BOOST_REQUIRE(write_named_file(dir / "link", "new").is_ok());
  BOOST_TEST(fs::is_symlink(dir / "link"));
  BOOST_TEST(test::read_bytes(dir / "elsewhere/a") == "new");
}

BOOST_AUTO_TEST_CASE(what_killed_writers_of_a_named_file_have_left_is_removed_and_nothing_else) {
  test::TemporaryDirectory dir;
  const pid_t child = ::fork();
  if (child == 0) {
    auto file = AtomicFile::create_named(dir / "a");
    auto other = AtomicFile::create_named(dir / "ab");
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  auto living = AtomicFile::create(dir / "a");
  const std::string elsewhere = dir / ("a.tmp-00000000-" + std::to_string(child));  // of another host
  test::write_bytes(elsewhere, "x");
  auto count = [&] { return std::distance(fs::directory_iterator(dir.path()), {}); };
  BOOST_TEST(count() == 4);
  auto file = AtomicFile::create_named(dir / "a");
  BOOST_TEST(count() == 3);
  BOOST_TEST(fs::exists(temporary_name(dir / "a")));
  BOOST_TEST(fs::exists(elsewhere));
}

BOOST_AUTO_TEST_CASE(a_signal_that_ends_the_process_removes_the_file_first) {
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    test::TemporaryDirectory dir;
    test::write_bytes(dir / "a", "half");
    test::write_bytes(dir / "b", "whole");
    const pid_t child = ::fork();
    if (child == 0) {
      for (int each : {SIGINT, SIGTERM, SIGHUP}) ::signal(each, SIG_DFL);
      { const RemovedOnSignal over(dir / "b"); }
      const RemovedOnSignal removal(dir / "a");
      ::raise(number);
      ::_exit(0);
    }
    int how = 0;
    ::waitpid(child, &how, 0);
    BOOST_TEST((WIFSIGNALED(how) && WTERMSIG(how) == number), number);
    BOOST_TEST(!fs::exists(dir / "a"), number);
    BOOST_TEST(fs::exists(dir / "b"), number);
  }
}

BOOST_AUTO_TEST_CASE(signals_that_the_process_handles_keep_their_meaning) {
  test::TemporaryDirectory dir;
  test::write_bytes(dir / "a", "half");
  auto before = ::signal(SIGHUP, SIG_IGN);
  {
    const RemovedOnSignal removal(dir / "a");
    ::raise(SIGHUP);
  }
  BOOST_TEST((::signal(SIGHUP, before) == SIG_IGN));
  BOOST_TEST(fs::exists(dir / "a"));
}
