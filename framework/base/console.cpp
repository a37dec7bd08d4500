#include "framework/base/console.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>

namespace altiplano {

namespace {

std::atomic<int> g_output_error{0};

}  // namespace

void guard_console() {
  std::signal(SIGPIPE, SIG_IGN);
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file) {
    if (::fcntl(file, F_GETFD) != -1 || errno != EBADF) continue;
    const int taken = ::open("/dev/null", O_RDONLY);  // the lowest free number: this one; writing to it still fails
    if (taken >= 0 && taken != file) ::close(taken);
  }
}

void print_out_text(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) note_output_error(errno);
}

void print_err_text(std::string_view text) {
  flush_out();
  std::fwrite(text.data(), 1, text.size(), stderr);  // nobody is left to tell
}

void flush_out() {
  if (std::fflush(stdout) != 0) note_output_error(errno);
}

int output_error() {
  return g_output_error;
}

void note_output_error(int error) {
  int none = 0;
  g_output_error.compare_exchange_strong(none, error == 0 ? EIO : error);
}

}  // namespace altiplano
