// Schedules of all ranks carried out together with no buffering: a message moves once both sides have posted it.
#include "framework/api/collectives/collective_schedule.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <map>

#include "framework/api/collectives/algorithm_choice.hpp"
#include "framework/api/collectives/in_place.hpp"
#include "framework/api/collectives/reduce.hpp"

using namespace altiplano;

namespace {

using Data = std::vector<float>;

struct Case {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int64_t count = 0;
  std::vector<int> host_of;  ///< by member
  MessageAlgorithm wanted = MessageAlgorithm::kAuto;
  int64_t piece_bytes = 64;
  int root = 0;
  bool two_level = true;
  bool in_place = false;

  int n() const { return static_cast<int>(host_of.size()); }
};

std::string name_of(const Case& c) {
  std::string hosts;
  for (int host : c.host_of) hosts += std::to_string(host);
  return fmt::format("{} of {} on hosts {}, algorithm {}, pieces of {} B, root {}", to_string(c.kind), c.count, hosts,
                     static_cast<int>(c.wanted), c.piece_bytes, c.root);
}

Data input_of(const Case& c, int rank) {
  const bool is_wide = c.kind == CollectiveKind::kReduceScatter || c.kind == CollectiveKind::kAllToAll;
  Data data(static_cast<size_t>(c.count * (is_wide ? c.n() : 1)));
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = 1.0F / static_cast<float>(1 + (i * 7 + static_cast<size_t>(rank) * 13) % 101);
  return data;
}

/// All ranks of a case.
class World {
 public:
  explicit World(const Case& c) : case_(c) {
    for (int rank = 0; rank < c.n(); ++rank) {
      in_.push_back(input_of(c, rank));
      const bool is_wide = c.kind == CollectiveKind::kAllGather || c.kind == CollectiveKind::kAllToAll;
      out_.emplace_back(static_cast<size_t>(c.count * (is_wide ? c.n() : 1)), -1.0F);
      if (c.kind == CollectiveKind::kBroadcast && rank == c.root) out_.back() = in_.back();
      if (c.in_place) out_.back() = in_.back();
    }
    for (size_t rank = 0; rank < in_.size(); ++rank) {
      const void* in = c.in_place ? out_[rank].data() : in_[rank].data();
      calls_.push_back({c.kind, ReduceKind::kSum, DType::kF32, in, out_[rank].data(), c.count, c.root});
    }
    for (int rank = 0; rank < c.n(); ++rank)
      schedules_.push_back(collective_schedule(calls_[static_cast<size_t>(rank)], {c.n(), rank, c.host_of},
                                               c.piece_bytes, c.wanted, c.two_level));
  }

  /// False: nobody can go on, or sizes differ.
  bool run() {
    std::vector<size_t> stage(schedules_.size());
    for (size_t rank = 0; rank < schedules_.size(); ++rank) post(rank, 0);
    for (bool moved = true; moved;) {
      moved = false;
      if (!deliver()) return false;
      for (size_t rank = 0; rank < schedules_.size(); ++rank) {
        if (stage[rank] == schedules_[rank].stages.size() || open_[rank] > 0) continue;
        run_actions(schedules_[rank].stages[stage[rank]], DType::kF32, ReduceKind::kSum);
        post(rank, ++stage[rank]);
        moved = true;
      }
    }
    for (size_t rank = 0; rank < schedules_.size(); ++rank)
      if (stage[rank] < schedules_[rank].stages.size()) return false;
    return true;
  }

  const Data& out(int rank) const { return out_[static_cast<size_t>(rank)]; }
  int64_t bytes_between_hosts() const { return bytes_between_hosts_; }

  Data expected(int rank) const {
    std::vector<const std::byte*> inputs;
    for (const Data& data : in_) inputs.push_back(reinterpret_cast<const std::byte*>(data.data()));
    Data result(out_[static_cast<size_t>(rank)].size());
    CollectiveCall call = calls_[static_cast<size_t>(rank)];
    call.out = result.data();
    if (call.kind == CollectiveKind::kBroadcast && rank == call.root) return in_[static_cast<size_t>(rank)];
    run_alone(call, rank, inputs);
    return result;
  }

