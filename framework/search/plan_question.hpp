#pragma once
// What the stages of a plan leave to be decided about shardings.
#include <vector>

#include "framework/plan/plan.hpp"
#include "framework/program/timetable.hpp"
#include "framework/search/sharding_problem.hpp"

namespace altiplano {

/// Distinct meshes of a plan's stages, and where one stage of each lies in the cluster.
struct PlanMeshes {
  std::vector<MeshShape> meshes;
  std::vector<std::vector<int>> devices;  ///< per mesh, by position in the mesh
  std::vector<size_t> mesh_of_stage;
};
PlanMeshes meshes_of(const Plan& plan);

/// Most microbatches that each stage has in flight: forward done, backward not.
std::vector<int> microbatches_in_flight(const Timetable& timetable);

/// The question for the plan's stages, microbatches and ZeRO stage; parameters whose storage the plan has are fixed.
/// `facts`: of the graph, which must live as long as the question. One row or more of memory per stage, with `memory`
/// bytes per rank (not positive: none). The time of a step is taken as that of a pipeline of equal stages:
/// (microbatches + stages - 1) times a stage's forward and backward, plus its update.
ShardingQuestion question_of(const TrainingGraph& training, const Plan& plan, const Timetable& timetable,
                             const PlanMeshes& meshes, Bytes memory, const GraphFacts& facts);

}  // namespace altiplano
