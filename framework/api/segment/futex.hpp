#pragma once
// Waiting on a word of memory, between threads or between processes.
#include <atomic>
#include <chrono>
#include <cstdint>

namespace altiplano {

enum class FutexScope : uint8_t { kProcess, kShared };  ///< threads of one process; processes that share the memory

/// Returns when woken, when the word is no longer `expected`, or after `timeout`; may return early.
void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, std::chrono::nanoseconds timeout, FutexScope scope);
void futex_wake_all(std::atomic<uint32_t>& word, FutexScope scope);

}  // namespace altiplano
