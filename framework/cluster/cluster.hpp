#pragma once
// cluster/ (L1): hardware as a value: devices, nodes, links as a tree of levels. YAML form and presets (configs/clusters/*.yaml).
// May include base/, options/, graph/dtype.hpp. YAML reading of clusters lives here behind strings, so that no other folder parses it.
#include <map>
#include <string>
#include <vector>

#include "framework/base/status.hpp"
#include "framework/base/units.hpp"
#include "framework/graph/dtype.hpp"

namespace altiplano {

/// Throughput of one device.
struct DeviceModel {
  std::string name;                       ///< "a100-40"
  Bytes memory;                           ///< usable bytes
  double memory_bandwidth = 0;            ///< bytes per second
  std::map<DType, double> peak_flops;     ///< FLOP/s of matrix products
  double matmul_efficiency = 0.6;         ///< reached share of the peak for large products
  std::string source;                     ///< where the figures come from
};

/// One level of the tree, innermost first: links between the children of one group of that level.
struct Level {
  std::string name;           ///< "nvlink", "node", "leaf", "spine"
  int fanout = 1;             ///< children per group
  double latency = 0;         ///< seconds per message
  double bandwidth = 0;       ///< bytes per second and direction of one device through this level
  double oversubscription = 1;
};

struct Cluster {
  std::string name;
  DeviceModel device;
  std::vector<Level> levels;  ///< innermost first; devices = product of fanouts

  int num_devices() const;
  int devices_per_node() const;  ///< fanout up to and including the level named "node"; all when there is none
  /// Index of the innermost level that connects devices a and b (positions in tree order); -1 for a == b.
  int connecting_level(int a, int b) const;
  /// The same kind of cluster with exactly `devices` devices (the outermost level grows or shrinks; inner levels too when fewer are asked).
  Cluster resized(int devices) const;
  std::string shape_text() const;  ///< "8 nodes x 4 a100-40"
  uint64_t fingerprint() const;
  std::string to_yaml() const;
  static Result<Cluster> from_yaml(const std::string& text, const std::string& file_name);
};

}  // namespace altiplano
