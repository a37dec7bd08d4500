// Collectives: all kinds x types x counts x group sizes x chunk sizes against values computed alone.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include "framework/api/collectives/reduce.hpp"
#include "framework/conformance/comm_checks.hpp"
#include "framework/kernels/element.hpp"

namespace altiplano::conformance {
namespace {

using Data = std::vector<std::byte>;

/// Small integers and, for floating types, fractions whose sum depends on the order in which it is taken.
double value_of(int rank, int64_t i, DType dtype) {
  const double integer = static_cast<double>((i * 7 + rank * 13) % 23) - 9.0;
  return is_floating(dtype) ? integer * 1.1 + 1.0 / (1.0 + static_cast<double>(i % 97) + rank) : integer;
}

Data filled(int rank, int64_t count, DType dtype) {
  Data data(static_cast<size_t>(count * size_of(dtype)));
  for (int64_t i = 0; i < count; ++i) store_element(dtype, value_of(rank, i, dtype), data.data() + i * size_of(dtype));
  return data;
}

struct Case {
  CollectiveKind kind;
  DType dtype;
  int64_t count;
  ReduceKind reduce = ReduceKind::kSum;
  int root = 0;
};

int64_t in_count(const Case& c, int n) {
  return c.count * (c.kind == CollectiveKind::kReduceScatter || c.kind == CollectiveKind::kAllToAll ? n : 1);
}
int64_t out_count(const Case& c, int n) {
  if (c.kind == CollectiveKind::kBarrier) return 0;
  return c.count * (c.kind == CollectiveKind::kAllGather || c.kind == CollectiveKind::kAllToAll ? n : 1);
}

Data reduced(const std::vector<Data>& inputs, int64_t begin, const Case& c) {
  Data out(static_cast<size_t>(c.count * size_of(c.dtype)));
  std::vector<const std::byte*> sources;
  for (const auto& input : inputs) sources.push_back(input.data() + begin * size_of(c.dtype));
  reduce_in_order(out.data(), sources, c.count, c.dtype, c.reduce);
  return out;
}

Data slice(const Data& data, int64_t begin, int64_t count, DType dtype) {
  const auto* from = data.data() + begin * size_of(dtype);
  return {from, from + count * size_of(dtype)};
}

Data expected(const Case& c, int n, int me) {
  std::vector<Data> inputs;
  for (int r = 0; r < n; ++r) inputs.push_back(filled(r, in_count(c, n), c.dtype));
  Data out;
  switch (c.kind) {
    case CollectiveKind::kAllReduce:
      return reduced(inputs, 0, c);
    case CollectiveKind::kReduceScatter:
      return reduced(inputs, me * c.count, c);
    case CollectiveKind::kBroadcast:
      return filled(c.root, c.count, c.dtype);
    case CollectiveKind::kBarrier:
      return {};
    case CollectiveKind::kAllGather:
      for (const auto& input : inputs) out.insert(out.end(), input.begin(), input.end());
      return out;
    case CollectiveKind::kAllToAll:
      for (const auto& input : inputs) {
        const Data part = slice(input, me * c.count, c.count, c.dtype);
        out.insert(out.end(), part.begin(), part.end());
      }
      return out;
  }
  return out;
}

std::string name_of(const Case& c) {
  return fmt::format("{} {} {} of {} (root {})", to_string(c.kind), c.reduce == ReduceKind::kSum ? "sum" : "max",
                     c.count, to_string(c.dtype), c.root);
}

/// Rounding that another order of summing n numbers of about 20 may make.
double tolerance_of(const Case& c, int n) {
  if (!is_floating(c.dtype) || c.reduce == ReduceKind::kMax) return 0;
  if (c.kind != CollectiveKind::kAllReduce && c.kind != CollectiveKind::kReduceScatter) return 0;
  const double unit = c.dtype == DType::kF64 ? 0x1p-52 : c.dtype == DType::kF32 ? 0x1p-23 : 0x1p-7;
  return unit * 20 * n * n;
}

Status compare(const Data& have, const Data& want, const Case& c, int n, int me, bool exact) {
  if (have == want) return Status::ok();
  const double allowed = exact ? 0 : tolerance_of(c, n);
  for (size_t i = 0; i * static_cast<size_t>(size_of(c.dtype)) < want.size(); ++i) {
    const size_t at = i * static_cast<size_t>(size_of(c.dtype));
    const double is = load_element(c.dtype, have.data() + at), should = load_element(c.dtype, want.data() + at);
    const bool same_bits = std::memcmp(have.data() + at, want.data() + at, static_cast<size_t>(size_of(c.dtype))) == 0;
    if (!same_bits && !(std::abs(is - should) <= allowed))
      return broken("wrong result of {} on rank {} of {}: element {} is {}, should be {}", name_of(c), me, n, i, is,
                    should);
  }
  return Status::ok();
}

/// A buffer of a call: plain memory, or the communicator's where it has such, away from the start of it.
class CallBuffer {
 public:
  CallBuffer(Communicator& comm, bool is_registered, const Data& data) : comm_(comm), plain_(data) {
    if (is_registered && !data.empty())
      registered_ = static_cast<std::byte*>(comm.allocate_registered(kOffset + static_cast<int64_t>(data.size())));
    if (registered_ != nullptr) std::memcpy(registered_ + kOffset, data.data(), data.size());
  }
  ~CallBuffer() {
    if (registered_ != nullptr) comm_.free_registered(registered_);
  }
  CallBuffer(const CallBuffer&) = delete;
  CallBuffer& operator=(const CallBuffer&) = delete;

