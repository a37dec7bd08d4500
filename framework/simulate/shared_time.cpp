#include "framework/simulate/shared_time.hpp"

#include <algorithm>
#include <map>

namespace altiplano {

namespace {

/// Devices of one node that work at a moment, and what their time is made of.
struct NodeAtWork {
  int devices = 0;
  double compute = 0, memory = 0, other = 0;

  double factor(const DeviceModel& device) const {
    const double all = compute + memory + other;
    if (devices == 0 || all <= 0) return 1;
    return (time_among({compute, memory}, device, devices).value + other) / all;
  }
};

}  // namespace

bool SharedTime::is_needed(const DeviceModel& device) {
  if (!device.curves) return false;
  const Sharing& sharing = device.curves->sharing;
  return sharing.processors > 0 || !sharing.compute.empty() || !sharing.memory.empty();
}

void SharedTime::add(int node, int devices, double begin, double end, const WorkTime& work, double other) {
  const double all = work.alone() + other;
  if (end <= begin || all <= 0) return;
  const Change change{
      begin, node, devices, devices * work.compute / all, devices * work.memory / all, devices * other / all};
  changes_.push_back(change);
  changes_.push_back({end, node, -devices, -change.compute, -change.memory, -change.other});
}

void SharedTime::close() {
  std::ranges::stable_sort(changes_, {}, &Change::time);
  std::map<int, NodeAtWork> nodes;
  pieces_ = {{0, 0, 1}};
  for (size_t i = 0; i < changes_.size();) {
    const double now = changes_[i].time;
    for (; i < changes_.size() && changes_[i].time == now; ++i) {
      NodeAtWork& node = nodes[changes_[i].node];
      node.devices += changes_[i].devices;
      node.compute += changes_[i].compute;
      node.memory += changes_[i].memory;
      node.other += changes_[i].other;
      if (node.devices == 0) node = {};  // and no rounding of sums
    }
    double factor = 1;
    for (const auto& [number, node] : nodes) factor = std::max(factor, node.factor(device_));
    const Piece& last = pieces_.back();
    pieces_.push_back({now, last.stretched + (now - last.begin) * last.factor, factor});
  }
}

double SharedTime::at(double time) const {
  const auto after = std::ranges::upper_bound(pieces_, time, {}, &Piece::begin);
  const Piece& piece = *std::prev(after);
  return piece.stretched + (time - piece.begin) * piece.factor;
}

}  // namespace altiplano
