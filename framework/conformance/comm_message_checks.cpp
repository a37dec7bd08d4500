// Messages of many tags and sizes in adverse orders.
#include <algorithm>
#include <numeric>
#include <random>
#include <span>

#include "framework/conformance/comm_checks.hpp"

namespace altiplano::conformance {
namespace {

uint8_t byte_of(int from, int to, uint64_t tag, int64_t i) {
  return static_cast<uint8_t>(from * 31 + to * 17 + static_cast<int>(tag) * 7 + static_cast<int>(i % 251));
}

std::vector<uint8_t> content(int from, int to, uint64_t tag, int64_t bytes) {
  std::vector<uint8_t> data(static_cast<size_t>(bytes));
  for (int64_t i = 0; i < bytes; ++i) data[static_cast<size_t>(i)] = byte_of(from, to, tag, i);
  return data;
}

Status wait_all(Communicator& comm, std::vector<Event> events, bool backwards = false) {
  if (backwards) std::reverse(events.begin(), events.end());
  for (Event event : events) ALTIPLANO_RETURN_IF_ERROR(comm.wait(event));
  return Status::ok();
}

int64_t size_of_tag(uint64_t tag) {
  constexpr int64_t kSizes[] = {0, 1, 17, 64, 1000, 70'000, 300'001};
  return kSizes[tag % 7];
}

/// Where messages lie: plain memory, the communicator's where it has such, or by turns.
class MessageMemory {
 public:
  /// Room for `bytes` in all.
  MessageMemory(Communicator& comm, Buffers buffers, int64_t bytes)
      : comm_(comm), buffers_(buffers), plain_(static_cast<size_t>(bytes)) {
    if (buffers != Buffers::kPlain)
      registered_ = static_cast<uint8_t*>(comm.allocate_registered(std::max<int64_t>(bytes, 1)));
  }
  ~MessageMemory() {
    if (registered_ != nullptr) comm_.free_registered(registered_);
  }
  MessageMemory(const MessageMemory&) = delete;
  MessageMemory& operator=(const MessageMemory&) = delete;

  std::span<uint8_t> take(int64_t bytes) {
    const bool is_plain = registered_ == nullptr || (buffers_ == Buffers::kMixed && ++taken_ % 2 == 0);
    uint8_t* const at = (is_plain ? plain_.data() : registered_) + used_;
    used_ += bytes;
    return {at, static_cast<size_t>(bytes)};
  }

