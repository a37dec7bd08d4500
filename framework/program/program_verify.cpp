// The program verifier: what has to hold before a single step runs.
#include <algorithm>
#include <map>
#include <set>

#include "framework/program/arena.hpp"
#include "framework/program/collective_order.hpp"
#include "framework/program/program.hpp"

namespace altiplano {

namespace {

Status fail(const Program& program, const Block& block, size_t index, const std::string& what) {
  return invalid_argument("program of rank {}, block {}, instruction {} ({}): {}", program.rank, block.name, index,
                          block.instructions[index].label, what);
}

// ---- one program ----

Status check_arenas(const Program& program) {
  for (const Buffer& buffer : program.buffers) {
    int64_t limit = buffer.arena == Arena::kPersistent ? program.persistent_bytes
                    : buffer.arena == Arena::kStash    ? program.stash_slot_bytes
                                                       : program.work_bytes;
    if (buffer.offset < 0 || buffer.offset + buffer.bytes > limit)
      return invalid_argument("program of rank {}: buffer {} [{}, {}) leaves its {} arena of {} bytes", program.rank,
                              buffer.name, buffer.offset, buffer.offset + buffer.bytes, to_string(buffer.arena), limit);
  }
  return Status::ok();
}

/// Work buffers of a block that live at the same time must not overlap.
Status check_overlaps(const Program& program, const Block& block) {
  std::vector<const Buffer*> buffers;
  for (const Buffer& buffer : program.buffers)
    if (buffer.arena == Arena::kWork && buffer.block == block.id && buffer.bytes > 0) buffers.push_back(&buffer);
  std::sort(buffers.begin(), buffers.end(), [](const Buffer* a, const Buffer* b) { return a->offset < b->offset; });
  for (size_t i = 0; i < buffers.size(); ++i) {
    for (size_t j = i + 1; j < buffers.size() && buffers[j]->offset < buffers[i]->offset + buffers[i]->bytes; ++j) {
      if (buffers[i]->last_use < buffers[j]->first_use || buffers[j]->last_use < buffers[i]->first_use) continue;
      return invalid_argument("program of rank {}, block {}: buffers {} and {} overlap while both live", program.rank,
                              block.name, buffers[i]->name, buffers[j]->name);
    }
  }
  return Status::ok();
}

/// Every work buffer is written before it is read, inside its block; what B reads of the stash F wrote.
Status check_definitions(const Program& program, const std::set<BufferId>& stashed, const Block& block) {
  std::set<BufferId> written;
  for (size_t i = 0; i < block.instructions.size(); ++i) {
    Status status;
    for_each_buffer(block.instructions[i], [&](BufferId id, bool is_write) {
      const Buffer& buffer = program.buffer(id);
      if (is_write) {
        written.insert(id);
        return;
      }
      if (!status.is_ok() || buffer.bytes == 0 || buffer.arena == Arena::kPersistent || written.count(id)) return;
      if (buffer.arena == Arena::kStash && stashed.count(id) && block.kind != ActionKind::kForward) return;
      status = fail(program, block, i, fmt::format("reads {} before anything wrote it", buffer.name));
    });
    ALTIPLANO_RETURN_IF_ERROR(status);
    for (int before : block.instructions[i].after)
      if (before < 0 || static_cast<size_t>(before) >= i)
        return fail(program, block, i, "waits for a later instruction");
  }
  return Status::ok();
}

// ---- all programs together ----

/// Runs all ranks' timetables with zero buffering: a send ends when its receive is posted, a receive when its send is
/// posted, a collective when all members have come to it.
class Rehearsal {
 public:
  Rehearsal(const std::vector<Program>& programs, std::vector<TimetableEntry> Program::*list)
      : programs_(programs), list_(list), ranks_(programs.size()) {}

  Status run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (size_t r = 0; r < ranks_.size(); ++r) {
        ALTIPLANO_ASSIGN(bool did, advance(r));
        moved = moved || did;
      }
    }
    for (size_t r = 0; r < ranks_.size(); ++r)
      if (ranks_[r].entry < entries(r).size()) return deadlock();
    for (const auto& [key, channel] : channels_)
      if (channel.sends.size() != channel.recvs.size())
        return invalid_argument("programs: rank {} sends {} message(s) with tag {:x} to rank {}, which receives {}",
                                std::get<0>(key), channel.sends.size(), std::get<2>(key), std::get<1>(key),
                                channel.recvs.size());
    return Status::ok();
  }

