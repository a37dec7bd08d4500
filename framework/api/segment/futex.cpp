#include "framework/api/segment/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace altiplano {
namespace {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);

int operation(int base, FutexScope scope) {
  return scope == FutexScope::kProcess ? base | FUTEX_PRIVATE_FLAG : base;
}

}  // namespace

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, std::chrono::nanoseconds timeout, FutexScope scope) {
  if (timeout.count() <= 0) return;
  timespec duration{static_cast<time_t>(timeout.count() / 1'000'000'000),
                    static_cast<long>(timeout.count() % 1'000'000'000)};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation(FUTEX_WAIT, scope), expected, &duration, nullptr, 0);
}

void futex_wake_all(std::atomic<uint32_t>& word, FutexScope scope) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation(FUTEX_WAKE, scope), INT_MAX, nullptr, nullptr, 0);
}

}  // namespace altiplano
