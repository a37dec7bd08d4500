// A test of the algorithm alone: no plugin is loaded.
#include <cstdio>

#include "@name@_timetable.hpp"

int main() {
  const auto table = @name@_plugin::wave_timetable(2, 3, 2);
  const std::string expected = "w0: F0 F1 B0 B1 F2 B2\nw1: F0 F1 B0 B1 F2 B2\n";
  if (table.to_string() == expected) return 0;
  std::printf("got\n%sexpected\n%s", table.to_string().c_str(), expected.c_str());
  return 1;
}
