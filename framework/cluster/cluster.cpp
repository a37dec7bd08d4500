#include "framework/cluster/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"

namespace altiplano {

int Cluster::devices_in_level(int index) const {
  int devices = 1;
  for (int i = 0; i <= index; ++i) devices *= levels[static_cast<size_t>(i)].fanout;
  return devices;
}

int Cluster::num_devices() const {
  return devices_in_level(static_cast<int>(levels.size()) - 1);
}

static int node_level(const Cluster& cluster) {
  for (size_t i = 0; i < cluster.levels.size(); ++i)
    if (cluster.levels[i].name == "node") return static_cast<int>(i);
  return static_cast<int>(cluster.levels.size()) - 1;
}

int Cluster::devices_per_node() const {
  return devices_in_level(node_level(*this));
}

int Cluster::connecting_level(int a, int b) const {
  ALTIPLANO_ASSERT(a >= 0 && b >= 0 && a < num_devices() && b < num_devices(), "devices {} and {} of {}", a, b,
                   num_devices());
  if (a == b) return -1;
  int level = 0;
  for (int group = levels[0].fanout; a / group != b / group; group *= levels[static_cast<size_t>(level)].fanout)
    ++level;
  return level;
}

static int largest_divisor_up_to(int number, int limit) {
  int divisor = std::min(number, limit);
  while (number % divisor != 0) --divisor;
  return divisor;
}

Cluster Cluster::resized(int devices) const {
  ALTIPLANO_ASSERT(devices >= 1, "a cluster of {} devices", devices);
  Cluster out = *this;
  int left = devices;
  for (size_t i = 0; i + 1 < out.levels.size(); ++i) {
    out.levels[i].fanout = largest_divisor_up_to(left, levels[i].fanout);
    left /= out.levels[i].fanout;
  }
  out.levels.back().fanout = left;
  return out;
}

std::string Cluster::shape_text() const {
  int nodes = num_devices() / devices_per_node();
  std::string text = fmt::format("{} {} x {} {}", nodes, plural(nodes, "node"), devices_per_node(), device.name);
  for (int i = node_level(*this) + 1; i + 1 < static_cast<int>(levels.size()); ++i) {
    int groups = num_devices() / devices_in_level(i);
    if (groups > 1) text += fmt::format(", {} {} groups", groups, levels[static_cast<size_t>(i)].name);
  }
  return text;
}

uint64_t Cluster::fingerprint() const {
  Cluster nameless = *this;
  nameless.name.clear();
  nameless.device.name.clear();
  nameless.device.source.clear();
  return altiplano::fingerprint(nameless.to_yaml());
}

static Status verify_device(const DeviceModel& device) {
  if (device.memory.value <= 0)
    return invalid_argument("device.memory: {} bytes; must be more than 0", device.memory.value);
  if (!(device.memory_bandwidth > 0))
    return invalid_argument("device.memory_bandwidth: {}; must be more than 0", device.memory_bandwidth);
  if (device.peak_flops.count(DType::kF32) == 0)
    return invalid_argument("device.peak_flops: no f32; it is what other types are estimated from");
  for (const auto& [dtype, flops] : device.peak_flops)
    if (!(flops > 0)) return invalid_argument("device.peak_flops.{}: {}; must be more than 0", to_string(dtype), flops);
  if (!(device.matmul_efficiency > 0 && device.matmul_efficiency <= 1))
    return invalid_argument("device.matmul_efficiency: {}; must be above 0 and at most 1", device.matmul_efficiency);
  if (!(device.op_overhead >= 0))
    return invalid_argument("device.op_overhead: {}; must not be negative", device.op_overhead);
  if (!(device.eager_messages >= 0))
    return invalid_argument("device.eager_messages: {} bytes; must not be negative", device.eager_messages);
  if (!(device.dispatch >= 0)) return invalid_argument("device.dispatch: {}; must not be negative", device.dispatch);
  return device.curves ? verify_curves(*device.curves) : Status::ok();
}

static Status verify_level(const Level& level, size_t index) {
  std::string key = fmt::format("levels[{}]", index);
  if (level.fanout < 1) return invalid_argument("{}.fanout: {}; must be at least 1", key, level.fanout);
  if (!(level.latency >= 0)) return invalid_argument("{}.latency: {}; must not be negative", key, level.latency);
  if (!(level.bandwidth > 0)) return invalid_argument("{}.bandwidth: {}; must be more than 0", key, level.bandwidth);
  if (!(level.oversubscription >= 1))
    return invalid_argument("{}.oversubscription: {}; must be at least 1 (1: none)", key, level.oversubscription);
  return level.curves ? verify_curves(*level.curves, key + ".curves") : Status::ok();
}

Status Cluster::verify() const {
  ALTIPLANO_RETURN_IF_ERROR(verify_device(device));
  if (levels.empty()) return invalid_argument("levels: none; a cluster has at least the level \"node\"");
  std::set<std::string> names;
  double devices = 1;
  for (size_t i = 0; i < levels.size(); ++i) {
    ALTIPLANO_RETURN_IF_ERROR(verify_level(levels[i], i));
    if (!names.insert(levels[i].name).second)
      return invalid_argument("levels[{}].name: \"{}\" stands twice", i, levels[i].name);
    devices *= levels[i].fanout;
  }
  if (devices > 1e6)
    return invalid_argument("levels: the fanouts multiply to {:.0f} devices; at most 1000000", devices);
  return Status::ok();
}

}  // namespace altiplano
