#include "framework/runtime/exchange_measurement.hpp"

#include <algorithm>
#include <cstring>

#include "framework/cost/work_samples.hpp"
#include "framework/runtime/timing.hpp"

namespace altiplano {

namespace {

constexpr int64_t kSmallestTensor = 1 << 10, kLargestTensor = 1 << 24;
constexpr double kSecondsPerSize = 0.02, kSenderBusy = 0.03;
constexpr int kMostTimedCalls = 60, kLeastTimedCalls = 3;

/// Memory for both ends of a call: the communicator's where it has some.
class ExchangeBuffers {
 public:
  explicit ExchangeBuffers(Communicator& communicator) : communicator_(communicator) {
    registered_ = communicator.allocate_registered(2 * kLargestTensor);
    if (registered_ == nullptr) plain_.resize(static_cast<size_t>(2 * kLargestTensor));
    bytes_ = registered_ != nullptr ? static_cast<std::byte*>(registered_) : plain_.data();
    std::memset(bytes_, 0, static_cast<size_t>(2 * kLargestTensor));
  }
  ExchangeBuffers(const ExchangeBuffers&) = delete;
  ExchangeBuffers& operator=(const ExchangeBuffers&) = delete;
  ~ExchangeBuffers() {
    if (registered_ != nullptr) communicator_.free_registered(registered_);
  }
  std::byte* in() { return bytes_; }
  std::byte* out() { return bytes_ + kLargestTensor; }

 private:
  Communicator& communicator_;
  void* registered_ = nullptr;
  std::vector<std::byte> plain_;
  std::byte* bytes_ = nullptr;
};

/// Whole tensors of `bytes` as collective_cost.hpp counts them.
CollectiveCall measured_call(CollectiveKind kind, int64_t bytes, int ranks, ExchangeBuffers& buffers) {
  CollectiveCall call{kind, ReduceKind::kSum, DType::kF32, buffers.in(), buffers.out(), bytes / 4, 0};
  if (kind == CollectiveKind::kAllReduce) call.out = buffers.in();
  if (kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kAllToAll)
    call.count = std::max<int64_t>(1, call.count / ranks);
  return call;
}

Status call_and_wait(Communicator& communicator, GroupId group, const CollectiveCall& call) {
  ALTIPLANO_ASSIGN(const Event event, communicator.collective(group, call, StreamKind::kCollective, {}));
  return communicator.wait(event);
}

class ExchangeTrial {
 public:
  explicit ExchangeTrial(Communicator& communicator) : communicator_(communicator), buffers_(communicator) {}

  Result<ExchangeTimes> run() {
    ALTIPLANO_ASSIGN(world_, group_of_first(communicator_, communicator_.world_size(), "measured world"));
    std::vector<int> sizes = {2};
    if (communicator_.world_size() > 2) sizes.push_back(communicator_.world_size());
    for (int ranks : sizes) {
      const bool is_member = communicator_.rank().value < ranks;
      GroupId group;
      if (is_member) {
        ALTIPLANO_ASSIGN(group, group_of_first(communicator_, ranks, fmt::format("first {}", ranks)));
      }
      for (CollectiveKind kind : kAllCollectives) {
        if (is_member && kind != CollectiveKind::kBarrier) ALTIPLANO_RETURN_IF_ERROR(collective(kind, ranks, group));
        ALTIPLANO_RETURN_IF_ERROR(meet_all(communicator_, world_));
      }
    }
    if (communicator_.rank().value < 2) {
      ALTIPLANO_RETURN_IF_ERROR(messages());
      ALTIPLANO_RETURN_IF_ERROR(find_eager());
    }
    ALTIPLANO_RETURN_IF_ERROR(meet_all(communicator_, world_));
    if (communicator_.rank().value != 0) times_ = {};
    return std::move(times_);
  }

 private:
  /// The same number of calls on every rank: by the bytes alone.
  static int calls_of(int64_t bytes) {
    const double guess = 5e-6 + static_cast<double>(bytes) / 1e9;
    return std::clamp(static_cast<int>(kSecondsPerSize / guess), kLeastTimedCalls, kMostTimedCalls);
  }

  void write(int64_t bytes) { std::memset(buffers_.in(), 1, static_cast<size_t>(bytes)); }

