#include "framework/storage/input_file.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "framework/storage/atomic_file.hpp"
#include "framework/storage/hdf5_file.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace altiplano;
using namespace altiplano::test;
namespace fs = std::filesystem;

namespace {

void make_socket(const std::string& path) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  BOOST_REQUIRE(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  ::close(socket);
}

/// Without the rights of root while it lives.
class WithoutRights {
 public:
  WithoutRights() : user_(::geteuid()) {
    if (user_ == 0) BOOST_REQUIRE(::seteuid(65534) == 0);
  }
  ~WithoutRights() { (void)!::seteuid(user_); }

 private:
  uid_t user_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(only_regular_files_are_read_and_nothing_is_waited_for) {
  TemporaryDirectory dir;
  write_bytes(dir / "a", "text");
  fs::create_symlink("a", dir / "link");
  BOOST_REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
  make_socket(dir / "socket");
  BOOST_TEST(read_input_file(dir / "a", 4).value() == "text");
  BOOST_TEST(read_input_file(dir / "link", 4).value() == "text");
  BOOST_TEST(read_input_file(dir / "a", 3).status().message() ==
             (dir / "a") + ": cannot be read: it has 4 bytes, at most 3 are read");
  const std::map<std::string, std::string> others = {{dir / "pipe", "it is a pipe; a regular file is needed"},
                                                     {dir / "socket", "it is a socket; a regular file is needed"},
                                                     {"/dev/zero", "it is a device; a regular file is needed"},
                                                     {dir.path(), "it is a folder"},
                                                     {dir / "none", "No such file or directory"},
                                                     {dir / "a/b", "No such file or directory"}};
  for (const auto& [path, why] : others) {
    const Status status = read_input_file(path, 4).status();
    BOOST_TEST(status.message() == path + ": cannot be read: " + why);
    BOOST_TEST(exit_code_of(status.code()) == 2);
    BOOST_TEST(!read_file(path).is_ok(), path);
    BOOST_TEST(!Hdf5File::open(path).is_ok(), path);
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_does_not_say_how_long_it_is_is_read_up_to_the_limit) {
  BOOST_TEST(read_input_file("/proc/self/status", 1 << 20).is_ok());
  BOOST_TEST(!read_input_file("/proc/self/status", 10).is_ok());
}

BOOST_AUTO_TEST_CASE(a_file_behind_a_closed_folder_is_denied_and_not_missing) {
  TemporaryDirectory dir;
  fs::create_directory(dir / "closed");
  write_bytes(dir / "closed/a", "text");
  write_bytes(dir / "b", "text");
  fs::permissions(dir.path(), fs::perms(0755));
  fs::permissions(dir / "closed", fs::perms(0));
  fs::permissions(dir / "b", fs::perms(0));
  std::string behind, itself;
  {
    const WithoutRights user;
    behind = why_not_readable(dir / "closed/a");
    itself = why_not_readable(dir / "b");
  }
  fs::permissions(dir / "closed", fs::perms(0700));
  BOOST_TEST(behind == "Permission denied");
  BOOST_TEST(itself == "Permission denied");
}