 private:
  void post(size_t rank, size_t stage) {
    open_[rank] = 0;
    if (stage == schedules_[rank].stages.size()) return;
    for (const CollectiveMessage& message : schedules_[rank].stages[stage].messages) {
      const auto me = static_cast<int>(rank);
      auto& queue = message.is_send ? sends_[{me, message.peer}] : receives_[{message.peer, me}];
      queue.push_back(message);
      ++open_[rank];
    }
  }

  bool deliver() {
    for (auto& [pair, sends] : sends_) {
      auto& receives = receives_[pair];
      while (!sends.empty() && !receives.empty()) {
        if (sends.front().bytes != receives.front().bytes) return false;
        if (sends.front().bytes > 0)
          std::memcpy(receives.front().data, sends.front().data, static_cast<size_t>(sends.front().bytes));
        const auto host = [&](int rank) { return case_.host_of[static_cast<size_t>(rank)]; };
        if (host(pair.first) != host(pair.second)) bytes_between_hosts_ += sends.front().bytes;
        sends.erase(sends.begin());
        receives.erase(receives.begin());
        --open_[static_cast<size_t>(pair.first)];
        --open_[static_cast<size_t>(pair.second)];
      }
    }
    return true;
  }

  const Case case_;
  std::vector<Data> in_, out_;
  std::vector<CollectiveCall> calls_;
  std::vector<CollectiveSchedule> schedules_;
  std::map<std::pair<int, int>, std::vector<CollectiveMessage>> sends_, receives_;
  std::map<size_t, int> open_;
  int64_t bytes_between_hosts_ = 0;
};

void check_case(const Case& c) {
  World world(c);
  BOOST_REQUIRE_MESSAGE(world.run(), name_of(c) << " gets stuck");
  if (c.kind == CollectiveKind::kBarrier) return;
  for (int rank = 0; rank < c.n(); ++rank) {
    const Data &have = world.out(rank), want = world.expected(rank);
    size_t differ = 0;
    for (size_t i = 0; i < want.size(); ++i)
      if (!(std::abs(have[i] - want[i]) <= 1e-6F * static_cast<float>(c.n()))) ++differ;
    BOOST_TEST(differ == 0u, name_of(c) << ": rank " << rank << " has " << differ << " wrong elements");
    if (c.kind == CollectiveKind::kAllReduce)
      BOOST_TEST((have == world.out(0)), name_of(c) << ": rank " << rank << " has other bits than rank 0");
  }
}

const std::vector<std::vector<int>> kLayouts = {{0},
                                                {0, 0},
                                                {0, 1},
                                                {0, 0, 1, 1},
                                                {0, 1, 0, 1},
                                                {0, 1, 1},
                                                {0, 0, 0, 1, 1, 2},
                                                {0, 1, 2, 0, 1, 0, 0},
                                                {0, 0, 1, 1, 2, 2, 3, 3},
                                                {0, 0, 0, 0, 0, 0, 0, 0, 0},
                                                std::vector<int>(16, 0),
                                                {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3}};

}  // namespace

BOOST_AUTO_TEST_CASE(every_algorithm_is_right_on_every_layout_of_hosts_and_needs_no_buffers) {
  using enum CollectiveKind;
  using enum MessageAlgorithm;
  for (const auto& hosts : kLayouts)
    for (CollectiveKind kind : {kAllReduce, kReduceScatter, kAllGather, kAllToAll, kBroadcast, kBarrier})
      for (MessageAlgorithm wanted : {kAuto, kDirect, kRing, kRecursive})
        for (int64_t count : {0, 1, 5, 300, 9000})
          for (int64_t piece : {int64_t{4}, int64_t{1000}, int64_t{1} << 18}) {
            if (piece == 4 && count > 300) continue;
            check_case({kind, count, hosts, wanted, piece, static_cast<int>(count) % static_cast<int>(hosts.size())});
          }
}

