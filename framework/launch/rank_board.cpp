#include "framework/launch/rank_board.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "framework/base/plural.hpp"

namespace altiplano {
namespace {

constexpr int kPhaseBits = 8;

/// Phase and step in one word, so that a reader never sees one of each.
struct alignas(64) Slot {
  std::atomic<uint64_t> word;
  std::atomic<int> stop_signal;
  std::atomic<bool> waits;
  std::atomic<uint64_t> moves;
};

RankActivity activity_of(const Slot& slot) {
  const uint64_t word = slot.word.load(std::memory_order_acquire);
  return {static_cast<RankPhase>(word & ((1u << kPhaseBits) - 1)), static_cast<int64_t>(word >> kPhaseBits)};
}

size_t board_bytes(int ranks) {
  return sizeof(Slot) * static_cast<size_t>(ranks);
}

Slot& slot_of(const std::shared_ptr<void>& memory, int rank) {
  return static_cast<Slot*>(memory.get())[rank];
}

Result<std::shared_ptr<void>> map(int file, size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return runtime_failure("board of the ranks: mmap: {}", std::strerror(errno));
  return std::shared_ptr<void>(memory, [bytes](void* p) { munmap(p, bytes); });
}

}  // namespace

std::string to_string(const RankActivity& activity) {
  switch (activity.phase) {
    case RankPhase::kAbsent:
      return {};
    case RankPhase::kStarting:
      return "while starting";
    case RankPhase::kTraining:
      return fmt::format("in step {}", activity.step);
    case RankPhase::kValidating:
      return fmt::format("while validating after step {}", activity.step);
    case RankPhase::kSaving:
      return fmt::format("while saving step {}", activity.step);
    case RankPhase::kDone:
      return fmt::format("after the last step {}", activity.step);
  }
  return {};
}

Result<RankBoard> RankBoard::create(int ranks) {
  const int file = memfd_create("altiplano-board", MFD_CLOEXEC);
  if (file < 0) return runtime_failure("board of the ranks: memfd_create: {}", std::strerror(errno));
  RankBoard board(file, nullptr);
  if (ftruncate(file, static_cast<off_t>(board_bytes(ranks))) != 0)
    return runtime_failure("board of the ranks: {}", std::strerror(errno));
  ALTIPLANO_ASSIGN(board.memory_, map(file, board_bytes(ranks)));
  return board;
}

RankBoard::RankBoard(RankBoard&& other) noexcept
    : file_(std::exchange(other.file_, -1)), memory_(std::move(other.memory_)) {}

RankBoard::~RankBoard() {
  if (file_ >= 0) close(file_);
}

std::string RankBoard::address() const {
  return fmt::format("/proc/{}/fd/{}", getpid(), file_);
}

RankActivity RankBoard::of(int rank) const {
  return activity_of(slot_of(memory_, rank));
}

int RankBoard::stop_signal_of(int rank) const {
  return slot_of(memory_, rank).stop_signal.load(std::memory_order_acquire);
}

void RankReport::set_stop_signal(int number) const {
  if (memory_ != nullptr) slot_of(memory_, rank_).stop_signal.store(number, std::memory_order_release);
}

Result<RankReport> RankReport::open(const std::string& address, RankId rank, int ranks) {
  RankReport report;
  if (address.empty()) {
    report.memory_ = std::make_shared<Slot>();
    return report;
  }
  report.rank_ = rank.value;
  report.is_shared_ = true;
  const int file = ::open(address.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0)
    return runtime_failure("ALTIPLANO_BOARD: cannot open {}: {}; is the launcher still running?", address,
                           std::strerror(errno));
  struct stat info {};
  const bool fits = fstat(file, &info) == 0 && info.st_size == static_cast<off_t>(board_bytes(ranks));
  auto memory = fits ? map(file, board_bytes(ranks))
                     : Result<std::shared_ptr<void>>(
                           invalid_argument("ALTIPLANO_BOARD: {} is no board of {}", address, counted(ranks, "rank")));
  close(file);
  ALTIPLANO_ASSIGN(report.memory_, std::move(memory));
  return report;
}

void RankReport::set(RankPhase phase, int64_t step) const {
  if (memory_ == nullptr) return;
  const uint64_t word = static_cast<uint64_t>(step) << kPhaseBits | static_cast<uint64_t>(phase);
  slot_of(memory_, rank_).word.store(word, std::memory_order_release);
  move(false);
}

void RankReport::move(bool waits) const {
  if (memory_ == nullptr) return;
  Slot& slot = slot_of(memory_, rank_);
  slot.waits.store(waits, std::memory_order_relaxed);
  slot.moves.store(slot.moves.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

RankActivity RankReport::activity() const {
  return memory_ == nullptr ? RankActivity{} : activity_of(slot_of(memory_, rank_));
}

RankMotion RankReport::motion() const {
  if (memory_ == nullptr) return {};
  const Slot& slot = slot_of(memory_, rank_);
  return {slot.moves.load(std::memory_order_acquire), slot.waits.load(std::memory_order_relaxed)};
}

}  // namespace altiplano
