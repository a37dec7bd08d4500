#include "framework/simulate/compiled_program.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "framework/simulate/program_prices.hpp"

namespace altiplano {

namespace {

/// "s0.data" of "s0.data/3".
std::string_view kind_of_group(const ProcessGroup& group) {
  return std::string_view(group.name).substr(0, group.name.find('/'));
}

/// What exchanges cost for the slowest of the ranks that a program stands for.
class ExchangePrices {
 public:
  ExchangePrices(const std::vector<std::vector<RankId>>& alike, const Cluster& cluster)
      : alike_(alike), cluster_(cluster) {}

  Seconds collective(size_t p, const Program& program, const CollectiveInstruction& call) {
    Seconds slowest;
    for (const GroupShape& shape : shapes(p, program, call.group))
      slowest = std::max(slowest, collective_cost(call.kind, bytes_of(program, call), shape).time);
    return slowest;
  }

  /// Levels that a group of the program's ranks spans, as bits.
  uint64_t levels(size_t p, const Program& program, GroupId group) {
    uint64_t bits = 0;
    for (const GroupShape& shape : shapes(p, program, group))
      for (const GroupLevel& level : shape.levels) bits |= uint64_t{1} << level.level;
    return bits;
  }

  const std::vector<GroupShape>& shapes(size_t p, const Program& program, GroupId group) {
    auto [at, is_new] = shapes_.try_emplace(group);
    if (!is_new) return at->second;
    const bool is_alone = alike_[p].size() == 1;
    const ProcessGroup& own = program.groups[group.index()];
    for (const ProcessGroup& other : program.groups)
      if (other.id == group || (!is_alone && kind_of_group(other) == kind_of_group(own)))
        add_shape(at->second, group_shape(cluster_, devices_of(other)));
    return at->second;
  }

  /// One pair of ranks per level over which programs p and q send to each other.
  const std::map<int, std::pair<int, int>>& pairs(size_t p, size_t q) {
    auto [at, is_new] = pairs_.try_emplace({p, q});
    for (size_t i = 0; is_new && i < alike_[p].size(); ++i) {
      const int from = alike_[p][i].value, to = alike_[q][i].value;
      at->second.try_emplace(cluster_.connecting_level(from, to), from, to);
    }
    return at->second;
  }

  Seconds message(size_t p, size_t q, Bytes bytes) {
    Seconds slowest;
    for (const auto& [level, pair] : pairs(p, q))
      slowest = std::max(slowest, transfer_cost(bytes, cluster_, pair.first, pair.second));
    return slowest;
  }

  /// All ranks alike, together.
  void count(size_t p, size_t q, Bytes bytes, std::vector<double>& sent) const {
    for (size_t i = 0; i < alike_[p].size(); ++i) {
      const int level = cluster_.connecting_level(alike_[p][i].value, alike_[q][i].value);
      if (level >= 0) sent[static_cast<size_t>(level)] += static_cast<double>(bytes.value);
    }
  }

 private:
  static void add_shape(std::vector<GroupShape>& shapes, GroupShape shape) {
    const auto same = [&](const GroupShape& other) {
      return other.ranks == shape.ranks && std::ranges::equal(other.levels, shape.levels, [](auto& a, auto& b) {
               return a.level == b.level && a.fanout == b.fanout;
             });
    };
    if (std::ranges::none_of(shapes, same)) shapes.push_back(std::move(shape));
  }

  const std::vector<std::vector<RankId>>& alike_;
  const Cluster& cluster_;
  std::map<GroupId, std::vector<GroupShape>> shapes_;
  std::map<std::pair<size_t, size_t>, std::map<int, std::pair<int, int>>> pairs_;
};

class ProgramCompiler {
 public:
  ProgramCompiler(const std::vector<Program>& programs, const std::vector<std::vector<RankId>>& alike,
                  const Cluster& cluster, ProgramSimulation& result)
      : programs_(programs),
        alike_(alike),
        cluster_(cluster),
        program_of_(program_of_ranks(alike)),
        prices_(alike, cluster),
        result_(result) {
    result_.sent_per_level.assign(cluster.levels.size(), 0);
    count_messages();
  }

  CompiledProgram compile(size_t p) {
    const Program& program = programs_[p];
    CompiledProgram compiled;
    compiled.blocks.resize(program.blocks.size());
    std::vector<int> runs(program.blocks.size(), 0);
    for (const TimetableEntry& entry : program.step) ++runs[entry.block.index()];
    for (size_t b = 0; b < runs.size(); ++b)
      if (runs[b] > 0) compile_block(p, program.blocks[b], runs[b], compiled.blocks[b], compiled.exchanges);
    return compiled;
  }