 private:
  Communicator& comm_;
  const Buffers buffers_;
  std::vector<uint8_t> plain_;
  uint8_t* registered_ = nullptr;
  int64_t used_ = 0;
  int taken_ = 0;
};

bool is_equal(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  return std::ranges::equal(a, b);
}

/// All pairs exchange `tags` messages, each side in its own random order of tags.
Status exchange_shuffled(Communicator& comm, int tags, Buffers buffers = Buffers::kPlain) {
  const int me = comm.rank().value;
  std::mt19937 random(static_cast<unsigned>(me + 1));
  std::vector<uint64_t> order(static_cast<size_t>(tags));
  std::iota(order.begin(), order.end(), 0u);
  int64_t all = 0;
  for (uint64_t tag : order) all += size_of_tag(tag) * comm.world_size();
  MessageMemory sent(comm, buffers, all), received(comm, buffers, all);
  std::vector<std::span<uint8_t>> got;
  std::vector<std::pair<int, uint64_t>> what;
  std::vector<Event> events;
  for (int peer = 0; peer < comm.world_size(); ++peer) {
    std::shuffle(order.begin(), order.end(), random);
    for (uint64_t tag : order) {
      const auto message = sent.take(size_of_tag(tag));
      std::ranges::copy(content(me, peer, tag, size_of_tag(tag)), message.begin());
      ALTIPLANO_ASSIGN(const Event event,
                       comm.send(RankId(peer), tag, message.data(), size_of_tag(tag), StreamKind::kTransfer, {}));
      events.push_back(event);
    }
  }
  for (int peer = comm.world_size(); peer-- > 0;) {
    std::shuffle(order.begin(), order.end(), random);
    for (uint64_t tag : order) {
      got.push_back(received.take(size_of_tag(tag)));
      what.emplace_back(peer, tag);
      ALTIPLANO_ASSIGN(const Event event,
                       comm.recv(RankId(peer), tag, got.back().data(), size_of_tag(tag), StreamKind::kTransfer, {}));
      events.push_back(event);
    }
  }
  ALTIPLANO_RETURN_IF_ERROR(wait_all(comm, events, true));
  for (size_t i = 0; i < got.size(); ++i)
    if (!is_equal(got[i], content(what[i].first, me, what[i].second, size_of_tag(what[i].second))))
      return broken("rank {} got tag {} of rank {} wrong", me, what[i].second, what[i].first);
  return Status::ok();
}

Status check_shuffled(CommBackend& backend, RanksAre ranks_are) {
  for (int64_t chunk : {int64_t{1}, int64_t{4096}, int64_t{1} << 18}) {
    CommOptions options = patient_options();
    options.chunk_bytes = chunk;
    ALTIPLANO_RETURN_IF_ERROR(run_on(3, backend, ranks_are, options, [](Communicator& c) {
                                return exchange_shuffled(c, 42);
                              }).with_context(fmt::format("with chunks of {} B", chunk)));
  }
  return Status::ok();
}

/// Memory that peers may reach, used anew for a second round.
Status check_registered_messages(CommBackend& backend, RanksAre ranks_are) {
  for (Buffers buffers : {Buffers::kRegistered, Buffers::kMixed})
    ALTIPLANO_RETURN_IF_ERROR(run_on(3, backend, ranks_are, patient_options(), [&](Communicator& c) -> Status {
      ALTIPLANO_RETURN_IF_ERROR(exchange_shuffled(c, 42, buffers));
      return exchange_shuffled(c, 21, buffers);
    }));
  return Status::ok();
}

/// More messages of one tag than any eager window holds, small and large mixed.
Status exchange_in_order(Communicator& comm, Buffers buffers) {
  constexpr int kMessages = 400;
  const auto bytes_of = [](int i) { return i % 3 == 0 ? int64_t{2000} : int64_t{16}; };
  const RankId peer(1 - comm.rank().value);
  MessageMemory sent(comm, buffers, kMessages * 2000), received(comm, buffers, kMessages * 2000);
  std::vector<std::span<uint8_t>> got;
  std::vector<Event> events;
  for (int i = 0; i < kMessages; ++i) {
    const auto message = sent.take(bytes_of(i));
    std::ranges::fill(message, static_cast<uint8_t>(i));
    ALTIPLANO_ASSIGN(const Event e, comm.send(peer, 9, message.data(), bytes_of(i), StreamKind::kTransfer, {}));
    events.push_back(e);
  }
  for (int i = 0; i < kMessages; ++i) {
    got.push_back(received.take(bytes_of(i)));
    ALTIPLANO_ASSIGN(const Event e, comm.recv(peer, 9, got.back().data(), bytes_of(i), StreamKind::kTransfer, {}));
    events.push_back(e);
  }
  ALTIPLANO_RETURN_IF_ERROR(wait_all(comm, events));
  for (int i = 0; i < kMessages; ++i)
    if (!std::ranges::all_of(got[static_cast<size_t>(i)],
                             [&](uint8_t byte) { return byte == static_cast<uint8_t>(i); }))
      return broken("messages of one tag overtook each other");
  return Status::ok();
}

Status check_order(CommBackend& backend, RanksAre ranks_are) {
  CommOptions options = patient_options();
  options.chunk_bytes = 256;
  for (Buffers buffers : {Buffers::kPlain, Buffers::kMixed})
    ALTIPLANO_RETURN_IF_ERROR(
        run_on(2, backend, ranks_are, options, [&](Communicator& c) { return exchange_in_order(c, buffers); }));
  return Status::ok();
}

Status exchange_large(Communicator& comm) {
  constexpr int64_t kBytes = 24 << 20;
  const RankId peer(1 - comm.rank().value);
  const auto sent = content(comm.rank().value, peer.value, 1, kBytes);
  std::vector<uint8_t> got(sent.size());
  ALTIPLANO_ASSIGN(const Event out, comm.send(peer, 1, sent.data(), kBytes, StreamKind::kTransfer, {}));
  ALTIPLANO_ASSIGN(const Event in, comm.recv(peer, 1, got.data(), kBytes, StreamKind::kTransfer, {}));
  ALTIPLANO_RETURN_IF_ERROR(comm.wait(out));  // although nobody has waited for the receive yet
  ALTIPLANO_RETURN_IF_ERROR(comm.wait(in));
  return got == content(peer.value, comm.rank().value, 1, kBytes) ? Status::ok() : broken("24 MiB arrived changed");
}

Status check_large(CommBackend& backend, RanksAre ranks_are) {
  return run_on(2, backend, ranks_are, patient_options(), exchange_large);
}

/// Rank 0 forwards what it receives; its second send of tag 2 waits for nothing but may not overtake the first.
Status forward_in_order(Communicator& comm) {
  int64_t value = 0, second = 22, results[2] = {0, 0};
  if (comm.rank().value == 0) {
    ALTIPLANO_ASSIGN(const Event in, comm.recv(RankId(1), 1, &value, 8, StreamKind::kTransfer, {}));
    ALTIPLANO_ASSIGN(const Event a, comm.send(RankId(1), 2, &value, 8, StreamKind::kTransfer, {&in, 1}));
    ALTIPLANO_ASSIGN(const Event b, comm.send(RankId(1), 2, &second, 8, StreamKind::kTransfer, {}));
    return wait_all(comm, {b, a});
  }
  ALTIPLANO_ASSIGN(const Event a, comm.recv(RankId(0), 2, &results[0], 8, StreamKind::kTransfer, {}));
  ALTIPLANO_ASSIGN(const Event b, comm.recv(RankId(0), 2, &results[1], 8, StreamKind::kTransfer, {}));
  ALTIPLANO_ASSIGN(const bool early, comm.test(b));
  if (early) return broken("a second message overtook the first of its tag");
  value = 11;
  ALTIPLANO_ASSIGN(const Event out, comm.send(RankId(0), 1, &value, 8, StreamKind::kTransfer, {}));
  ALTIPLANO_RETURN_IF_ERROR(wait_all(comm, {a, b, out}));
  return results[0] == 11 && results[1] == 22 ? Status::ok() : broken("got {} {}, not 11 22", results[0], results[1]);
}

Status check_message_waits(CommBackend& backend, RanksAre ranks_are) {
  return run_on(2, backend, ranks_are, patient_options(), forward_in_order);
}

Status check_self(CommBackend& backend, RanksAre ranks_are) {
  return run_on(1, backend, ranks_are, patient_options(), [](Communicator& c) { return exchange_shuffled(c, 14); });
}

/// Each rank of an outer pair runs a job of its own, both with the same job id.
Status check_two_jobs(CommBackend& backend, RanksAre ranks_are) {
  if (ranks_are == RanksAre::kLaunched) {  // it is up to the launcher to keep its jobs apart
    ++launched_runs().left_out;
    return Status::ok();
  }
  return first_failure(run_processes_all(2, [&](Rendezvous& rendezvous) -> Status {
    ALTIPLANO_RETURN_IF_ERROR(rendezvous.fence(std::chrono::seconds(10)));
    return run_on(3, backend, ranks_are, patient_options(), [](Communicator& c) { return exchange_shuffled(c, 21); });
  }));
}

Status check_reconnect(CommBackend& backend, RanksAre ranks_are) {
  const auto function = [&](Rendezvous& rendezvous) -> Status {
    ALTIPLANO_ASSIGN(auto first, backend.connect(rendezvous, patient_options()));
    ALTIPLANO_ASSIGN(auto second, backend.connect(rendezvous, patient_options()));
    ALTIPLANO_RETURN_IF_ERROR(exchange_shuffled(*first, 7));
    return exchange_shuffled(*second, 7);
  };
  return first_failure(run_ranks_all(2, function, ranks_are));
}

}  // namespace

std::vector<Check> comm_message_checks() {
  return {
      comm_check("messages of many tags and sizes arrive whatever the order of calls", check_shuffled),
      comm_check("messages of memory that the communicator allocated arrive", check_registered_messages),
      comm_check("messages of one tag arrive in the order they were sent", check_order),
      comm_check("large messages cross in both directions at once", check_large),
      comm_check("a message waits for the events it comes after", check_message_waits),
      comm_check("a rank may send to itself", check_self),
      comm_check("two jobs at once do not meet", check_two_jobs),
      comm_check("a job may connect more than once", check_reconnect),
  };
}

}  // namespace altiplano::conformance
