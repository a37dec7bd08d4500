#include "framework/program/collective_order.hpp"

#include <algorithm>

namespace altiplano {

namespace {

struct Call {
  GroupId group;
  const Instruction* instruction;
};

std::vector<Call> calls_of(const Program& program, const std::vector<TimetableEntry>& entries) {
  std::vector<Call> calls;
  for (const TimetableEntry& entry : entries)
    for (const Instruction& instruction : program.blocks[entry.block.index()].instructions)
      if (const auto* call = std::get_if<CollectiveInstruction>(&instruction.what))
        calls.push_back({call->group, &instruction});
  return calls;
}

}  // namespace

Status check_collective_order(const std::vector<Program>& programs, std::vector<TimetableEntry> Program::*list) {
  std::vector<std::vector<Call>> calls;
  for (const Program& program : programs) calls.push_back(calls_of(program, program.*list));
  std::vector<size_t> next(programs.size(), 0);
  auto group_at = [&](size_t rank) {
    return next[rank] < calls[rank].size() ? calls[rank][next[rank]].group : GroupId();
  };
  // A call runs when it is the next one of every member: only then has the order no conflict.
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t r = 0; r < programs.size(); ++r) {
      while (group_at(r).is_valid()) {
        const ProcessGroup& group = programs[r].groups[group_at(r).index()];
        bool all_here = std::all_of(group.ranks.begin(), group.ranks.end(),
                                    [&](RankId m) { return group_at(m.index()) == group.id; });
        if (!all_here) break;
        for (RankId member : group.ranks) ++next[member.index()];
        moved = true;
      }
    }
  }
  for (size_t r = 0; r < programs.size(); ++r) {
    if (!group_at(r).is_valid()) continue;
    const ProcessGroup& group = programs[r].groups[group_at(r).index()];
    for (RankId member : group.ranks) {
      GroupId theirs = group_at(member.index());
      if (theirs == group.id) continue;
      return invalid_argument("programs have no one order of collectives: rank {} comes to {} of group {}, rank {} {}",
                              r, calls[r][next[r]].instruction->label, group.name, member,
                              theirs.is_valid()
                                  ? fmt::format("to one of group {}", programs[r].groups[theirs.index()].name)
                                  : std::string("makes no more calls"));
    }
  }
  return Status::ok();
}

}  // namespace altiplano
