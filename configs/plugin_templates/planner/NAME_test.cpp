// A test of the rule alone: no plugin is loaded.
#include <cstdio>

#include "@name@_degrees.hpp"

int main() {
  const auto six = @name@_plugin::choose_degrees(6, 4), five = @name@_plugin::choose_degrees(5, 4);
  if (six.pipeline != 3 || six.data != 2) return std::puts("6 ranks: not 3 stages x 2 replicas"), 1;
  if (five.pipeline != 1 || five.data != 5) return std::puts("5 ranks: not 5 replicas"), 1;
  return 0;
}
