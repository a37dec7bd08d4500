#pragma once
// What the host offers to one rank: threads, memory, instruction sets.
#include <cstdint>
#include <string>

namespace altiplano::cpu {

/// CPUs this process may run on (its affinity mask).
int available_cpus();
/// OMP_NUM_THREADS if the user set it, else `asked` if positive, else the mask's CPUs shared by the ranks of the host
/// (at least 1).
int threads_of_rank(int asked, int ranks_on_host);
/// Physical memory, or the control group's limit if that is lower.
int64_t host_memory_bytes();
/// "oneDNN 2.6.3"; more when the library is older than the headers it was built with, or of another major version.
std::string library_text();
/// "avx512, amx-bf16", "avx2", "sse2": the widest set that the loops and products use here.
std::string instruction_sets();

/// "AMD EPYC, family 25, model 1"; "unknown processor" where /proc/cpuinfo does not tell.
std::string processor_name();
/// Whether oneDNN multiplies bf16 as bf16 here (AVX-512 at least).
bool has_bf16_products();

}  // namespace altiplano::cpu
