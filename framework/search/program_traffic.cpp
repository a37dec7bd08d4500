#include "framework/search/program_traffic.hpp"

#include <algorithm>
#include <map>

namespace altiplano {
namespace {

class Traffic {
 public:
  explicit Traffic(const std::vector<Program>& programs) : programs_(programs) {}

  std::vector<SlotExchange> sum() {
    for (const Program& program : programs_)
      for (const TimetableEntry& entry : program.step)
        for (const Instruction& instruction : program.blocks[entry.block.index()].instructions)
          count(program, instruction);
    std::vector<SlotExchange> exchanges;
    for (const auto& [slots, bytes] : bytes_) exchanges.push_back({slots, bytes});
    return exchanges;
  }

 private:
  void count(const Program& program, const Instruction& instruction) {
    if (const auto* send = std::get_if<SendInstruction>(&instruction.what))
      add({program.rank.value, send->peer.value}, static_cast<double>(program.buffer(send->buffer).bytes));
    if (const auto* call = std::get_if<CollectiveInstruction>(&instruction.what)) count_collective(program, *call);
  }

  /// Once, by the group's first member.
  void count_collective(const Program& program, const CollectiveInstruction& call) {
    const std::vector<RankId>& ranks = program.groups[call.group.index()].ranks;
    if (ranks.front() != program.rank) return;
    const double piece = static_cast<double>(call.count * size_of(program.buffer(call.out).dtype));
    const double whole = piece * static_cast<double>(ranks.size());
    switch (call.kind) {
      case CollectiveKind::kAllReduce:
        return add(slots_of(ranks), 2 * piece);
      case CollectiveKind::kBroadcast:
        return add(slots_of(ranks), piece);
      case CollectiveKind::kAllGather:
      case CollectiveKind::kReduceScatter:
        return add(slots_of(ranks), whole);
      case CollectiveKind::kAllToAll:
        for (size_t a = 0; a < ranks.size(); ++a)
          for (size_t b = a + 1; b < ranks.size(); ++b) add({ranks[a].value, ranks[b].value}, 2 * piece);
        return;
      case CollectiveKind::kBarrier:
        return;
    }
  }

  static std::vector<int> slots_of(const std::vector<RankId>& ranks) {
    std::vector<int> slots;
    for (RankId rank : ranks) slots.push_back(rank.value);
    return slots;
  }

  void add(std::vector<int> slots, double bytes) {
    std::ranges::sort(slots);
    bytes_[std::move(slots)] += bytes;
  }

  const std::vector<Program>& programs_;
  std::map<std::vector<int>, double> bytes_;
};

}  // namespace

std::vector<SlotExchange> exchanges_of(const std::vector<Program>& programs) {
  return Traffic(programs).sum();
}

}  // namespace altiplano
