#pragma once
// What the instructions of programs take: the one place where instructions meet the prices of cost/. The estimate of a
// plan sums them, the simulation of programs lets them run side by side.
#include <map>
#include <span>

#include "framework/cost/collective_cost.hpp"
#include "framework/cost/compute_cost.hpp"
#include "framework/program/program.hpp"

namespace altiplano {

/// Of one op of a program, on its local boxes. Points into the instruction.
OpWork work_of(const Program& program, const ComputeInstruction& compute);
/// Read and written.
Bytes bytes_of(const Program& program, const CopyInstruction& copy);
/// The whole tensor of a call, as collective_cost counts it.
Bytes bytes_of(const Program& program, const CollectiveInstruction& call);

/// What the rank itself works on: computing and copying. Nothing for what it does with others, and for what costs
/// nothing worth counting (fills, feeds, fetches).
WorkTime work_time(const Program& program, const Instruction& instruction, const Cluster& cluster);

/// The shapes of one plan's groups on a cluster, each found once: programs of all its ranks name the same groups.
class GroupShapes {
 public:
  explicit GroupShapes(const Cluster& cluster) : cluster_(cluster) {}
  const GroupShape& of(const ProcessGroup& group);

 private:
  const Cluster& cluster_;
  std::map<GroupId, GroupShape> known_;
};
/// Of one call by the ranks of its group, whose positions in the cluster are their numbers.
Seconds collective_time(const Program& program, const CollectiveInstruction& call, GroupShapes& shapes);
/// The positions of a group's ranks in the cluster.
std::vector<int> devices_of(const ProcessGroup& group);

/// One message, with nothing else on its way.
Seconds message_time(const Program& program, const SendInstruction& send, const Cluster& cluster);

}  // namespace altiplano