BOOST_AUTO_TEST_CASE(an_all_reduce_may_write_where_it_reads) {
  using enum MessageAlgorithm;
  for (const auto& hosts : kLayouts)
    for (MessageAlgorithm wanted : {kAuto, kDirect, kRing, kRecursive})
      for (int64_t count : {1, 300, 9000})
        check_case({CollectiveKind::kAllReduce, count, hosts, wanted, 1000, 0, true, /*in_place=*/true});
}

BOOST_AUTO_TEST_CASE(two_levels_send_between_hosts_what_one_rank_of_each_would) {
  const std::vector<int> hosts = {0, 0, 0, 0, 1, 1, 1, 1};  // 2 x 4
  constexpr int64_t kCount = 1 << 16, kBytes = kCount * 4;
  const auto bytes = [&](CollectiveKind kind, bool two_level) {
    World world({kind, kCount, hosts, MessageAlgorithm::kAuto, 1 << 12, 0, two_level});
    BOOST_REQUIRE(world.run());
    return world.bytes_between_hosts();
  };
  BOOST_TEST(bytes(CollectiveKind::kAllReduce, true) == 2 * kBytes);  // half of it there and back, on each of two hosts
  BOOST_TEST(bytes(CollectiveKind::kAllReduce, false) == 8 * kBytes);
  BOOST_TEST(bytes(CollectiveKind::kReduceScatter, true) == 8 * kBytes);
  BOOST_TEST(bytes(CollectiveKind::kReduceScatter, false) == 32 * kBytes);
  BOOST_TEST(bytes(CollectiveKind::kAllGather, true) == 8 * kBytes);
  BOOST_TEST(bytes(CollectiveKind::kAllGather, false) == 32 * kBytes);
  BOOST_TEST(bytes(CollectiveKind::kBroadcast, true) == kBytes);
}

BOOST_AUTO_TEST_CASE(the_choice_says_why) {
  using enum CollectiveKind;
  const auto choice = [](CollectiveKind kind, int64_t bytes, int ranks, int hosts,
                         MessageAlgorithm wanted = MessageAlgorithm::kAuto) {
    GroupPlace group{ranks, 0, {}};
    for (int rank = 0; rank < ranks; ++rank) group.host_of.push_back(rank * hosts / ranks);
    const AlgorithmChoice chosen = choose_algorithm(kind, bytes, group, wanted, true);
    return fmt::format("{}: {}", to_string(chosen.steps), chosen.reason);
  };
  BOOST_TEST(choice(kAllReduce, 1 << 20, 8, 1) == "direct: 8 ranks: all pairs exchange, 8 at most");
  BOOST_TEST(choice(kAllReduce, 1 << 20, 8, 4) == "two-level: 8 ranks on 4 hosts: each byte between two of them once");
  BOOST_TEST(choice(kAllReduce, 512, 8, 4) == "direct: 8 ranks: all pairs exchange, 8 at most");
  BOOST_TEST(choice(kAllReduce, 4096, 16, 16) == "recursive doubling: 16 ranks, 4096 B: fewest stages");
  BOOST_TEST(choice(kAllReduce, 65536, 16, 16) == "recursive halving: 16 ranks, 65536 B: too few for a ring");
  BOOST_TEST(choice(kAllReduce, 1 << 20, 16, 16) ==
             "ring: 16 ranks, 65536 B a step: each talks to its neighbours only");
  BOOST_TEST(choice(kAllGather, 100, 16, 16) == "direct: 16 ranks, only 100 B each");
  BOOST_TEST(choice(kAllReduce, 1 << 20, 8, 4, MessageAlgorithm::kRing) == "ring: as asked");
  BOOST_TEST(choice(kAllGather, 1 << 20, 8, 4, MessageAlgorithm::kRecursive) ==
             "direct: there is no other for all_gather");
}
