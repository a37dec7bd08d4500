#include "local_allocation.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

namespace altiplano::local {

int num_processors_allowed() {
  // The mask must be as large as the kernel's, which may know more than the 1024 processors of cpu_set_t.
  for (int capacity = 1024; capacity <= 1 << 20; capacity *= 2) {
    cpu_set_t* mask = CPU_ALLOC(capacity);
    if (mask == nullptr) break;
    size_t bytes = CPU_ALLOC_SIZE(capacity);
    int outcome = sched_getaffinity(0, bytes, mask);
    int count = outcome == 0 ? CPU_COUNT_S(bytes, mask) : 0;
    CPU_FREE(mask);
    if (outcome == 0) return std::max(1, count);
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

Result<std::string> host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0)
    return runtime_failure("scheduler local: no host name: {}", std::strerror(errno));
  return std::string(name.data());
}

Result<Allocation> make_allocation(const std::string& job_id, const std::string& host, int processors, int ranks) {
  if (ranks < 1) return invalid_argument("scheduler local: {} ranks; nearest legal value: 1", ranks);
  Allocation allocation;
  allocation.job_id = job_id;
  allocation.hosts = {host};
  allocation.ranks_per_host = {ranks};
  allocation.cpus_per_rank = std::max(1, processors / ranks);
  return allocation;
}

}  // namespace altiplano::local
