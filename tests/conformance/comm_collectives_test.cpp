// Every comm backend: all collectives x types x counts x group sizes x chunk sizes against values computed alone, bit
// for bit.
#include <bit>
#include <boost/test/unit_test.hpp>
#include <cstring>

#include "framework/api/collectives/reduce.hpp"
#include "tests/support/comm_backends.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

using Data = std::vector<std::byte>;

/// Small integers and, for floating types, fractions whose sum depends on the order in which it is taken.
double value_of(int rank, int64_t i, DType dtype) {
  const double integer = static_cast<double>((i * 7 + rank * 13) % 23) - 9.0;
  return is_floating(dtype) ? integer * 1.1 + 1.0 / (1.0 + static_cast<double>(i % 97) + rank) : integer;
}

void store(Data& to, int64_t i, double value, DType dtype) {
  std::byte* at = to.data() + i * size_of(dtype);
  const auto put = [&](auto typed) { std::memcpy(at, &typed, sizeof(typed)); };
  switch (dtype) {
    case DType::kF64:
      return put(value);
    case DType::kF32:
      return put(static_cast<float>(value));
    case DType::kBF16:
      return put(static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16));
    case DType::kI32:
      return put(static_cast<int32_t>(value));
    case DType::kI64:
      return put(static_cast<int64_t>(value));
  }
}

Data filled(int rank, int64_t count, DType dtype) {
  Data data(static_cast<size_t>(count * size_of(dtype)));
  for (int64_t i = 0; i < count; ++i) store(data, i, value_of(rank, i, dtype), dtype);
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
  std::vector<const void*> sources;
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

Status check_case(Communicator& comm, GroupId group, const Case& c, int n, int me, bool in_place) {
  Data in = filled(me, in_count(c, n), c.dtype),
       out(static_cast<size_t>(out_count(c, n) * size_of(c.dtype)), std::byte{0x5A});
  if (c.kind == CollectiveKind::kBroadcast && me == c.root) out = in;
  CollectiveCall call{c.kind, c.reduce, c.dtype, in.data(), in_place ? in.data() : out.data(), c.count, c.root};
  ALTIPLANO_ASSIGN(const Event event, comm.collective(group, call, StreamKind::kCollective, {}));
  ALTIPLANO_RETURN_IF_ERROR(comm.wait(event));
  if ((in_place ? in : out) != expected(c, n, me))
    return runtime_failure("wrong result of {} on rank {}", name_of(c), me);
  return Status::ok();
}

Status check_all(Communicator& comm, GroupId group, int n, int me, std::span<const int64_t> counts) {
  using enum CollectiveKind;
  for (DType dtype : {DType::kF64, DType::kF32, DType::kBF16, DType::kI32, DType::kI64}) {
    for (int64_t count : counts) {
      for (CollectiveKind kind : {kAllReduce, kAllGather, kReduceScatter, kAllToAll, kBroadcast, kBarrier}) {
        const int root = kind == kBroadcast ? static_cast<int>(count % n) : 0;
        ALTIPLANO_RETURN_IF_ERROR(check_case(comm, group, {kind, dtype, count, ReduceKind::kSum, root}, n, me, false));
      }
      ALTIPLANO_RETURN_IF_ERROR(
          check_case(comm, group, {kReduceScatter, dtype, count, ReduceKind::kMax}, n, me, false));
      ALTIPLANO_RETURN_IF_ERROR(check_case(comm, group, {kAllReduce, dtype, count, ReduceKind::kMax}, n, me, true));
    }
  }
  return Status::ok();
}

Status check_world(Communicator& comm, std::span<const int64_t> counts) {
  std::vector<RankId> all;
  for (int r = 0; r < comm.world_size(); ++r) all.emplace_back(r);
  ALTIPLANO_ASSIGN(const GroupId world, comm.create_group(all, "world"));
  return check_all(comm, world, comm.world_size(), comm.rank().value, counts);
}

constexpr int64_t kCounts[] = {0, 1, 2, 3, 1000, 10007};
constexpr int64_t kTinyCounts[] = {0, 1, 2, 3, 257, 1000};

}  // namespace

BOOST_AUTO_TEST_CASE(every_collective_of_every_type_and_count_is_exact_on_every_group_size) {
  for (CommBackend* backend : comm_backends())
    for (int ranks : {1, 2, 3, 4, 5, 8}) {
      const Status status =
          run_backend(ranks, *backend, test_options(), [](Communicator& c) { return check_world(c, kCounts); });
      BOOST_TEST(status.is_ok(), ranks << " ranks: " << status.to_string());
    }
}

BOOST_AUTO_TEST_CASE(collectives_cut_into_many_chunks_are_exact) {
  for (CommBackend* backend : comm_backends())
    for (int ranks : {2, 3, 5}) {
      CommOptions options = test_options();
      options.chunk_bytes = 1;  // the smallest there is
      const Status status =
          run_backend(ranks, *backend, options, [](Communicator& c) { return check_world(c, kTinyCounts); });
      BOOST_TEST(status.is_ok(), ranks << " ranks: " << status.to_string());
    }
}

