// A test of the memory alone: what one mapping writes, the other reads.
#include <cstdio>
#include <cstring>

#include "@name@_memory.hpp"

int main() {
  auto made = @name@_plugin::make_memory(4096);
  if (!made.is_ok()) return std::printf("%s\n", made.status().to_string().c_str()), 1;
  auto other = @name@_plugin::attach_memory(made->path, 4096);
  if (!other.is_ok()) return std::printf("%s\n", other.status().to_string().c_str()), 1;
  std::strcpy(static_cast<char*>(made->memory.get()), "hello");
  if (std::strcmp(static_cast<const char*>(other->get()), "hello") != 0) return std::puts("not shared"), 1;
  if (@name@_plugin::attach_memory(made->path, 8192).is_ok()) return std::puts("another size was accepted"), 1;
  return 0;
}