  Status collective(CollectiveKind kind, int ranks, GroupId group) {
    std::vector<std::pair<double, double>> points;
    for (int64_t bytes = kSmallestTensor; bytes <= kLargestTensor; bytes *= 4) {
      const CollectiveCall call = measured_call(kind, bytes, ranks, buffers_);
      std::vector<double> seconds;
      for (int i = 0; i <= calls_of(bytes); ++i) {
        write(bytes);
        ALTIPLANO_RETURN_IF_ERROR(meet_all(communicator_, group));
        const auto begin = std::chrono::steady_clock::now();
        ALTIPLANO_RETURN_IF_ERROR(call_and_wait(communicator_, group, call));
        if (i > 0) seconds.push_back(seconds_since(begin));
      }
      points.emplace_back(static_cast<double>(bytes), quantile(std::move(seconds), 0.5));
    }
    times_.curves.push_back({kind, ranks, fit_times(points)});
    return Status::ok();
  }

  /// There and back between the first two: half of it is one message.
  Status messages() {
    const bool is_first = communicator_.rank().value == 0;
    const RankId peer(is_first ? 1 : 0);
    std::vector<std::pair<double, double>> points;
    for (int64_t bytes = kSmallestTensor; bytes <= kLargestTensor; bytes *= 4) {
      std::vector<double> seconds;
      for (int i = 0; i <= calls_of(bytes); ++i) {
        write(bytes);
        const auto begin = std::chrono::steady_clock::now();
        if (is_first) ALTIPLANO_RETURN_IF_ERROR(send(peer, bytes));
        ALTIPLANO_RETURN_IF_ERROR(receive(peer, bytes));
        if (!is_first) ALTIPLANO_RETURN_IF_ERROR(send(peer, bytes));
        if (i > 0) seconds.push_back(seconds_since(begin) / 2);
      }
      points.emplace_back(static_cast<double>(bytes), quantile(std::move(seconds), 0.5));
    }
    times_.curves.push_back({std::nullopt, 2, fit_times(points)});
    return Status::ok();
  }

  /// The second sends and works on for kSenderBusy; the first, which asks a little later, says when it had the message.
  Status find_eager() {
    ALTIPLANO_ASSIGN(const GroupId both, group_of_first(communicator_, 2, "two that send eagerly"));
    for (int64_t bytes = kSmallestTensor; bytes <= kLargestTensor; bytes *= 2) {
      int early = 0;
      for (int i = 0; i < 3; ++i) {
        ALTIPLANO_RETURN_IF_ERROR(meet_all(communicator_, both));
        const auto begin = std::chrono::steady_clock::now();
        if (communicator_.rank().value == 0) {
          while (seconds_since(begin) < kSenderBusy / 8) {
          }
          ALTIPLANO_RETURN_IF_ERROR(receive(RankId(1), bytes));
          early += seconds_since(begin) < kSenderBusy / 2 ? 1 : 0;
          continue;
        }
        ALTIPLANO_ASSIGN(const Event sent,
                         communicator_.send(RankId(0), 1, buffers_.in(), bytes, StreamKind::kTransfer, {}));
        while (seconds_since(begin) < kSenderBusy) {
        }
        ALTIPLANO_RETURN_IF_ERROR(communicator_.wait(sent));
      }
      if (early >= 2 && times_.eager_messages * 2 >= static_cast<double>(bytes) - kSmallestTensor)
        times_.eager_messages = static_cast<double>(bytes);
    }
    return Status::ok();
  }

  Status send(RankId peer, int64_t bytes) {
    ALTIPLANO_ASSIGN(const Event sent, communicator_.send(peer, 1, buffers_.in(), bytes, StreamKind::kTransfer, {}));
    return communicator_.wait(sent);
  }
  Status receive(RankId peer, int64_t bytes) {
    ALTIPLANO_ASSIGN(const Event got, communicator_.recv(peer, 1, buffers_.out(), bytes, StreamKind::kTransfer, {}));
    return communicator_.wait(got);
  }

  Communicator& communicator_;
  ExchangeBuffers buffers_;
  GroupId world_;
  ExchangeTimes times_;
};

}  // namespace

Result<GroupId> group_of_first(Communicator& communicator, int ranks, const std::string& name) {
  std::vector<RankId> members;
  for (int r = 0; r < ranks; ++r) members.emplace_back(r);
  return communicator.create_group(members, name);
}

Status meet_all(Communicator& communicator, GroupId world) {
  CollectiveCall call;
  call.kind = CollectiveKind::kBarrier;
  return call_and_wait(communicator, world, call);
}

Result<ExchangeTimes> measure_exchanges(Communicator& communicator) {
  return ExchangeTrial(communicator).run();
}

}  // namespace altiplano