  std::byte* data() { return registered_ != nullptr ? registered_ + kOffset : plain_.data(); }
  Data contents() { return {data(), data() + plain_.size()}; }

 private:
  static constexpr int64_t kOffset = 192;
  Communicator& comm_;
  std::byte* registered_ = nullptr;
  Data plain_;
};

Status check_case(Communicator& comm, GroupId group, const Case& c, int n, int me, bool in_place, Buffers buffers,
                  bool exact) {
  const Data mine = filled(me, in_count(c, n), c.dtype);
  Data filling(static_cast<size_t>(out_count(c, n) * size_of(c.dtype)), std::byte{0x5A});
  if (c.kind == CollectiveKind::kBroadcast && me == c.root) filling = mine;
  const bool is_registered = buffers == Buffers::kRegistered || (buffers == Buffers::kMixed && me != 0);
  CallBuffer in(comm, is_registered, mine), out(comm, is_registered, filling);
  CollectiveCall call{c.kind, c.reduce, c.dtype, in.data(), in_place ? in.data() : out.data(), c.count, c.root};
  ALTIPLANO_ASSIGN(const Event event, comm.collective(group, call, StreamKind::kCollective, {}));
  ALTIPLANO_RETURN_IF_ERROR(comm.wait(event).with_context(fmt::format("in {}", name_of(c))));
  return compare(in_place ? in.contents() : out.contents(), expected(c, n, me), c, n, me, exact);
}

Status check_all(Communicator& comm, GroupId group, int n, int me, std::span<const int64_t> counts, Buffers buffers,
                 bool exact) {
  using enum CollectiveKind;
  for (DType dtype : {DType::kF64, DType::kF32, DType::kBF16, DType::kI32, DType::kI64}) {
    for (int64_t count : counts) {
      for (CollectiveKind kind : {kAllReduce, kAllGather, kReduceScatter, kAllToAll, kBroadcast, kBarrier}) {
        const int root = kind == kBroadcast ? static_cast<int>(count % n) : 0;
        ALTIPLANO_RETURN_IF_ERROR(
            check_case(comm, group, {kind, dtype, count, ReduceKind::kSum, root}, n, me, false, buffers, exact));
      }
      const Case scatter{kReduceScatter, dtype, count, ReduceKind::kMax},
          reduce{kAllReduce, dtype, count, ReduceKind::kMax};
      ALTIPLANO_RETURN_IF_ERROR(check_case(comm, group, scatter, n, me, false, buffers, exact));
      ALTIPLANO_RETURN_IF_ERROR(check_case(comm, group, reduce, n, me, true, buffers, exact));
    }
  }
  return Status::ok();
}

constexpr int64_t kCounts[] = {0, 1, 2, 3, 1000, 10007};
constexpr int64_t kTinyCounts[] = {0, 1, 2, 3, 257, 1000};

Status check_group_sizes(CommBackend& backend, RanksAre ranks_are) {
  for (int ranks : {1, 2, 3, 4, 5, 8})
    ALTIPLANO_RETURN_IF_ERROR(
        check_collectives(backend, ranks_are, ranks, patient_options(), kCounts, Buffers::kPlain, false));
  return Status::ok();
}

Status check_chunks(CommBackend& backend, RanksAre ranks_are) {
  CommOptions options = patient_options();
  options.chunk_bytes = 1;  // the smallest there is
  for (int ranks : {2, 3, 5})
    ALTIPLANO_RETURN_IF_ERROR(
        check_collectives(backend, ranks_are, ranks, options, kTinyCounts, Buffers::kPlain, false));
  return Status::ok();
}

Status check_registered(CommBackend& backend, RanksAre ranks_are) {
  for (Buffers buffers : {Buffers::kRegistered, Buffers::kMixed})
    for (int ranks : {1, 2, 3, 4, 8})
      ALTIPLANO_RETURN_IF_ERROR(
          check_collectives(backend, ranks_are, ranks, patient_options(), kTinyCounts, buffers, false));
  return Status::ok();
}

Status check_checked(CommBackend& backend, RanksAre ranks_are) {
  CommOptions options = patient_options();
  options.check_calls = true;
  return check_collectives(backend, ranks_are, 3, options, kTinyCounts, Buffers::kPlain, false);
}

/// Two groups of equal members but other order, one that overlaps both, and one of one rank.
Status use_overlapping_groups(Communicator& comm) {
  for (const std::vector<int>& members :
       {std::vector{3, 0, 4}, std::vector{0, 3, 4}, std::vector{4, 1, 2, 3}, std::vector{2}}) {
    const auto me = std::find(members.begin(), members.end(), comm.rank().value);
    if (me == members.end()) continue;
    std::vector<RankId> ranks(members.begin(), members.end());
    ALTIPLANO_ASSIGN(const GroupId group, comm.create_group(ranks, "part"));
    const int n = static_cast<int>(members.size());
    ALTIPLANO_RETURN_IF_ERROR(
        check_all(comm, group, n, static_cast<int>(me - members.begin()), kTinyCounts, Buffers::kPlain, false));
  }
  return Status::ok();
}

Status check_subgroups(CommBackend& backend, RanksAre ranks_are) {
  return run_on(5, backend, ranks_are, patient_options(), use_overlapping_groups);
}

Status use_many_at_once(Communicator& comm) {
  ALTIPLANO_ASSIGN(const GroupId a, world_group(comm, "same"));
  ALTIPLANO_ASSIGN(const GroupId b, world_group(comm, "same"));
  constexpr int64_t kCount = 50'000;
  std::vector<std::vector<float>> data(12, std::vector<float>(kCount, static_cast<float>(comm.rank().value + 1)));
  std::vector<Event> events;
  for (size_t i = 0; i < data.size(); ++i) {
    CollectiveCall call{
        CollectiveKind::kAllReduce, ReduceKind::kSum, DType::kF32, data[i].data(), data[i].data(), kCount, 0};
    const auto stream = i % 3 == 0 ? StreamKind::kTransfer : StreamKind::kCollective;
    ALTIPLANO_ASSIGN(const Event event, comm.collective(i % 2 == 0 ? a : b, call, stream, {}));
    events.push_back(event);
  }
  for (size_t i = events.size(); i-- > 0;) ALTIPLANO_RETURN_IF_ERROR(comm.wait(events[i]));
  for (const auto& values : data)
    if (values != std::vector<float>(kCount, 10.0F)) return broken("the sum of 1, 2, 3, 4 is {}", values[0]);
  return comm.wait(events.front());  // a done event may be waited for again
}

Status check_outstanding(CommBackend& backend, RanksAre ranks_are) {
  return run_on(4, backend, ranks_are, patient_options(), use_many_at_once);
}

Status use_dependency(Communicator& comm) {
  ALTIPLANO_ASSIGN(const GroupId group, world_group(comm, "pair"));
  const RankId peer(1 - comm.rank().value);
  std::vector<int64_t> got(300'000, -1), sent(300'000, comm.rank().value + 1);
  const auto count = static_cast<int64_t>(got.size()), bytes = count * 8;
  ALTIPLANO_ASSIGN(const Event received, comm.recv(peer, 5, got.data(), bytes, StreamKind::kTransfer, {}));
  CollectiveCall call{CollectiveKind::kAllReduce, ReduceKind::kSum, DType::kI64, got.data(), got.data(), count, 0};
  ALTIPLANO_ASSIGN(const Event reduced, comm.collective(group, call, StreamKind::kCollective, {&received, 1}));
  ALTIPLANO_ASSIGN(const Event send, comm.send(peer, 5, sent.data(), bytes, StreamKind::kTransfer, {}));
  ALTIPLANO_RETURN_IF_ERROR(comm.wait(reduced));
  ALTIPLANO_RETURN_IF_ERROR(comm.wait(send));
  if (got != std::vector<int64_t>(got.size(), 3)) return broken("an all_reduce after a recv gave {}, not 3", got[0]);
  return Status::ok();
}

Status check_collective_waits(CommBackend& backend, RanksAre ranks_are) {
  return run_on(2, backend, ranks_are, patient_options(), use_dependency);
}

/// Equal calls while the ranks arrive in ever other orders.
Status repeat_sums(Communicator& comm) {
  ALTIPLANO_ASSIGN(const GroupId group, world_group(comm, "world"));
  Data first;
  for (int round = 0; round < 6; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds((comm.rank().value + round) % 3));
    Data data = filled(comm.rank().value, 5003, DType::kF32);
    CollectiveCall call{CollectiveKind::kAllReduce, ReduceKind::kSum, DType::kF32, data.data(), data.data(), 5003, 0};
    ALTIPLANO_ASSIGN(const Event event, comm.collective(group, call, StreamKind::kCollective, {}));
    ALTIPLANO_RETURN_IF_ERROR(comm.wait(event));
    if (round == 0) first = data;
    if (data != first) return broken("all_reduce {} of equal numbers gave other bits than the first", round + 1);
  }
  return Status::ok();
}

Status check_deterministic(CommBackend& backend, RanksAre ranks_are) {
  return run_on(4, backend, ranks_are, patient_options(), repeat_sums);
}

}  // namespace

