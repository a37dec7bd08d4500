// A test of the parsing alone: no plugin is loaded.
#include <cstdio>

#include "@name@_allocation.hpp"

int main() {
  const @name@_plugin::Environment job = {
      {"@NAME@_JOB_ID", "17"}, {"@NAME@_HOSTS", "a,b"}, {"@NAME@_CPUS_PER_RANK", "4"}};
  const auto allocation = @name@_plugin::read_allocation(job, 5);
  if (!allocation.is_ok()) return std::printf("%s\n", allocation.status().to_string().c_str()), 1;
  if (allocation->ranks_per_host != std::vector<int>{3, 2} || allocation->cpus_per_rank != 4)
    return std::puts("5 ranks on 2 hosts are not 3 and 2 with 4 processors each"), 1;
  return @name@_plugin::is_present({}) || @name@_plugin::read_allocation({}, 1).is_ok() ? 1 : 0;
}