 private:
  using What = CompiledPart::What;
  using MessageName = std::tuple<int, int, uint64_t>;  ///< programs from and to, tag

  void compile_block(size_t p, const Block& from, int runs, CompiledBlock& block,
                     std::vector<CompiledExchange>& exchanges) {
    std::vector<int> handle_of(from.instructions.size(), -1);
    dispatch_ = from.kind == ActionKind::kUpdate ? 0 : cluster_.device.dispatch;
    for (size_t i = 0; i < from.instructions.size(); ++i) {
      const Instruction& instruction = from.instructions[i];
      for (int before : instruction.after) {
        int& handle = handle_of[static_cast<size_t>(before)];
        if (handle >= 0) wait_for(handle, block);
        handle = -1;
      }
      const auto* recv = std::get_if<RecvInstruction>(&instruction.what);
      if (recv && !is_sent(p, *recv)) continue;
      if (recv || std::holds_alternative<CollectiveInstruction>(instruction.what)) handle_of[i] = block.num_handles++;
      add(p, instruction, handle_of[i], runs, block, exchanges);
    }
    for (int handle : handle_of)
      if (handle >= 0) wait_for(handle, block);
    block.parts.push_back({});
  }

  /// A rank that communicates itself comes to its collectives when it waits for one of them, in their order.
  void wait_for(int handle, CompiledBlock& block) {
    if (std::ranges::any_of(deferred_, [&](const CompiledPart& call) { return call.handle == handle; })) {
      const auto end = std::ranges::find_if(deferred_, [&](const CompiledPart& call) { return call.handle > handle; });
      block.parts.insert(block.parts.end(), deferred_.begin(), end);
      deferred_.erase(deferred_.begin(), end);
    }
    block.parts.push_back({What::kWaitFor, handle, -1, {}});
  }

  void add(size_t p, const Instruction& instruction, int handle, int runs, CompiledBlock& block,
           std::vector<CompiledExchange>& exchanges) {
    const Program& program = programs_[p];
    const auto next = static_cast<int>(exchanges.size());
    if (const auto* call = std::get_if<CollectiveInstruction>(&instruction.what)) {
      exchanges.push_back(collective(p, *call, label(instruction.label)));
      count_sent(p, *call, runs);
      (cluster_.device.overlaps_communication ? block.parts : deferred_).push_back({What::kCall, handle, next, {}});
    } else if (const auto* send = std::get_if<SendInstruction>(&instruction.what)) {
      exchanges.push_back(message(p, program_of_.at(send->peer.value), *send, instruction.label));
      prices_.count(p, static_cast<size_t>(exchanges.back().peer), Bytes(program.buffer(send->buffer).bytes * runs),
                    result_.sent_per_level);
      block.parts.push_back({What::kSend, -1, next, {}});
    } else if (const auto* recv = std::get_if<RecvInstruction>(&instruction.what)) {
      exchanges.push_back(receipt(p, *recv));
      block.parts.push_back({What::kReceive, handle, next, {}});
    } else if (const auto* wait = std::get_if<WaitSendInstruction>(&instruction.what)) {
      CompiledExchange sent;
      sent.buffer = wait->buffer.index();
      exchanges.push_back(sent);
      block.parts.push_back({What::kWaitSent, -1, next, {}});
    } else if (WorkTime work = work_time(program, instruction, cluster_); work.alone() > 0) {
      if (block.parts.empty() || block.parts.back().what != What::kWork)
        block.parts.push_back({What::kWork, -1, -1, {}});
      work.dispatch = std::min(work.dispatch, dispatch_);
      block.parts.back().work += work;
      return;
    }
    const bool is_handed_to_device =
        !block.parts.empty() && block.parts.back().exchange == next && block.parts.back().what != What::kWaitSent;
    if (is_handed_to_device) block.parts.back().dispatch = dispatch_;
  }

  CompiledExchange collective(size_t p, const CollectiveInstruction& call, int label) {
    const Program& program = programs_[p];
    CompiledExchange out;
    out.label = label;
    out.seconds = prices_.collective(p, program, call).value;
    out.levels = prices_.levels(p, program, call.group);
    out.call_group = call.group;
    std::set<int> members;
    for (RankId rank : program.groups[call.group.index()].ranks) members.insert(program_of_.at(rank.value));
    out.group = group({members.begin(), members.end()});
    return out;
  }

  /// Ranks that stand for others send and get for them: the pieces of a transfer between two such are one exchange,
  /// which ends with the last of them.
  uint64_t tag(size_t p, int q, uint64_t of_piece, uint64_t of_transfer) const {
    const bool stands_for_others = alike_[p].size() > 1 || alike_[static_cast<size_t>(q)].size() > 1;
    return stands_for_others ? of_transfer : of_piece;
  }