Status check_collectives(CommBackend& backend, RanksAre ranks_are, int ranks, const CommOptions& options,
                         std::span<const int64_t> counts, Buffers buffers, bool exact) {
  const auto body = [&](Communicator& comm) -> Status {
    ALTIPLANO_ASSIGN(const GroupId world, world_group(comm, "world"));
    return check_all(comm, world, comm.world_size(), comm.rank().value, counts, buffers, exact);
  };
  return run_on(ranks, backend, ranks_are, options, body).with_context(fmt::format("with {} ranks", ranks));
}

std::vector<Check> comm_collective_checks() {
  std::vector<Check> checks = {
      comm_check("collectives of every type and count are right for 1 to 8 ranks", check_group_sizes),
      comm_check("collectives cut into many chunks are right", check_chunks),
      comm_check("collectives in registered memory, of all ranks or of some, are right", check_registered),
      comm_check("checked calls give the same results", check_checked),
      comm_check("overlapping groups in any order of ranks are right", check_subgroups),
      comm_check("collectives of several groups and streams may be outstanding", check_outstanding),
      comm_check("a collective waits for the events it comes after", check_collective_waits),
      comm_check("deterministic: equal calls give equal bits", check_deterministic),
  };
  checks.back().not_owed = [](const Subject& subject) -> std::string {
    return (subject.info.capabilities & kCommDeterministic) == 0 ? "capability deterministic is not claimed" : "";
  };
  return checks;
}

}  // namespace altiplano::conformance