 private:
  struct Channel {
    std::vector<int64_t> sends, recvs;
  };
  using Key = std::tuple<RankId, RankId, uint64_t>;
  struct Wait {
    enum Kind { kSend, kRecv, kCollective } kind;
    Key key;
    GroupId group;
    size_t sequence;
  };
  struct Rank {
    size_t entry = 0, instruction = 0;
    std::map<int, Wait> pending;         // by instruction index of the current block
    std::map<BufferId, Wait> last_send;  // survives blocks
    std::map<GroupId, size_t> sequence;
    std::string blocked_on;
  };
  struct Meeting {
    std::set<size_t> members;
    const CollectiveInstruction* call = nullptr;
    DType dtype = DType::kF32;
  };

  const std::vector<TimetableEntry>& entries(size_t r) const { return programs_[r].*list_; }

  bool is_done(const Wait& wait) {
    if (wait.kind == Wait::kSend) return channels_[wait.key].recvs.size() > wait.sequence;
    if (wait.kind == Wait::kRecv) return channels_[wait.key].sends.size() > wait.sequence;
    return meetings_[{wait.group, wait.sequence}].members.size() ==
           programs_[0].groups[wait.group.index()].ranks.size();
  }

  Result<bool> advance(size_t r) {
    bool moved = false;
    while (ranks_[r].entry < entries(r).size()) {
      const TimetableEntry& entry = entries(r)[ranks_[r].entry];
      const Block& block = programs_[r].blocks[entry.block.index()];
      if (ranks_[r].instruction == block.instructions.size()) {
        for (const auto& [index, wait] : ranks_[r].pending)
          if (!is_done(wait))
            return blocked(
                r,
                fmt::format("the end of {} for {}", block.name, block.instructions[static_cast<size_t>(index)].label),
                moved);
        ranks_[r].pending.clear();
        ranks_[r].instruction = 0;
        ++ranks_[r].entry;
        moved = true;
        continue;
      }
      const Instruction& instruction = block.instructions[ranks_[r].instruction];
      for (int before : instruction.after) {
        auto it = ranks_[r].pending.find(before);
        if (it == ranks_[r].pending.end()) continue;
        if (!is_done(it->second))
          return blocked(
              r, fmt::format("{} for {}", instruction.label, block.instructions[static_cast<size_t>(before)].label),
              moved);
        ranks_[r].pending.erase(it);
      }
      ALTIPLANO_ASSIGN(bool issued, issue(r, entry, instruction));
      if (!issued) return blocked(r, instruction.label, moved);
      ++ranks_[r].instruction;
      moved = true;
    }
    return moved;
  }

  Result<bool> blocked(size_t r, const std::string& on, bool moved) {
    ranks_[r].blocked_on = on;
    return moved;
  }

  /// False: not yet (a send buffer is still in use).
  Result<bool> issue(size_t r, const TimetableEntry& entry, const Instruction& instruction) {
    Rank& rank = ranks_[r];
    const Program& program = programs_[r];
    int index = static_cast<int>(rank.instruction);
    if (auto* send = std::get_if<SendInstruction>(&instruction.what)) {
      Key key{program.rank, send->peer, send->tag + static_cast<uint64_t>(entry.action.microbatch)};
      ALTIPLANO_RETURN_IF_ERROR(
          match(key, channels_[key].sends, channels_[key].recvs, program.buffer(send->buffer).bytes));
      rank.last_send[send->buffer] = {Wait::kSend, key, GroupId(), channels_[key].sends.size() - 1};
    } else if (auto* recv = std::get_if<RecvInstruction>(&instruction.what)) {
      Key key{recv->peer, program.rank, recv->tag + static_cast<uint64_t>(entry.action.microbatch)};
      ALTIPLANO_RETURN_IF_ERROR(
          match(key, channels_[key].recvs, channels_[key].sends, program.buffer(recv->buffer).bytes));
      rank.pending[index] = {Wait::kRecv, key, GroupId(), channels_[key].recvs.size() - 1};
    } else if (auto* wait = std::get_if<WaitSendInstruction>(&instruction.what)) {
      auto it = rank.last_send.find(wait->buffer);
      return it == rank.last_send.end() || is_done(it->second);
    } else if (auto* call = std::get_if<CollectiveInstruction>(&instruction.what)) {
      ALTIPLANO_RETURN_IF_ERROR(meet(r, *call));
      rank.pending[index] = {Wait::kCollective, Key{}, call->group, rank.sequence[call->group]++};
    }
    return true;
  }

