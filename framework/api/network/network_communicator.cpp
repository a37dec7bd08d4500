#include "framework/api/network/network_communicator.hpp"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "framework/api/segment/host_segment.hpp"
#include "framework/base/plural.hpp"

namespace altiplano::network {
namespace {

constexpr int64_t kPiecesOfChunks = 4096;  // a message travels in pieces of so many chunks: 1 GiB by default

int num_usable_processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

std::vector<int> ranks_on(const std::vector<std::string>& hosts, const std::string& host) {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < hosts.size(); ++rank)
    if (hosts[rank] == host) ranks.push_back(static_cast<int>(rank));
  return ranks;
}

}  // namespace

Result<std::unique_ptr<Communicator>> open_network_communicator(Rendezvous& rendezvous, const CommOptions& options,
                                                                std::vector<std::string> hosts,
                                                                std::unique_ptr<Transport> transport) {
  const int rank = rendezvous.rank().value;
  std::optional<HostSegment> segment;
  if (options.two_level) {
    std::vector<int> here = ranks_on(hosts, hosts[static_cast<size_t>(rank)]);
    ALTIPLANO_ASSIGN(SegmentAttachment attachment, attach_host_segment(rendezvous, options, here));
    if (!is_initialized(SegmentView(attachment.memory.get()), attachment.shape))
      return invalid_argument("rank {}: comm.chunk_bytes must be equal on all ranks", rank);
    ALTIPLANO_RETURN_IF_ERROR(rendezvous.fence(options.deadline));
    if (here.size() > 1) segment = HostSegment{std::move(attachment), std::move(here)};
  }
  return std::unique_ptr<Communicator>(
      new NetworkCommunicator(rank, std::move(hosts), options, std::move(transport), std::move(segment)));
}

NetworkCommunicator::NetworkCommunicator(int rank, std::vector<std::string> hosts, const CommOptions& options,
                                         std::unique_ptr<Transport> transport, std::optional<HostSegment> segment)
    : Engine(rank, std::move(hosts), options, &transport->mutex()),
      transport_(std::move(transport)),
      messages_(*transport_, rank, world_size(), options.chunk_bytes * kPiecesOfChunks, &completed_) {
  if (!segment) return;
  const SegmentView view(segment->attachment.memory.get());
  std::vector<int> processes(static_cast<size_t>(world_size()));
  for (size_t place = 0; place < segment->ranks.size(); ++place)
    if (const int peer = segment->ranks[place]; peer != rank_)
      processes[static_cast<size_t>(peer)] = view.rank(static_cast<int>(place)).process.load();
  watch_ = ProcessWatch(processes);
  segment_.emplace(std::move(segment->attachment), rank, world_size(), std::move(segment->ranks), &completed_);
}

NetworkCommunicator::~NetworkCommunicator() {
  constexpr auto kGoodbye = std::chrono::seconds(5);
  const auto held = lock();
  if (!failure_.is_ok()) return;
  for (int peer = 0; peer < world_size(); ++peer)
    if (peer != rank_ && transport_->is_connected(peer)) messages_.tell(peer, FrameKind::kBye, "");
  messages_.flush(kGoodbye);
}

std::string NetworkCommunicator::describe() const {
  const auto num_hosts = static_cast<int>(std::set(hosts_.begin(), hosts_.end()).size());
  if (!options_.two_level || num_hosts == world_size()) return transport_->name() + " between all ranks";
  if (num_hosts == 1) return "shared memory";
  return fmt::format("shared memory within {}, {} between them", counted(num_hosts, "host"), transport_->name());
}

Status NetworkCommunicator::post_outside(Transfer& transfer) {
  if (const Status status = transfer.is_send ? messages_.send(transfer) : messages_.receive(transfer); !status.is_ok())
    return broken(status);
  return check(messages_.mismatch());
}

Status NetworkCommunicator::move_outside(bool& moved) {
  if (const Status status = messages_.advance(moved); !status.is_ok()) return broken(status);
  take_notes();
  ALTIPLANO_RETURN_IF_ERROR(failure_);
  return check(messages_.mismatch());
}

// ---- waiting ----

bool NetworkCommunicator::has_processors_for_all() const {
  static const int processors = num_usable_processors();
  return processors >= std::count(hosts_.begin(), hosts_.end(), hosts_[static_cast<size_t>(rank_)]);
}

Result<bool> NetworkCommunicator::look(Waiting& waiting) {
  bool moved = false;
  ALTIPLANO_RETURN_IF_ERROR(advance(moved));
  const CommOperation* waited_for = operations_.find(waiting.event.id);
  if (moved || waited_for == nullptr) {
    if (moved) waiting.last_movement = Clock::now();
    return moved;
  }
  const auto now = Clock::now();
  if (now - waiting.last_look >= kLookInterval) {
    waiting.last_look = now;
    ALTIPLANO_RETURN_IF_ERROR(check_peers(waiting.event));
    if (is_done(waiting.event.id)) return true;
  }
  if (now - waiting.last_movement < options_.deadline) return false;
  ALTIPLANO_RETURN_IF_ERROR(peer_stuck(blocking(*waited_for), now - waiting.last_movement));
  return true;
}

Status NetworkCommunicator::wait(Event event) noexcept {
  const int spins = has_processors_for_all() ? 20'000 : 100;  // before others get the processor
  constexpr auto kLeastSleep = std::chrono::microseconds(10), kMostSleep = std::chrono::microseconds(500);
  const auto begin = Clock::now();
  Waiting waiting{event, begin, begin};
  auto sleep = kLeastSleep;
  for (int idle = 0;;) {
    {
      const auto held = lock();
      ALTIPLANO_RETURN_IF_ERROR(failure_);
      ALTIPLANO_RETURN_IF_ERROR(check_event(event));
      if (is_done(event.id)) return Status::ok();
      waits_for_event_ = event.id;
      const Result<bool> moved = look(waiting);
      waits_for_event_ = 0;
      ALTIPLANO_RETURN_IF_ERROR(moved.status());
      if (is_done(event.id)) return Status::ok();
      idle = *moved ? 0 : idle + 1;
    }
    if (idle == 0) sleep = kLeastSleep;
    if (idle < spins) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(sleep);
      sleep = std::min(2 * sleep, std::chrono::microseconds(kMostSleep));
    }
  }
}

}  // namespace altiplano::network
