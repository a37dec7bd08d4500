#include "framework/cluster/network.hpp"

#include "framework/cluster/yaml_section.hpp"

namespace altiplano {
namespace {

std::vector<int> ranks_of_hosts(const RankPlaces& places) {
  std::vector<int> ranks(static_cast<size_t>(places.num_groups(0)), 0);
  for (int host : places.groups.front()) ++ranks[static_cast<size_t>(host)];
  return ranks;
}

}  // namespace

std::string NetworkFigures::to_yaml() const {
  return fmt::format("altiplano_network: 1\nlatency: {:.2f} us\nbandwidth: {:.3f} GB/s\nmeasured: \"{}\"\n",
                     latency * 1e6, bandwidth * 1e-9, measured);
}

Result<NetworkFigures> NetworkFigures::from_yaml(const std::string& text, const std::string& file_name) {
  NetworkFigures figures;
  Status status;
  std::map<std::string, YAML::Mark> marks;
  try {
    YamlSection file(YAML::Load(text), "", file_name, marks, status);
    int64_t version = 0;
    file.read_int("altiplano_network", version);
    if (status.is_ok() && version != 1)
      file.fail(marks["altiplano_network"], "altiplano_network", fmt::format("version {}; expected 1", version));
    file.read_quantity("latency", QuantityKind::kSeconds, figures.latency);
    file.read_quantity("bandwidth", QuantityKind::kBytesPerSecond, figures.bandwidth);
    file.read_text("measured", figures.measured);
    if (status.is_ok() && figures.bandwidth <= 0) file.fail(marks["bandwidth"], "bandwidth", "must be more than 0");
    file.finish();
  } catch (const YAML::Exception& e) {
    return invalid_argument("{}:{}:{}: {}", file_name, e.mark.line + 1, e.mark.column + 1, e.msg);
  }
  ALTIPLANO_RETURN_IF_ERROR(status);
  return figures;
}

Cluster join_hosts(const Cluster& host, const RankPlaces& places, const NetworkFigures& network) {
  const std::vector<int> ranks = ranks_of_hosts(places);
  const auto [least, most] = std::ranges::minmax(ranks);
  const int of_a_host = least == most ? most : 1;
  Cluster joined = host.resized(of_a_host);
  Level level;
  level.name = "network";
  level.fanout = places.num_ranks() / of_a_host;
  level.latency = network.latency;
  level.bandwidth = network.bandwidth;
  level.oversubscription = most;
  joined.levels.push_back(std::move(level));
  return joined;
}

int most_ranks_of_a_host(const RankPlaces& places, int num_ranks) {
  return places.groups.empty() ? num_ranks : std::ranges::max(ranks_of_hosts(places));
}

}  // namespace altiplano
