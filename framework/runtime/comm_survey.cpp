#include "framework/runtime/comm_survey.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>

#include "framework/base/plural.hpp"

namespace altiplano {
namespace {

constexpr const char* kWithin = "within a host";
constexpr const char* kBetween = "between hosts";

using Clock = std::chrono::steady_clock;

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

/// Median seconds of a message one way, seen from `pair.a`; nothing on other ranks.
Result<double> ping_pong(Communicator& comm, const SurveyedPair& pair, void* data, int64_t bytes, int calls) {
  const bool is_first = comm.rank() == pair.a;
  const RankId peer = is_first ? pair.b : pair.a;
  const auto send = [&]() -> Status {
    ALTIPLANO_ASSIGN(const Event out, comm.send(peer, 1, data, bytes, StreamKind::kTransfer, {}));
    return comm.wait(out);
  };
  const auto receive = [&]() -> Status {
    ALTIPLANO_ASSIGN(const Event in, comm.recv(peer, 1, data, bytes, StreamKind::kTransfer, {}));
    return comm.wait(in);
  };
  std::vector<double> seconds;
  for (int i = 0; i < calls + 2; ++i) {  // two to warm up
    const auto begin = Clock::now();
    ALTIPLANO_RETURN_IF_ERROR(is_first ? send() : receive());
    ALTIPLANO_RETURN_IF_ERROR(is_first ? receive() : send());
    if (i >= 2) seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count() / 2);
  }
  return median_of(std::move(seconds));
}

Status barrier(Communicator& comm, GroupId world) {
  ALTIPLANO_ASSIGN(const Event event,
                   comm.collective(world, {.kind = CollectiveKind::kBarrier}, StreamKind::kCollective, {}));
  return comm.wait(event);
}

Status measure(Communicator& comm, SurveyedPair& pair, void* data) {
  constexpr int kSmall = 1000, kLarge = 12;
  ALTIPLANO_ASSIGN(const double latency, ping_pong(comm, pair, data, 8, kSmall));
  ALTIPLANO_ASSIGN(const double seconds, ping_pong(comm, pair, data, kSurveyBytes, kLarge));
  pair.latency = Seconds(latency);
  pair.bytes_per_second = static_cast<double>(kSurveyBytes) / seconds;
  return Status::ok();
}

/// Rank 0 hears what the pair's first rank found.
Status tell_rank_0(Communicator& comm, SurveyedPair& pair) {
  if (pair.a.value == 0) return Status::ok();
  double figures[2] = {pair.latency.value, pair.bytes_per_second};
  if (comm.rank() == pair.a) {
    ALTIPLANO_ASSIGN(const Event out, comm.send(RankId(0), 2, figures, sizeof(figures), StreamKind::kTransfer, {}));
    ALTIPLANO_RETURN_IF_ERROR(comm.wait(out));
  }
  if (comm.rank().value == 0) {
    ALTIPLANO_ASSIGN(const Event in, comm.recv(pair.a, 2, figures, sizeof(figures), StreamKind::kTransfer, {}));
    ALTIPLANO_RETURN_IF_ERROR(comm.wait(in));
    pair.latency = Seconds(figures[0]);
    pair.bytes_per_second = figures[1];
  }
  return Status::ok();
}

struct ClassFigures {
  std::vector<double> latencies, bandwidths;
  std::vector<const SurveyedPair*> pairs;
};

/// In the order in which classes come up.
std::vector<std::pair<std::string, ClassFigures>> by_class(const std::vector<SurveyedPair>& pairs) {
  std::vector<std::pair<std::string, ClassFigures>> classes;
  for (const SurveyedPair& pair : pairs) {
    auto found = std::ranges::find(classes, pair.pair_class, &std::pair<std::string, ClassFigures>::first);
    if (found == classes.end()) found = classes.insert(classes.end(), {pair.pair_class, {}});
    found->second.latencies.push_back(pair.latency.value);
    found->second.bandwidths.push_back(pair.bytes_per_second);
    found->second.pairs.push_back(&pair);
  }
  return classes;
}

}  // namespace