  Status match(const Key& key, std::vector<int64_t>& mine, const std::vector<int64_t>& theirs, int64_t bytes) {
    mine.push_back(bytes);
    if (theirs.size() >= mine.size() && theirs[mine.size() - 1] != bytes)
      return invalid_argument("programs: rank {} and rank {} exchange tag {:x} with {} and {} bytes", std::get<0>(key),
                              std::get<1>(key), std::get<2>(key), bytes, theirs[mine.size() - 1]);
    return Status::ok();
  }

  Status meet(size_t r, const CollectiveInstruction& call) {
    const Program& program = programs_[r];
    const ProcessGroup& group = program.groups[call.group.index()];
    if (std::find(group.ranks.begin(), group.ranks.end(), program.rank) == group.ranks.end())
      return invalid_argument("program of rank {} calls {} on group {}, which it is not in", program.rank,
                              to_string(call.kind), group.name);
    Meeting& meeting = meetings_[{call.group, ranks_[r].sequence[call.group]}];
    DType dtype = program.buffer(call.in).dtype;
    if (meeting.call && (meeting.call->kind != call.kind || meeting.call->count != call.count ||
                         meeting.call->reduce != call.reduce || meeting.dtype != dtype))
      return invalid_argument("programs: call {} of group {}: rank {} does {} of {} {}, another rank {} of {} {}",
                              ranks_[r].sequence[call.group], group.name, program.rank, to_string(call.kind),
                              call.count, to_string(dtype), to_string(meeting.call->kind), meeting.call->count,
                              to_string(meeting.dtype));
    meeting.call = &call;
    meeting.dtype = dtype;
    meeting.members.insert(r);
    return Status::ok();
  }

  Status deadlock() const {
    std::string text = "programs deadlock:";
    for (size_t r = 0; r < ranks_.size(); ++r)
      if (ranks_[r].entry < entries(r).size())
        text += fmt::format(" rank {} in {} waits at {};", r, entries(r)[ranks_[r].entry].action.to_string(),
                            ranks_[r].blocked_on);
    return invalid_argument("{}", text);
  }

  const std::vector<Program>& programs_;
  std::vector<TimetableEntry> Program::*list_;
  std::vector<Rank> ranks_;
  std::map<Key, Channel> channels_;
  std::map<std::pair<GroupId, size_t>, Meeting> meetings_;
};

}  // namespace

Status verify_program(const Program& program) {
  ALTIPLANO_RETURN_IF_ERROR(check_arenas(program));
  std::set<BufferId> stashed;
  for (const Block& block : program.blocks) {
    if (block.kind != ActionKind::kForward) continue;
    for (const Instruction& instruction : block.instructions)
      for_each_buffer(instruction, [&](BufferId id, bool is_write) {
        if (is_write) stashed.insert(id);
      });
  }
  for (const Block& block : program.blocks) {
    ALTIPLANO_RETURN_IF_ERROR(check_overlaps(program, block));
    ALTIPLANO_RETURN_IF_ERROR(check_definitions(program, stashed, block));
  }
  return Status::ok();
}

Status verify_programs(const std::vector<Program>& programs) {
  for (const Program& program : programs) ALTIPLANO_RETURN_IF_ERROR(verify_program(program));
  for (auto list : {&Program::step, &Program::validation}) {
    ALTIPLANO_RETURN_IF_ERROR(Rehearsal(programs, list).run());
    ALTIPLANO_RETURN_IF_ERROR(check_collective_order(programs, list));
  }
  return Status::ok();
}

}  // namespace altiplano
