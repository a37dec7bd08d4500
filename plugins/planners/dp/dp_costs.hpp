#pragma once
#include <optional>
#include <vector>

#include "framework/api/planner.hpp"
#include "framework/search/sharding_problem.hpp"

namespace altiplano {

/// What layers cost on a mesh {data, tensor} by the size of the microbatch: known at two sizes, between and beyond them
/// on the line through both, since arithmetic, traffic and messages grow so. Prefix sums over layers.
class LayerCosts {
 public:
  /// For both sizes (samples per replica) the frontier of time and memory: first the shardings of least time, then
  /// those of least time with a price on each byte, which rises; those that save nothing are left out.
  static Result<std::vector<LayerCosts>> frontier(const PlanRequest& request, const GraphFacts& facts,
                                                  const MeshShape& mesh, int64_t small, int64_t large);

  double microbatch_seconds(int first, int end, int64_t size) const;
  double step_seconds(int first, int end) const;
  /// On a rank, with so many microbatches in flight.
  double bytes(int first, int end, int64_t size, int in_flight) const;
  int num_layers() const { return static_cast<int>(at_[0].microbatch.size()) - 1; }

 private:
  struct Sums {
    std::vector<double> microbatch, step, persistent, stash;
    double work = 0;
  };
  double line(double at_small, double at_large, int64_t size) const;
  static Sums sums_of(const LayerShares& shares);

  int64_t small_ = 1, large_ = 1;
  Sums at_[2];
};

/// Bytes per sample that cross a cut before each layer forward, by LayerId; gradients take the same way back.
std::vector<double> bytes_across_cuts(const TrainingGraph& training, const GraphFacts& facts);

/// Seconds that a microbatch of this size takes over each cut, there and back, between stages on neighbouring meshes.
/// Each rank of a tensor group sends its part.
std::vector<double> cut_seconds(const PlanRequest& request, const std::vector<double>& bytes_per_sample,
                                const MeshShape& mesh, int64_t size);

}  // namespace altiplano
