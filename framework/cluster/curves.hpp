#pragma once
// Measured or published curves of a cluster model: what a device reaches at work of a given size, and what a level's
// links take for messages of a given size. Data only; framework/cost/curve.hpp reads them.
//
// Invariants (verify_curves): every curve has a point, sizes rise strictly from above 0, and more never takes less
// time.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.hpp"
#include "framework/cluster/collective.hpp"
#include "framework/graph/dtype.hpp"

namespace altiplano {

struct CurvePoint {
  double size = 0;   ///< FLOPs of one product, bytes of one op, bytes of one message
  double value = 0;  ///< rate reached there (FLOP/s, B/s), or seconds where the curve says so
  bool operator==(const CurvePoint&) const = default;
};
using Curve = std::vector<CurvePoint>;

/// FLOPs -> FLOP/s of matrix products, without what every op costs before it starts (DeviceModel::op_overhead).
struct ProductCurve {
  DType type = DType::kF32;
  /// Of the product's rows, columns and inner size the smallest, for which the points were taken; 0: for any. Several
  /// curves of a type differ in it.
  int64_t smallest_dim = 0;
  Curve points;
};

/// Of one op kind, which no general figure describes well (attention, what computes more than it moves).
struct OpCurve {
  std::string kind;
  DType type = DType::kF32;
  bool by_flops = false;  ///< FLOPs -> FLOP/s; else bytes read and written -> B/s
  Curve points;
  /// How often what stands between the products it is made of is written or read, at the memory's rate, on top of what
  /// the points say; 0: never, it stays where it is computed.
  double inner_passes = 0;
};

/// Products whose rows, columns or inner size are no multiple of what the device's units take at once.
struct Alignment {
  int64_t multiple_of = 0;  ///< elements; 0: any size will do
  double times_longer = 1;
};

/// How the devices of one node slow each other down by working at the same time.
struct Sharing {
  int processors = 0;     ///< on which the devices of a node compute: more of them take turns; 0: each has its own
  Curve compute, memory;  ///< devices working -> how many times longer arithmetic and memory traffic take; alone: 1
};

struct DeviceCurves {
  std::vector<ProductCurve> products;
  Curve memory;  ///< bytes read and written by one op -> B/s
  std::vector<OpCurve> ops;
  Alignment alignment;
  Sharing sharing;
};

/// Times of whole calls over one level.
struct ExchangeCurve {
  std::optional<CollectiveKind> kind;  ///< nothing: a message from one device to another
  int ranks = 2;                       ///< that took part
  Curve points;                        ///< bytes (of the whole tensor, as collective_cost.hpp counts them) -> seconds
};

struct LevelCurves {
  Curve bandwidth;  ///< bytes of the whole tensor -> B/s of a device: the level's bandwidth where only that is known
  std::vector<ExchangeCurve> measured;
};

/// Names the key ("device.curves.products[0]"), the numbers and the rule.
Status verify_curves(const DeviceCurves& curves);
/// `key`: "levels[0].curves".
Status verify_curves(const LevelCurves& curves, const std::string& key);

}  // namespace altiplano