BOOST_AUTO_TEST_CASE(checked_calls_give_the_same_results) {
  for (CommBackend* backend : comm_backends()) {
    CommOptions options = test_options();
    options.check_calls = true;
    const Status status =
        run_backend(3, *backend, options, [](Communicator& c) { return check_world(c, kTinyCounts); });
    BOOST_TEST(status.is_ok(), status.to_string());
  }
}

BOOST_AUTO_TEST_CASE(overlapping_subgroups_in_any_order_of_ranks_are_exact) {
  for (CommBackend* backend : comm_backends()) {
    const Status status = run_backend(5, *backend, test_options(), [](Communicator& comm) -> Status {
      // Two groups of equal members but other order, and one that overlaps both.
      for (const std::vector<int>& members :
           {std::vector{3, 0, 4}, std::vector{0, 3, 4}, std::vector{4, 1, 2, 3}, std::vector{2}}) {
        const auto me = std::find(members.begin(), members.end(), comm.rank().value);
        if (me == members.end()) continue;
        std::vector<RankId> ranks(members.begin(), members.end());
        ALTIPLANO_ASSIGN(const GroupId group, comm.create_group(ranks, "part"));
        const int n = static_cast<int>(members.size());
        ALTIPLANO_RETURN_IF_ERROR(check_all(comm, group, n, static_cast<int>(me - members.begin()), kTinyCounts));
      }
      return Status::ok();
    });
    BOOST_TEST(status.is_ok(), status.to_string());
  }
}

BOOST_AUTO_TEST_CASE(collectives_of_several_groups_and_streams_may_be_outstanding_together) {
  for (CommBackend* backend : comm_backends()) {
    const Status status = run_backend(4, *backend, test_options(), [](Communicator& comm) -> Status {
      std::vector<RankId> all = {RankId(0), RankId(1), RankId(2), RankId(3)};
      ALTIPLANO_ASSIGN(const GroupId a, comm.create_group(all, "same"));
      ALTIPLANO_ASSIGN(const GroupId b, comm.create_group(all, "same"));
      constexpr int64_t kCount = 50'000;
      std::vector<std::vector<float>> data(12, std::vector<float>(kCount, static_cast<float>(comm.rank().value + 1)));
      std::vector<Event> events;
      for (size_t i = 0; i < data.size(); ++i) {
        CollectiveCall call{
            CollectiveKind::kAllReduce, ReduceKind::kSum, DType::kF32, data[i].data(), data[i].data(), kCount, 0};
        const auto stream = i % 3 == 0 ? StreamKind::kTransfer : StreamKind::kCollective;
        // Ranks disagree on which of the two lanes they fill first; inside a lane the order is the same.
        ALTIPLANO_ASSIGN(const Event event, comm.collective(i % 2 == 0 ? a : b, call, stream, {}));
        events.push_back(event);
      }
      for (size_t i = events.size(); i-- > 0;) ALTIPLANO_RETURN_IF_ERROR(comm.wait(events[i]));
      for (const auto& values : data)
        if (values != std::vector<float>(kCount, 10.0F)) return runtime_failure("wrong sum {}", values[0]);
      return comm.wait(events.front());  // a done event may be waited for again
    });
    BOOST_TEST(status.is_ok(), status.to_string());
  }
}

BOOST_AUTO_TEST_CASE(a_collective_waits_for_the_events_it_comes_after) {
  for (CommBackend* backend : comm_backends()) {
    const Status status = run_backend(2, *backend, test_options(), [](Communicator& comm) -> Status {
      const std::vector<RankId> all = {RankId(0), RankId(1)};
      ALTIPLANO_ASSIGN(const GroupId group, comm.create_group(all, "pair"));
      const RankId peer(1 - comm.rank().value);
      std::vector<int64_t> got(300'000, -1), sent(300'000, comm.rank().value + 1);
      const auto bytes = static_cast<int64_t>(got.size() * sizeof(int64_t));
      ALTIPLANO_ASSIGN(const Event received, comm.recv(peer, 5, got.data(), bytes, StreamKind::kTransfer, {}));
      CollectiveCall call{CollectiveKind::kAllReduce,
                          ReduceKind::kSum,
                          DType::kI64,
                          got.data(),
                          got.data(),
                          static_cast<int64_t>(got.size()),
                          0};
      ALTIPLANO_ASSIGN(const Event reduced, comm.collective(group, call, StreamKind::kCollective, {&received, 1}));
      ALTIPLANO_ASSIGN(const Event send, comm.send(peer, 5, sent.data(), bytes, StreamKind::kTransfer, {}));
      ALTIPLANO_RETURN_IF_ERROR(comm.wait(reduced));
      ALTIPLANO_RETURN_IF_ERROR(comm.wait(send));
      if (got != std::vector<int64_t>(got.size(), 3)) return runtime_failure("got {}", got[0]);
      return Status::ok();
    });
    BOOST_TEST(status.is_ok(), status.to_string());
  }
}
