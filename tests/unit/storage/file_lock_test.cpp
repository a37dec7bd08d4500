#include "framework/storage/file_lock.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <optional>

#include "tests/support/temporary_directory.hpp"

namespace altiplano::test {

BOOST_AUTO_TEST_SUITE(file_lock)

BOOST_AUTO_TEST_CASE(a_second_owner_is_refused_with_the_name_of_the_first) {
  TemporaryDirectory directory;
  const std::string path = directory / "lock";
  auto first = FileLock::take(path, "job one");
  BOOST_REQUIRE_MESSAGE(first.is_ok(), first.status().to_string());
  auto second = FileLock::take(path, "job two");
  BOOST_REQUIRE(!second.is_ok());
  BOOST_TEST(second.status().message().find("another job is at work here: host ") != std::string::npos);
  BOOST_TEST(second.status().message().find("job one") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_lock_ends_with_its_owner_even_when_that_was_killed) {
  TemporaryDirectory directory;
  const std::string path = directory / "lock";
  const pid_t child = ::fork();
  if (child == 0) {
    auto lock = FileLock::take(path, "child");
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  BOOST_TEST(WIFSIGNALED(status));
  auto lock = FileLock::take(path, "parent");
  BOOST_TEST(lock.is_ok(), lock.status().to_string());
}

BOOST_AUTO_TEST_CASE(whether_it_is_free_can_be_asked_without_taking_or_making_it) {
  TemporaryDirectory directory;
  const std::string path = directory / "lock";
  BOOST_TEST(FileLock::check_free(path).is_ok());
  BOOST_TEST(!std::filesystem::exists(path));
  {
    auto lock = FileLock::take(path, "job one");
    const Status asked = FileLock::check_free(path);
    BOOST_TEST(exit_code_of(asked.code()) == 2);
    BOOST_TEST(asked.message() == FileLock::take(path, "job two").status().message());
  }
  BOOST_TEST(FileLock::check_free(path).is_ok());
  BOOST_TEST(FileLock::take(path, "job three").is_ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
