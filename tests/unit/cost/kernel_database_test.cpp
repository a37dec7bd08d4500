// The profile database: found again, shared, and never in the way.
#include "framework/cost/kernel_database.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <map>

#include "framework/storage/file_lock.hpp"
#include "tests/support/temporary_directory.hpp"

namespace altiplano::test {
namespace {

KernelMeasurement measurement(const std::string& shape, const std::string& best = "sgemm",
                              const std::string& machine = "a cpu; 2 threads") {
  return {machine, shape, {{"plain", 2e-3, 1e-3, 3e-3}, {"sgemm", 1e-3, 0.5e-3, 1.5e-3}}, best, 7, "2026-11-30"};
}

std::optional<std::string> path_with(std::map<std::string, std::string> environment) {
  return kernel_database_path([&](const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kernel_database)

BOOST_AUTO_TEST_CASE(it_lies_in_the_users_cache) {
  BOOST_TEST(*path_with({{"XDG_CACHE_HOME", "/c"}, {"HOME", "/h"}}) == "/c/altiplano/kernels.h5");
  BOOST_TEST(*path_with({{"XDG_CACHE_HOME", "relative"}, {"HOME", "/h"}}) == "/h/.cache/altiplano/kernels.h5");
  BOOST_TEST(*path_with({{"HOME", "/h"}}) == "/h/.cache/altiplano/kernels.h5");
  BOOST_TEST(*path_with({}) == "");
}

BOOST_AUTO_TEST_CASE(what_is_stored_is_found_again_by_machine_and_shape) {
  TemporaryDirectory folder;
  const std::string path = folder / "deep/in/kernels.h5";
  KernelDatabase first = KernelDatabase::read(path);
  BOOST_TEST(first.notice() == "");
  BOOST_REQUIRE(first.store({measurement("f32 1x2x3 nn"), measurement("f32 4x5x6 nt", "plain")}).is_ok());
  KernelDatabase other = KernelDatabase::read(path);
  BOOST_REQUIRE(other.store({measurement("f32 1x2x3 nn", "plain", "another cpu; 1 thread")}).is_ok());
  const KernelDatabase found = KernelDatabase::read(path);
  BOOST_TEST(found.notice() == "");
  BOOST_TEST(found.num_shapes("a cpu; 2 threads") == 2u);
  BOOST_TEST(found.num_shapes("another cpu; 1 thread") == 1u);
  const KernelMeasurement* m = found.find("a cpu; 2 threads", "f32 1x2x3 nn");
  BOOST_REQUIRE(m != nullptr);
  BOOST_TEST(m->best == "sgemm");
  BOOST_TEST(m->rounds == 7);
  BOOST_TEST(m->date == "2026-11-30");
  BOOST_REQUIRE(m->times.size() == 2u);
  BOOST_TEST(m->times[1].form == "sgemm");
  BOOST_TEST(m->times[1].slowest == 1.5e-3);
  BOOST_TEST(found.find("a cpu; 2 threads", "f32 1x2x3 tt") == nullptr);
}

BOOST_AUTO_TEST_CASE(a_damaged_file_is_told_and_made_anew) {
  TemporaryDirectory folder;
  const std::string path = folder / "kernels.h5";
  KernelDatabase database = KernelDatabase::read(path);
  BOOST_REQUIRE(database.store({measurement("f32 1x2x3 nn")}).is_ok());
  const std::string whole = read_bytes(path);
  for (size_t at = 0; at < whole.size(); at += 97) {
    write_bytes(path, whole);
    flip_bit(path, at);
    const KernelDatabase damaged = KernelDatabase::read(path);
    BOOST_TEST(damaged.notice() == path + " is damaged", at);
    BOOST_TEST(damaged.find("a cpu; 2 threads", "f32 1x2x3 nn") == nullptr);
  }
  for (const std::string& content : {whole.substr(0, whole.size() / 2), std::string("x"), std::string()}) {
    write_bytes(path, content);
    BOOST_TEST(KernelDatabase::read(path).notice().starts_with(path + " is "));
  }
  KernelDatabase anew = KernelDatabase::read(path);
  BOOST_REQUIRE(anew.store({measurement("f32 7x8x9 nn")}).is_ok());
  const KernelDatabase found = KernelDatabase::read(path);
  BOOST_TEST(found.notice() == "");
  BOOST_TEST(found.num_shapes("a cpu; 2 threads") == 1u);
}

BOOST_AUTO_TEST_CASE(where_nothing_can_be_written_the_measurements_are_known_to_the_process) {
  TemporaryDirectory folder;
  write_bytes(folder / "file", "no folder");
  for (const std::string& path : {folder / "file/kernels.h5", std::string()}) {
    KernelDatabase database = KernelDatabase::read(path);
    const Status stored = database.store({measurement("f32 1x2x3 nn")});
    BOOST_TEST(!stored.is_ok());
    BOOST_TEST(database.find("a cpu; 2 threads", "f32 1x2x3 nn") != nullptr);
  }
}

BOOST_AUTO_TEST_CASE(a_lock_that_is_never_given_back_costs_the_file_not_the_job) {
  TemporaryDirectory folder;
  const std::string path = folder / "kernels.h5";
  auto lock = FileLock::take(path + ".lock", "somebody who hangs");
  BOOST_REQUIRE(lock.is_ok());
  KernelDatabase database = KernelDatabase::read(path);
  const Status stored = database.store({measurement("f32 1x2x3 nn")});
  BOOST_TEST(!stored.is_ok());
  BOOST_TEST(stored.message().find("somebody who hangs") != std::string::npos, stored.message());
}

BOOST_AUTO_TEST_CASE(processes_that_store_at_once_lose_nothing) {
  TemporaryDirectory folder;
  const std::string path = folder / "kernels.h5";
  std::vector<pid_t> children;
  for (int child = 0; child < 6; ++child) {
    const pid_t process = fork();
    if (process == 0) {
      bool is_ok = true;
      for (int i = 0; i < 3; ++i) {
        KernelDatabase database = KernelDatabase::read(path);
        is_ok = is_ok && database.notice().empty() &&
                database.store({measurement("f32 " + std::to_string(10 * child + i) + "x1x1 nn")}).is_ok();
      }
      _exit(is_ok ? 0 : 1);
    }
    children.push_back(process);
  }
  for (pid_t process : children) {
    int how = 0;
    waitpid(process, &how, 0);
    BOOST_TEST(how == 0);
  }
  const KernelDatabase found = KernelDatabase::read(path);
  BOOST_TEST(found.notice() == "");
  BOOST_TEST(found.num_shapes("a cpu; 2 threads") == 18u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
