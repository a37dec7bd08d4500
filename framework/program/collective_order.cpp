#include "framework/program/collective_order.hpp"

#include <algorithm>
#include <map>

namespace altiplano {

namespace {

struct Call {
  GroupId group;
  const Instruction* instruction;
};

/// The calls of a list of entries one after the other, read once per block.
class Calls {
 public:
  Calls(const Program& program, const std::vector<TimetableEntry>& entries)
      : entries_(entries), of_block_(program.blocks.size()) {
    for (const Block& block : program.blocks)
      for (const Instruction& instruction : block.instructions)
        if (const auto* call = std::get_if<CollectiveInstruction>(&instruction.what))
          of_block_[block.id.index()].push_back({call->group, &instruction});
    pass_over_empty();
  }
  bool is_over() const { return entry_ == entries_.size(); }
  const Call& now() const { return of_block_[entries_[entry_].block.index()][call_]; }
  GroupId group() const { return is_over() ? GroupId() : now().group; }
  void next() {
    ++call_;
    pass_over_empty();
  }

 private:
  void pass_over_empty() {
    for (; !is_over() && call_ == of_block_[entries_[entry_].block.index()].size(); ++entry_) call_ = 0;
  }
  const std::vector<TimetableEntry>& entries_;
  std::vector<std::vector<Call>> of_block_;
  size_t entry_ = 0, call_ = 0;
};

/// By group: which of the programs are its members.
std::vector<std::vector<size_t>> members_here(const std::vector<Program>& programs) {
  std::map<RankId, size_t> index_of;
  for (size_t r = 0; r < programs.size(); ++r) index_of[programs[r].rank] = r;
  std::vector<std::vector<size_t>> members;
  for (const ProcessGroup& group : programs[0].groups) {
    members.emplace_back();
    for (RankId rank : group.ranks)
      if (const auto found = index_of.find(rank); found != index_of.end()) members.back().push_back(found->second);
  }
  return members;
}

}  // namespace

Status check_collective_order(const std::vector<Program>& programs, std::vector<TimetableEntry> Program::*list) {
  if (programs.empty()) return Status::ok();
  std::vector<Calls> calls;
  for (const Program& program : programs) calls.emplace_back(program, program.*list);
  const std::vector<std::vector<size_t>> members_of = members_here(programs);
  auto group_at = [&](size_t r) { return calls[r].group(); };
  // A call runs when it is the next one of every member: only then has the order no conflict.
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t r = 0; r < programs.size(); ++r) {
      while (group_at(r).is_valid()) {
        const GroupId group = group_at(r);
        const std::vector<size_t>& members = members_of[group.index()];
        if (!std::ranges::all_of(members, [&](size_t m) { return group_at(m) == group; })) break;
        for (size_t member : members) calls[member].next();
        moved = true;
      }
    }
  }
  for (size_t r = 0; r < programs.size(); ++r) {
    if (!group_at(r).is_valid()) continue;
    const ProcessGroup& group = programs[r].groups[group_at(r).index()];
    for (size_t member : members_of[group.id.index()]) {
      GroupId theirs = group_at(member);
      if (theirs == group.id) continue;
      return invalid_argument("programs have no one order of collectives: rank {} comes to {} of group {}, rank {} {}",
                              programs[r].rank, calls[r].now().instruction->label, group.name, programs[member].rank,
                              theirs.is_valid()
                                  ? fmt::format("to one of group {}", programs[r].groups[theirs.index()].name)
                                  : std::string("makes no more calls"));
    }
  }
  return Status::ok();
}

}  // namespace altiplano
