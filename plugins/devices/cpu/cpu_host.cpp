#include "plugins/devices/cpu/cpu_host.hpp"

#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <dnnl.hpp>
#include <fstream>
#include <thread>

#include "framework/base/text.hpp"

namespace altiplano::cpu {

int available_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) return std::max(1, CPU_COUNT(&mask));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int threads_of_rank(int asked, int ranks_on_host) {
  if (const char* user = std::getenv("OMP_NUM_THREADS")) {
    const auto count = parse_int(split(user, ',').front());  // "4,2" is a list per nesting level
    if (count && *count > 0) return static_cast<int>(*count);
  }
  return asked > 0 ? asked : std::max(1, available_cpus() / std::max(1, ranks_on_host));
}

namespace {

/// The lowest memory.max from this process's version 2 control group up to the root; -1: no limit.
int64_t control_group_limit() {
  std::ifstream groups("/proc/self/cgroup");
  int64_t lowest = -1;
  for (std::string line; std::getline(groups, line);) {
    if (line.rfind("0::", 0) != 0) continue;
    for (std::string path = line.substr(3); !path.empty(); path.resize(path.rfind('/'))) {
      std::ifstream file("/sys/fs/cgroup" + path + "/memory.max");
      int64_t limit = 0;
      if (file >> limit && (lowest < 0 || limit < lowest)) lowest = limit;
      if (path.find('/') == std::string::npos) break;
    }
  }
  return lowest;
}

}  // namespace

int64_t host_memory_bytes() {
  const int64_t physical = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  const int64_t limit = control_group_limit();
  return limit > 0 ? std::min(physical, limit) : physical;
}

std::string library_text() {
  using Version = std::array<int, 3>;
  const dnnl_version_t* running = dnnl_version();
  const Version headers = {DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH};
  const Version library = {running->major, running->minor, running->patch};
  const std::string text = fmt::format("oneDNN {}", fmt::join(library, "."));
  if (library[0] == headers[0] && library >= headers) return text;
  return fmt::format("{}, but built with the headers of {}: install the matching pair", text, fmt::join(headers, "."));
}

std::string instruction_sets() {
  __builtin_cpu_init();
  std::string loops = __builtin_cpu_supports("avx512vl") ? "avx512" : __builtin_cpu_supports("avx2") ? "avx2" : "sse2";
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::avx512_core_amx:
      return loops + ", amx-bf16";
    case dnnl::cpu_isa::avx512_core_bf16:
      return loops + ", avx512-bf16";
    default:
      return loops;
  }
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::array<std::string, 3> found;
  constexpr std::array kFields = {"model name", "cpu family", "model"};
  for (std::string line; std::getline(file, line) && !line.empty();) {  // the first processor's
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    for (size_t i = 0; i < found.size(); ++i)
      if (trim(line.substr(0, colon)) == kFields[i]) found[i] = trim(line.substr(colon + 1));
  }
  if (found[0].empty()) return "unknown processor";
  return fmt::format("{}, family {}, model {}", found[0], found[1], found[2]);
}

bool has_bf16_products() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::avx512_core:
    case dnnl::cpu_isa::avx512_core_vnni:
    case dnnl::cpu_isa::avx512_core_bf16:
    case dnnl::cpu_isa::avx512_core_amx:
      return true;
    default:
      return false;
  }
}

}  // namespace altiplano::cpu
