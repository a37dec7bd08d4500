#include "tests/support/counted_new.hpp"

#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace altiplano::test {
namespace {

constexpr int kDepth = 32;
thread_local bool is_counting = false;
std::atomic<int> allocations{0};
void* first_stack[kDepth];
int first_depth = 0;

}  // namespace

void count_allocations(bool on) {
  is_counting = on;
}

int num_allocations() {
  return allocations;
}

std::string first_allocation() {
  std::string text;
  char** names = backtrace_symbols(first_stack, first_depth);
  for (int i = 0; i < first_depth; ++i) text += std::string("\n  ") + names[i];
  std::free(names);
  return text;
}

void reset_allocations() {
  allocations = 0;
  first_depth = 0;
}

namespace {

/// oneDNN makes a small list of arguments whenever it runs a primitive.
bool is_of_library(void* caller) {
  Dl_info info{};
  return dladdr(caller, &info) != 0 && std::strstr(info.dli_fname, "libdnnl") != nullptr;
}

[[maybe_unused]] void* counted(size_t bytes, size_t alignment, void* caller) {
  if (is_counting) {
    is_counting = false;  // what follows may allocate
    if (!is_of_library(caller) && allocations.fetch_add(1) == 0) first_depth = backtrace(first_stack, kDepth);
    is_counting = true;
  }
  void* memory = std::aligned_alloc(alignment, (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace
}  // namespace altiplano::test

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

void* operator new(size_t bytes) {
  return altiplano::test::counted(bytes, alignof(std::max_align_t), __builtin_return_address(0));
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  return altiplano::test::counted(bytes, static_cast<size_t>(alignment), __builtin_return_address(0));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

#endif