std::vector<SurveyedPair> pairs_to_survey(const std::vector<std::string>& hosts, int most) {
  std::vector<SurveyedPair> pairs;
  std::vector<int> first;                      // rank of each host
  std::map<std::string, std::vector<int>> on;  // ranks by host
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    if (on[hosts[rank]].empty()) first.push_back(static_cast<int>(rank));
    on[hosts[rank]].push_back(static_cast<int>(rank));
  }
  int count = 0;
  for (int rank : first) {
    const std::vector<int>& here = on[hosts[static_cast<size_t>(rank)]];
    if (here.size() > 1 && count++ < most) pairs.push_back({RankId(here[0]), RankId(here[1]), kWithin, {}, 0});
  }
  count = 0;
  for (size_t distance = 1; distance < first.size(); ++distance)
    for (size_t i = 0; i + distance < first.size(); ++i)
      if (count++ < most) pairs.push_back({RankId(first[i]), RankId(first[i + distance]), kBetween, {}, 0});
  return pairs;
}

Result<std::vector<SurveyedPair>> survey_pairs(Communicator& comm, std::vector<SurveyedPair> pairs) {
  std::vector<RankId> all;
  for (int rank = 0; rank < comm.world_size(); ++rank) all.emplace_back(rank);
  ALTIPLANO_ASSIGN(const GroupId world, comm.create_group(all, "world"));
  std::vector<std::byte> plain(static_cast<size_t>(kSurveyBytes));
  for (SurveyedPair& pair : pairs) {
    ALTIPLANO_RETURN_IF_ERROR(barrier(comm, world));
    if (comm.rank() == pair.a || comm.rank() == pair.b) ALTIPLANO_RETURN_IF_ERROR(measure(comm, pair, plain.data()));
    ALTIPLANO_RETURN_IF_ERROR(tell_rank_0(comm, pair));
  }
  ALTIPLANO_RETURN_IF_ERROR(barrier(comm, world));
  return pairs;
}

std::string survey_text(const std::vector<SurveyedPair>& pairs, const std::vector<std::string>& hosts) {
  std::string text = fmt::format("{:<16}{:>12}{:>14}   {}\n", "pairs", "latency", "bandwidth", "measured");
  for (const auto& [name, figures] : by_class(pairs)) {
    const auto [slowest, fastest] = std::ranges::minmax(figures.bandwidths);
    const SurveyedPair& example = *figures.pairs.front();
    text += fmt::format("{:<16}{:>9.1f} us{:>9.2f} GB/s   {}, {:.2f} to {:.2f} GB/s; the first {} of {} and {} of {}\n",
                        name, median_of(figures.latencies) * 1e6, median_of(figures.bandwidths) * 1e-9,
                        counted(static_cast<int64_t>(figures.pairs.size()), "pair"), slowest * 1e-9, fastest * 1e-9,
                        example.a, hosts[example.a.index()], example.b, hosts[example.b.index()]);
  }
  return text;
}

std::optional<NetworkFigures> network_of(const std::vector<SurveyedPair>& pairs) {
  for (const auto& [name, of_class] : by_class(pairs)) {
    if (name != kBetween) continue;
    NetworkFigures figures;
    figures.latency = median_of(of_class.latencies);
    figures.bandwidth = median_of(of_class.bandwidths);
    return figures;
  }
  return std::nullopt;
}

std::string survey_yaml(const std::vector<SurveyedPair>& pairs, const std::vector<std::string>& hosts,
                        const std::string& comm) {
  std::string text = fmt::format("comm: \"{}\"\nmessage_bytes: {}\nclasses:\n", comm, kSurveyBytes);
  for (const auto& [name, figures] : by_class(pairs)) {
    text += fmt::format(
        "  - name: {}\n    latency: {:.3e}    # seconds\n    bandwidth: {:.3e}  # bytes per second\n"
        "    pairs:\n",
        name, median_of(figures.latencies), median_of(figures.bandwidths));
    for (const SurveyedPair* pair : figures.pairs)
      text += fmt::format("      - {{ranks: [{}, {}], hosts: [{}, {}], latency: {:.3e}, bandwidth: {:.3e}}}\n", pair->a,
                          pair->b, hosts[pair->a.index()], hosts[pair->b.index()], pair->latency.value,
                          pair->bytes_per_second);
  }
  return text;
}

}  // namespace altiplano
