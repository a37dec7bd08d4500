#pragma once
// What all ranks' lowerings share: the assignment, who holds what, what crosses stages, the process groups.
//
// Activations are laid out for one microbatch of all replicas ("microbatch shape": the batch dim holds microbatch x
// data degree samples); box coordinates of activations are in that shape. Operands carry the true global-batch
// coordinates.
#include "framework/program/lowering.hpp"

namespace altiplano {

/// A value that ranks of one stage send to ranks of another.
struct StageTransfer {
  ValueId value;
  StageId from, to;
  ShardingSpec from_spec, to_spec;
  Shape shape;  ///< coordinates of the pieces
  DType dtype = DType::kF32;
  std::vector<BoxTransfer> pieces;  ///< holders are rank values
  uint64_t first_tag = 0;           ///< piece i has tag first_tag + i
};

class LoweringContext {
 public:
  LoweringContext(const TrainingGraph& training, const Plan& plan, const Timetable& timetable, const Binding& binding,
                  ShardingAssignment assignment, const LoweringOptions& options);

  const TrainingGraph& training;
  const Graph& graph;
  const Plan& plan;
  const Timetable& timetable;
  const Binding& binding;
  const ShardingAssignment assignment;
  const LoweringOptions& options;

  std::vector<StageTransfer> forward, backward;      ///< activations, gradients of activations
  std::vector<StageTransfer> gradients, parameters;  ///< of parameters used on several stages: to home, from home
  std::vector<ProcessGroup> groups;                  ///< groups[0] is the world

  const MeshShape& mesh(StageId stage) const { return plan.stages[stage.index()].mesh; }
  RankId rank_at(StageId stage, int mesh_index) const;
  /// The value's shape as blocks see it (microbatch shape where it has a batch dim).
  Shape block_shape(ValueId value) const;
  GroupId find_group(const std::vector<RankId>& ranks) const;
  /// Spec of a parameter's stored copy / reduced gradient on a stage that uses it.
  ShardingSpec stored_on(ValueId parameter, StageId stage) const;
  ShardingSpec reduced_on(ValueId parameter, StageId stage) const;
  /// Stages where contributions to a parameter's gradient arise, ascending.
  std::vector<StageId> contributing_stages(const ParameterTraining& parameter) const;
  bool is_needed_by_backward(ValueId value, StageId stage) const { return stashed_[stage.index()][value.index()]; }

 private:
  void find_groups();
  void find_stashed();
  void find_transfers();
  StageTransfer make_transfer(ValueId value, StageId from, ShardingSpec from_spec, StageId to, ShardingSpec to_spec,
                              const Shape& shape, DType dtype);
  std::vector<std::vector<bool>> stashed_;  ///< [stage][value]
  uint64_t next_tag_ = 1;
  std::map<std::vector<RankId>, GroupId> group_of_;
};

}  // namespace altiplano
