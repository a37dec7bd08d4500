#include "framework/program/rehearsal.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "framework/base/inline_vector.hpp"

namespace altiplano {

namespace {

/// What a block does with others, in order. Instructions that only compute or copy are none.
struct Event {
  enum Kind : uint8_t { kSend, kRecv, kWaitSend, kCollective, kWaitFor, kEnd } kind;
  int instruction = 0;  ///< index; kEnd: none
  int slot = 0;         ///< kRecv, kCollective: what waits name; kWaitFor: of whom; kSend, kWaitSend: of the buffer
};

struct EventList {
  std::vector<Event> events;
  int num_slots = 0;                ///< of receives and collectives
  std::vector<int> instruction_of;  ///< by slot
};

/// A message's way: sender, receiver and tag with the microbatch.
struct ChannelKey {
  RankId from, to;
  uint64_t tag = 0;
  bool operator==(const ChannelKey&) const = default;
};
struct ChannelHash {
  size_t operator()(const ChannelKey& key) const {
    uint64_t hash = key.tag * 0x9e3779b97f4a7c15u;
    hash = (hash ^ (hash >> 29) ^ static_cast<uint64_t>(key.from.value)) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ (hash >> 32) ^ static_cast<uint64_t>(key.to.value)) * 0x94d049bb133111ebu;
    return hash ^ (hash >> 31);
  }
};
/// Bytes of what was posted on either side; most channels carry one message.
struct Channel {
  InlineVector<int64_t, 1> sends, recvs;
};
struct Meeting {
  size_t num_members = 0;
  const CollectiveInstruction* call = nullptr;
  DType dtype = DType::kF32;
};

/// What ends a wait: the `sequence`-th message of the other side, or call of a group.
struct Wait {
  enum Kind : uint8_t { kNothing, kSend, kRecv, kCollective } kind = kNothing;
  bool is_answered = false;  ///< by a rank that is not here
  size_t sequence = 0;
  const Channel* channel = nullptr;
  size_t group = 0;
};

class Rehearsal {
 public:
  Rehearsal(const std::vector<Program>& programs, std::vector<TimetableEntry> Program::*list, bool others_answer)
      : programs_(programs), list_(list), ranks_(programs.size()), others_answer_(others_answer) {
    for (const Program& program : programs) present_.insert(program.rank);
    if (!programs.empty()) {
      meetings_.resize(programs[0].groups.size());
      for (const ProcessGroup& group : programs[0].groups) members_here_.push_back(num_here(group));
    }
  }