  CompiledExchange message(size_t p, int q, const SendInstruction& send, const std::string& text) {
    const auto peer = static_cast<size_t>(q);
    CompiledExchange out;
    out.label = label(text);
    out.peer = q;
    out.seconds = prices_.message(p, peer, Bytes(programs_[p].buffer(send.buffer).bytes)).value;
    for (const auto& [level, pair] : prices_.pairs(p, peer))
      if (level >= 0) out.levels |= uint64_t{1} << level;
    out.group = group({static_cast<int>(p), q});
    out.tag = tag(p, q, send.tag, send.transfer);
    out.num_pieces = num_sent_.at({static_cast<int>(p), q, out.tag});
    out.buffer = send.buffer.index();
    out.needs_sender = !cluster_.device.overlaps_communication &&
                       static_cast<double>(programs_[p].buffer(send.buffer).bytes) > cluster_.device.eager_messages;
    return out;
  }

  CompiledExchange receipt(size_t q, const RecvInstruction& recv) const {
    CompiledExchange out;
    out.peer = sender_of(recv);
    out.tag = tag(q, out.peer, recv.tag, recv.transfer);
    return out;
  }
  int sender_of(const RecvInstruction& recv) const { return program_of_.at(recv.peer.value); }

  /// What only ranks send that nobody simulates is not waited for.
  bool is_sent(size_t q, const RecvInstruction& recv) const {
    const int p = sender_of(recv);
    return num_sent_.contains({p, static_cast<int>(q), tag(q, p, recv.tag, recv.transfer)});
  }

  void count_messages() {
    for (size_t p = 0; p < programs_.size(); ++p)
      for (const Block& block : programs_[p].blocks) {
        std::map<MessageName, int> in_block;
        for (const Instruction& instruction : block.instructions)
          if (const auto* send = std::get_if<SendInstruction>(&instruction.what)) {
            const int q = program_of_.at(send->peer.value);
            ++in_block[{static_cast<int>(p), q, tag(p, q, send->tag, send->transfer)}];
          }
        for (const auto& [name, count] : in_block) num_sent_[name] = count;
      }
  }

  /// Each rank counts its part of what its group sends.
  void count_sent(size_t p, const CollectiveInstruction& call, int runs) {
    const std::vector<GroupShape>& shapes = prices_.shapes(p, programs_[p], call.group);
    for (const GroupShape& shape : shapes)
      for (const auto& [level, bytes] : bytes_by_level(call.kind, bytes_of(programs_[p], call), shape))
        result_.sent_per_level[static_cast<size_t>(level)] +=
            bytes / shape.ranks * runs * static_cast<double>(alike_[p].size()) / static_cast<double>(shapes.size());
  }

  int label(const std::string& text) { return numbered(labels_, text, result_.labels); }
  int group(std::vector<int> members) { return numbered(groups_, members, result_.groups); }
  template <typename Key>
  static int numbered(std::map<Key, int>& known, const Key& key, std::vector<Key>& list) {
    const auto [at, is_new] = known.try_emplace(key, static_cast<int>(list.size()));
    if (is_new) list.push_back(key);
    return at->second;
  }

  const std::vector<Program>& programs_;
  const std::vector<std::vector<RankId>>& alike_;
  const Cluster& cluster_;
  std::map<int, int> program_of_;
  ExchangePrices prices_;
  ProgramSimulation& result_;
  std::vector<CompiledPart> deferred_;   ///< calls of a block that nobody waited for yet
  double dispatch_ = 0;                  ///< of an instruction of the block; an update's are handed over together
  std::map<MessageName, int> num_sent_;  ///< in a block, under one tag
  std::map<std::string, int> labels_;
  std::map<std::vector<int>, int> groups_;
};

}  // namespace

std::map<int, int> program_of_ranks(const std::vector<std::vector<RankId>>& alike) {
  std::map<int, int> program_of;
  for (size_t p = 0; p < alike.size(); ++p)
    for (RankId rank : alike[p]) program_of[rank.value] = static_cast<int>(p);
  return program_of;
}

std::vector<CompiledProgram> compile_programs(const std::vector<Program>& programs,
                                              const std::vector<std::vector<RankId>>& alike, const Cluster& cluster,
                                              ProgramSimulation& result) {
  ProgramCompiler compiler(programs, alike, cluster, result);
  std::vector<CompiledProgram> compiled;
  for (size_t p = 0; p < programs.size(); ++p) compiled.push_back(compiler.compile(p));
  return compiled;
}

}  // namespace altiplano
