#pragma once
// The console: what people are told. One that is closed, full or gone stops no work and ends no process: nothing here
// throws, and after guard_console() no signal comes of it. What stdout lost is remembered, for commands whose purpose
// is their output. All of the framework prints by these functions (ci/LAYERS holds it to that). Any thread.
#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace altiplano {

/// At the start of a process: a reader that has gone raises no SIGPIPE, and standard descriptors that are closed stay
/// unusable, so that no file of the run gets their numbers and with them what is printed.
void guard_console();

void print_out_text(std::string_view text);
/// On stderr, behind what was printed before.
void print_err_text(std::string_view text);
void flush_out();
/// errno of the first text that stdout did not take, counting what flush_out() has sent; 0: none was lost.
int output_error();
/// For who writes to stdout's descriptor by other means, as a launcher does for its ranks.
void note_output_error(int error);

template <typename... Args>
void print_out(fmt::format_string<Args...> format, Args&&... args) {
  print_out_text(fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void print_err(fmt::format_string<Args...> format, Args&&... args) {
  print_err_text(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace altiplano
