#include "framework/api/segment/segment_transport.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "framework/api/segment/host_segment.hpp"
#include "framework/api/segment/segment_communicator.hpp"

namespace altiplano {
namespace {

constexpr int kSpins = 200;  // idle rounds before sleeping, a few microseconds
// For a peer that takes what it waits for: to do so, and where ranks share processors to be woken up first.
constexpr std::chrono::microseconds kPatience{200}, kPatienceSharing{400};

int num_cpus() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

SegmentCommunicator::SegmentCommunicator(int rank, std::vector<std::string> hosts, const CommOptions& options,
                                         SegmentAttachment attachment)
    : Engine(rank, std::move(hosts), options), view_(attachment.memory.get()) {
  std::vector<int> ranks, processes;
  for (int peer = 0; peer < world_size(); ++peer) {
    const bool watched = attachment.scope == FutexScope::kShared && peer != rank_;
    ranks.push_back(peer);
    processes.push_back(watched ? view_.rank(peer).process.load() : 0);
  }
  segment_.emplace(std::move(attachment), rank, world_size(), std::move(ranks), &completed_);
  watch_ = ProcessWatch(processes);
  show_life();
}

int64_t SegmentCommunicator::wall_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

void SegmentCommunicator::show_life() {
  view_.rank(rank_).heartbeat.store(wall_milliseconds(), std::memory_order_relaxed);
}

SegmentCommunicator::~SegmentCommunicator() {
  view_.rank(rank_).left.store(1, std::memory_order_seq_cst);
  for (int peer = 0; peer < world_size(); ++peer) segment_->ring(peer);
}

// ---- waiting ----

bool SegmentCommunicator::spins() const {
  static const int cpus = num_cpus();
  return cpus >= world_size();
}

std::chrono::nanoseconds SegmentCommunicator::time_to_sleep(const Waiting& waiting) const {
  const Clock::duration left = options_.deadline - (Clock::now() - waiting.last_movement);
  return std::clamp<Clock::duration>(left, std::chrono::milliseconds(1), kLookInterval);
}

Status SegmentCommunicator::wait(Event event) noexcept {
  ALTIPLANO_RETURN_IF_ERROR(check_failed());
  ALTIPLANO_RETURN_IF_ERROR(check_event(event));
  const auto begin = Clock::now();
  Waiting waiting{event, begin, begin};
  RankSlot& slot = view_.rank(rank_);
  for (int idle = 0; !is_done(event.id);) {
    // Announcing sleep before looking once more: a peer either sees the announcement or is seen.
    const bool about_to_sleep = idle >= (spins() ? kSpins : 1);
    const uint32_t doorbell = slot.doorbell.load(std::memory_order_seq_cst);
    if (about_to_sleep) slot.sleeping.store(1, std::memory_order_seq_cst);
    bool moved = false;
    Status status = advance(moved);
    if (status.is_ok() && about_to_sleep && !moved && !is_done(event.id)) {
      publish_whom_we_wait_for(event);
      futex_wait(slot.doorbell, doorbell, time_to_sleep(waiting), segment_->scope());
      status = look_for_trouble(waiting);
    }
    if (about_to_sleep) slot.sleeping.store(0, std::memory_order_seq_cst);
    ALTIPLANO_RETURN_IF_ERROR(status);
    idle = moved ? 0 : idle + 1;
    if (moved) waiting.last_movement = Clock::now();
  }
  slot.waits_for.store(0, std::memory_order_relaxed);
  return hand_over(true);
}

/// Where ranks share processors patience is a yield, and beside other work a yield lasts until everybody else has had a
/// turn: ten milliseconds, for each of the hundreds of waits of a step. Each message is given it once.
bool SegmentCommunicator::is_worth_lingering() {
  if (spins()) return true;
  const uint64_t before = std::exchange(num_lingered_for_, segment_->num_announced());
  return num_lingered_for_ > before;
}

Status SegmentCommunicator::hand_over(bool lingers) {
  lingers = lingers && is_worth_lingering();
  auto last_movement = Clock::now();
  while (segment_->has_wanted_data(lingers)) {
    bool moved = false;
    ALTIPLANO_RETURN_IF_ERROR(advance(moved));
    if (moved) {
      last_movement = Clock::now();
    } else if (Clock::now() - last_movement > (spins() ? kPatience : kPatienceSharing)) {
      break;
    } else if (!spins()) {
      sched_yield();
    }
  }
  return Status::ok();
}

void SegmentCommunicator::set_step(int64_t step) noexcept {
  Engine::set_step(step);
  view_.rank(rank_).step.store(step, std::memory_order_relaxed);
}

// ---- opening ----

Result<std::unique_ptr<Communicator>> open_segment_communicator(Rendezvous& rendezvous, const CommOptions& options,
                                                                SegmentAttachment attachment) {
  const SegmentView view(attachment.memory.get());
  if (!is_initialized(view, attachment.shape))
    return invalid_argument(
        "rank {} opens a segment made for other options; comm.chunk_bytes must be equal on all ranks",
        rendezvous.rank());
  const int rank = rendezvous.rank().value;
  view.rank(rank).process.store(getpid());
  ALTIPLANO_ASSIGN(std::vector<std::string> hosts, exchange_hosts(rendezvous, options.deadline));
  return std::unique_ptr<Communicator>(new SegmentCommunicator(rank, std::move(hosts), options, std::move(attachment)));
}

}  // namespace altiplano
