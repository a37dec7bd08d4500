#pragma once
// cluster/ (L1): hardware as a value: devices, nodes, links as a tree of levels. YAML form and presets
// (configs/clusters/*.yaml). May include base/, options/, graph/dtype.hpp. YAML reading of clusters lives here behind
// strings, so that no other folder parses it.
//
// Invariants (Cluster::verify, from_yaml): at least one level; every fanout >= 1; bandwidths, memory and peaks > 0;
// latencies >= 0; oversubscription >= 1; matmul_efficiency in (0, 1]; peak_flops has f32; level names distinct; curves
// as curves.hpp says.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/status.hpp"
#include "framework/base/units.hpp"
#include "framework/cluster/curves.hpp"
#include "framework/graph/dtype.hpp"

namespace altiplano {

/// Throughput of one device.
struct DeviceModel {
  std::string name;                    ///< "a100-40"
  Bytes memory;                        ///< usable bytes
  double memory_bandwidth = 0;         ///< bytes per second
  std::map<DType, double> peak_flops;  ///< FLOP/s of matrix products
  double matmul_efficiency = 0.6;      ///< reached share of the peak for large products
  double op_overhead = 0;              ///< seconds every op costs before it does anything (launch, dispatch)
  std::string source;                  ///< where the figures come from
  /// Collectives and messages go on while it computes. Else it does them itself, while it waits for them: processes
  /// that exchange through memory they share.
  bool overlaps_communication = true;
  double eager_messages =
      0;  ///< where it exchanges itself: bytes up to which a message goes on although its sender works
  /// What it reaches at work of what size, where that is known; null: peak x efficiency and the bandwidth at any size.
  std::shared_ptr<const DeviceCurves> curves = nullptr;
  /// Seconds in which a host hands one op to the device, which works on earlier ones meanwhile; it waits for the host
  /// where its ops are smaller. 0: it needs no host. Ops of an update are handed over together.
  double dispatch = 0;
};

/// One level of the tree, innermost first: links between the children of one group of that level.
struct Level {
  std::string name;      ///< "nvlink", "node", "leaf", "spine"
  int fanout = 1;        ///< children per group
  double latency = 0;    ///< seconds per message
  double bandwidth = 0;  ///< bytes per second and direction of one device through this level
  double oversubscription =
      1;  ///< devices below share the level's links: each gets bandwidth / oversubscription when all send
  std::shared_ptr<const LevelCurves> curves = nullptr;  ///< null: latency and bandwidth at any size
};

struct Cluster {
  std::string name;
  DeviceModel device;
  std::vector<Level> levels;  ///< innermost first; devices = product of fanouts

  int num_devices() const;
  int devices_per_node()
      const;  ///< product of fanouts up to and including the level named "node"; all when there is none
  /// Devices in one group of level `index`: the product of fanouts up to and including it.
  int devices_in_level(int index) const;
  /// Index of the innermost level that connects devices a and b (positions in tree order); -1 for a == b.
  int connecting_level(int a, int b) const;
  /// The same kind of cluster with exactly `devices` devices: filled from the innermost level with the largest divisor
  /// of what is left that fits (12 devices on nodes of 8: 2 nodes x 6), the outermost level takes the rest and may
  /// grow.
  Cluster resized(int devices) const;
  std::string shape_text() const;  ///< "8 nodes x 4 a100-40", "8 nodes x 4 a100-40, 2 leaf groups"
  uint64_t fingerprint() const;    ///< of everything but name, device.name and device.source
  /// Refuses what breaks the invariants above, naming the key, the number and the rule.
  Status verify() const;
  std::string to_yaml() const;  ///< from_yaml(to_yaml()) is equal in every field
  /// Strict: unknown, missing and repeated keys, wrong types and broken invariants are refused with "file:line:column:
  /// key: …".
  static Result<Cluster> from_yaml(const std::string& text, const std::string& file_name);
};

}  // namespace altiplano