  Status run() {
    for (size_t r = 0; r < ranks_.size(); ++r) ALTIPLANO_RETURN_IF_ERROR(read_events(r));
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t r = 0; r < ranks_.size(); ++r) {
        ALTIPLANO_ASSIGN(const bool did, advance(r));
        moved = moved || did;
      }
    }
    for (size_t r = 0; r < ranks_.size(); ++r)
      if (!is_done(r)) return deadlock();
    return check_all_received();
  }

 private:
  struct Rank {
    std::vector<EventList> blocks;
    std::vector<size_t> sequence;  ///< by group: calls so far
    size_t entry = 0, event = 0;
    std::vector<Wait> pending;    ///< by slot of the block that runs
    std::vector<Wait> last_send;  ///< by slot of the buffer; survives blocks
  };

  size_t num_here(const ProcessGroup& group) const {
    return static_cast<size_t>(std::ranges::count_if(group.ranks, [&](RankId rank) { return !is_answered(rank); }));
  }
  bool is_answered(RankId rank) const { return others_answer_ && !present_.contains(rank); }
  const std::vector<TimetableEntry>& entries(size_t r) const { return programs_[r].*list_; }
  bool is_done(size_t r) const { return ranks_[r].entry == entries(r).size(); }
  const Block& block_at(size_t r) const { return programs_[r].blocks[entries(r)[ranks_[r].entry].block.index()]; }

  // ---- reading ----

  Status read_events(size_t r) {
    const Program& program = programs_[r];
    Rank& rank = ranks_[r];
    rank.sequence.assign(program.groups.size(), 0);
    rank.blocks.resize(program.blocks.size());
    std::map<BufferId, int> slot_of_buffer;
    std::vector<bool> is_read(program.blocks.size(), false);
    size_t most_slots = 0;
    for (const TimetableEntry& entry : entries(r)) {
      if (is_read[entry.block.index()]) continue;
      is_read[entry.block.index()] = true;
      EventList& list = rank.blocks[entry.block.index()];
      ALTIPLANO_RETURN_IF_ERROR(read_block(program, program.blocks[entry.block.index()], slot_of_buffer, list));
      most_slots = std::max(most_slots, static_cast<size_t>(list.num_slots));
    }
    rank.pending.resize(most_slots);
    rank.last_send.resize(slot_of_buffer.size());
    return Status::ok();
  }

  static Status read_block(const Program& program, const Block& block, std::map<BufferId, int>& slot_of_buffer,
                           EventList& list) {
    std::map<int, int> slots;  // of what nobody waited for yet, by instruction
    auto wait_for = [&](int before, Event::Kind kind, int index) {
      const auto slot = slots.find(before);
      if (slot == slots.end()) return;
      list.events.push_back({kind, index, slot->second});
      slots.erase(slot);
    };
    auto slot_of = [&](BufferId buffer) {
      return slot_of_buffer.emplace(buffer, static_cast<int>(slot_of_buffer.size())).first->second;
    };
    for (int i = 0; i < static_cast<int>(block.instructions.size()); ++i) {
      const Instruction& instruction = block.instructions[static_cast<size_t>(i)];
      for (int before : instruction.after) wait_for(before, Event::kWaitFor, i);
      const auto* call = std::get_if<CollectiveInstruction>(&instruction.what);
      if (call != nullptr) ALTIPLANO_RETURN_IF_ERROR(check_member(program, *call));
      if (call != nullptr || std::holds_alternative<RecvInstruction>(instruction.what)) {
        list.events.push_back({call != nullptr ? Event::kCollective : Event::kRecv, i, list.num_slots});
        list.instruction_of.push_back(i);
        slots[i] = list.num_slots++;
      } else if (const auto* send = std::get_if<SendInstruction>(&instruction.what)) {
        list.events.push_back({Event::kSend, i, slot_of(send->buffer)});
      } else if (const auto* wait = std::get_if<WaitSendInstruction>(&instruction.what)) {
        list.events.push_back({Event::kWaitSend, i, slot_of(wait->buffer)});
      }
    }
    while (!slots.empty()) wait_for(slots.begin()->first, Event::kEnd, 0);
    return Status::ok();
  }

  static Status check_member(const Program& program, const CollectiveInstruction& call) {
    const ProcessGroup& group = program.groups[call.group.index()];
    if (std::ranges::find(group.ranks, program.rank) != group.ranks.end()) return Status::ok();
    return invalid_argument("program of rank {} calls {} on group {}, which it is not in", program.rank,
                            to_string(call.kind), group.name);
  }

  // ---- running ----

  bool has_ended(const Wait& wait) const {
    if (wait.kind == Wait::kNothing || wait.is_answered) return true;
    if (wait.kind == Wait::kSend) return wait.channel->recvs.size() > wait.sequence;
    if (wait.kind == Wait::kRecv) return wait.channel->sends.size() > wait.sequence;
    return meetings_[wait.group][wait.sequence].num_members == members_here_[wait.group];
  }

  Result<bool> advance(size_t r) {
    Rank& rank = ranks_[r];
    bool moved = false;
    while (!is_done(r)) {
      const TimetableEntry& entry = entries(r)[rank.entry];
      const EventList& list = rank.blocks[entry.block.index()];
      if (rank.event == list.events.size()) {
        rank.event = 0;
        ++rank.entry;
        moved = true;
        continue;
      }
      const Event& event = list.events[rank.event];
      ALTIPLANO_ASSIGN(const bool did, take(r, entry, event));
      if (!did) break;
      ++rank.event;
      moved = true;
    }
    return moved;
  }

  /// False: not yet.
  Result<bool> take(size_t r, const TimetableEntry& entry, const Event& event) {
    Rank& rank = ranks_[r];
    const auto slot = static_cast<size_t>(event.slot);
    if (event.kind == Event::kWaitFor || event.kind == Event::kEnd) return has_ended(rank.pending[slot]);
    if (event.kind == Event::kWaitSend) return has_ended(rank.last_send[slot]);
    const Program& program = programs_[r];
    const auto& what = program.blocks[entry.block.index()].instructions[static_cast<size_t>(event.instruction)].what;
    if (event.kind == Event::kCollective) {
      ALTIPLANO_ASSIGN(rank.pending[slot], meet(r, std::get<CollectiveInstruction>(what)));
      return true;
    }
    const auto microbatch = static_cast<uint64_t>(entry.action.microbatch);
    if (const auto* send = std::get_if<SendInstruction>(&what)) {
      const ChannelKey key{program.rank, send->peer, send->tag + microbatch};
      Channel& channel = channels_[key];
      ALTIPLANO_RETURN_IF_ERROR(match(key, channel.sends, channel.recvs, program.buffer(send->buffer).bytes));
      rank.last_send[slot] = {Wait::kSend, is_answered(send->peer), channel.sends.size() - 1, &channel};
      return true;
    }
    const auto& recv = std::get<RecvInstruction>(what);
    const ChannelKey key{recv.peer, program.rank, recv.tag + microbatch};
    Channel& channel = channels_[key];
    ALTIPLANO_RETURN_IF_ERROR(match(key, channel.recvs, channel.sends, program.buffer(recv.buffer).bytes));
    rank.pending[slot] = {Wait::kRecv, is_answered(recv.peer), channel.recvs.size() - 1, &channel};
    return true;
  }

  static Status match(const ChannelKey& key, InlineVector<int64_t, 1>& mine, const InlineVector<int64_t, 1>& theirs,
                      int64_t bytes) {
    mine.push_back(bytes);
    if (theirs.size() >= mine.size() && theirs[mine.size() - 1] != bytes)
      return invalid_argument("programs: rank {} and rank {} exchange tag {:x} with {} and {} bytes", key.from, key.to,
                              key.tag, bytes, theirs[mine.size() - 1]);
    return Status::ok();
  }

  Result<Wait> meet(size_t r, const CollectiveInstruction& call) {
    const Program& program = programs_[r];
    const size_t group = call.group.index(), sequence = ranks_[r].sequence[group]++;
    if (meetings_[group].size() <= sequence) meetings_[group].resize(sequence + 1);
    Meeting& meeting = meetings_[group][sequence];
    const DType dtype = program.buffer(call.in).dtype;
    if (meeting.call && (meeting.call->kind != call.kind || meeting.call->count != call.count ||
                         meeting.call->reduce != call.reduce || meeting.dtype != dtype))
      return invalid_argument("programs: call {} of group {}: rank {} does {} of {} {}, another rank {} of {} {}",
                              sequence, program.groups[group].name, program.rank, to_string(call.kind), call.count,
                              to_string(dtype), to_string(meeting.call->kind), meeting.call->count,
                              to_string(meeting.dtype));
    meeting.call = &call;
    meeting.dtype = dtype;
    ++meeting.num_members;
    return Wait{Wait::kCollective, false, sequence, nullptr, group};
  }

  // ---- what went wrong ----

  std::string waits_at(size_t r) const {
    const Block& block = block_at(r);
    const EventList& list = ranks_[r].blocks[block.id.index()];
    const Event& event = list.events[ranks_[r].event];
    auto label = [&](int instruction) { return block.instructions[static_cast<size_t>(instruction)].label; };
    const bool is_wait = event.kind == Event::kWaitFor || event.kind == Event::kEnd;
    const std::string place = event.kind == Event::kEnd ? "the end of " + block.name : label(event.instruction);
    return is_wait ? place + " for " + label(list.instruction_of[static_cast<size_t>(event.slot)]) : place;
  }

  Status deadlock() const {
    std::string text = "programs deadlock:";
    for (size_t r = 0; r < ranks_.size(); ++r)
      if (!is_done(r))
        text += fmt::format(" rank {} in {} waits at {};", programs_[r].rank,
                            entries(r)[ranks_[r].entry].action.to_string(), waits_at(r));
    return invalid_argument("{}", text);
  }

  /// The first in order of ranks and tags, for there may be many.
  Status check_all_received() const {
    const ChannelKey* first = nullptr;
    auto order = [](const ChannelKey& key) { return std::tuple(key.from, key.to, key.tag); };
    for (const auto& [key, channel] : channels_) {
      if (channel.sends.size() == channel.recvs.size() || is_answered(key.from) || is_answered(key.to)) continue;
      if (first == nullptr || order(key) < order(*first)) first = &key;
    }
    if (first == nullptr) return Status::ok();
    const Channel& channel = channels_.at(*first);
    return invalid_argument("programs: rank {} sends {} message(s) with tag {:x} to rank {}, which receives {}",
                            first->from, channel.sends.size(), first->tag, first->to, channel.recvs.size());
  }

  const std::vector<Program>& programs_;
  std::vector<TimetableEntry> Program::*list_;
  std::vector<Rank> ranks_;
  bool others_answer_;
  std::set<RankId> present_;
  std::vector<size_t> members_here_;                               // by group
  std::unordered_map<ChannelKey, Channel, ChannelHash> channels_;  // values stay where they are
  std::vector<std::vector<Meeting>> meetings_;                     // by group and sequence
};

}  // namespace

Status rehearse(const std::vector<Program>& programs, std::vector<TimetableEntry> Program::*list, bool others_answer) {
  return Rehearsal(programs, list, others_answer).run();
}

}  // namespace altiplano
