#pragma once
// Time as it passes for devices that slow each other down (framework/cluster/curves.hpp, Sharing): from what everybody
// would take alone to what it takes beside others. Where all devices of a node at work are slowed down alike, as when
// processes take turns on its processors, what they do stretches by one factor at every moment: the order of events
// stays, and simulating with the times of devices alone and stretching the result is simulating processor sharing.
// Devices of several nodes are stretched by the node that is slowed down most; work of unlike kinds at one moment by
// its mean.
#include <vector>

#include "framework/cost/compute_cost.hpp"

namespace altiplano {

class SharedTime {
 public:
  explicit SharedTime(DeviceModel device) : device_(std::move(device)) {}
  /// Whether devices slow each other down at all.
  static bool is_needed(const DeviceModel& device);

  /// `devices` of a node work between `begin` and `end` of unstretched time, each at `work` and for `other` seconds at
  /// what nothing slows down.
  void add(int node, int devices, double begin, double end, const WorkTime& work, double other = 0);
  /// When everything is added, before the first at().
  void close();
  /// Stretched time; rises with `time`, at(0) is 0.
  double at(double time) const;

 private:
  struct Change {
    double time = 0;
    int node = 0, devices = 0;                  ///< more, or fewer
    double compute = 0, memory = 0, other = 0;  ///< by how much more (or less) of the devices' time
  };
  struct Piece {
    double begin = 0, stretched = 0, factor = 1;
  };
  const DeviceModel device_;
  std::vector<Change> changes_;
  std::vector<Piece> pieces_;  ///< in order of time
};

}  // namespace altiplano
