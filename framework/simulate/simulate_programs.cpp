#include "framework/simulate/simulate_programs.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <queue>
#include <unordered_map>

#include "framework/simulate/compiled_program.hpp"
#include "framework/simulate/shared_time.hpp"

namespace altiplano {

namespace {

constexpr double kNotKnown = std::numeric_limits<double>::infinity();
/// A rank that exchanges data itself stays at it for a moment after its wait, for peers that are about to ask.
constexpr double kLingers = 2e-4;

/// A message by who sends it to whom and its tag, the microbatch added.
struct MessageKey {
  int from = 0, to = 0;
  uint64_t tag = 0;
  bool operator==(const MessageKey&) const = default;
};
struct MessageHash {
  size_t operator()(const MessageKey& key) const {
    const auto ends = static_cast<uint64_t>(key.from) << 32 | static_cast<uint64_t>(key.to);
    return std::hash<uint64_t>()(key.tag * 0x9e3779b97f4a7c15ULL ^ ends);
  }
};

class ProgramSimulator {
 public:
  ProgramSimulator(const std::vector<Program>& programs, const std::vector<std::vector<RankId>>& alike,
                   const Cluster& cluster, const Jitter& jitter)
      : programs_(programs),
        jitter_(jitter),
        compiled_(compile_programs(programs, alike, cluster, result_)),
        num_levels_(cluster.levels.size()),
        ranks_(programs.size()),
        shared_time_(cluster.device),
        is_shared_(SharedTime::is_needed(cluster.device)),
        communicates_itself_(!cluster.device.overlaps_communication) {
    result_.ranks.resize(programs.size());
    for (size_t p = 0; p < programs.size(); ++p) {
      RankTimeline& timeline = result_.ranks[p];
      timeline.rank = programs[p].rank;
      timeline.stage = programs[p].stage;
      timeline.num_alike = static_cast<int>(alike[p].size());
      timeline.peak = programs[p].peak();
      ranks_[p].lanes.resize(2 * num_levels_ + 1);
      ranks_[p].last_sent.assign(programs[p].buffers.size(), -1);
      ranks_[p].num_calls.assign(programs[p].groups.size(), 0);
      const auto node_of = [&](RankId rank) { return rank.value / cluster.devices_per_node(); };
      ranks_[p].node = node_of(programs[p].rank);
      for (RankId rank : alike[p]) ranks_[p].devices += node_of(rank) == ranks_[p].node ? 1 : 0;
    }
  }

  Result<ProgramSimulation> run() {
    for (size_t p = 0; p < programs_.size(); ++p) {
      if (programs_[p].step.empty()) continue;
      start_entry(p);
      events_.emplace(0.0, p);
    }
    while (!events_.empty()) {
      const auto [time, p] = events_.top();
      events_.pop();
      advance(p, time);
    }
    for (size_t p = 0; p < programs_.size(); ++p)
      if (ranks_[p].entry < programs_[p].step.size())
        return invalid_argument("programs deadlock: rank {} waits for ever in {}", programs_[p].rank,
                                programs_[p].step[ranks_[p].entry].action.to_string());
    if (is_shared_) stretch();
    sum_up();
    return std::move(result_);
  }

 private:
  using What = CompiledPart::What;
  /// A port or the stream of collectives: until when it is taken, and by what.
  struct Lane {
    double free = 0;
    int exchange = -1;
  };
  struct Rank {
    size_t entry = 0, part = 0;
    double slowness = 1;  ///< of its work in this entry
    double time = 0;
    double host = 0;             ///< when its host has handed over what the device was given so far
    std::vector<int> handles;    ///< exchanges of this block
    std::vector<int> last_sent;  ///< by buffer
    std::vector<int> num_calls;  ///< by group
    std::deque<int> calls;       ///< collectives it has come to that did not begin, in order
    int blocked_on = -1;
    double wait_end = 0;                            ///< of the wait it is in; kNotKnown while it is blocked
    bool is_done = false;                           ///< with its step: it waits for its messages to be taken
    std::vector<int> unmoved;                       ///< messages from it or to it that move only while both wait
    std::vector<Lane> lanes;                        ///< ports out by level, ports in by level, stream of collectives
    std::vector<std::pair<double, double>> worked;  ///< from when to when, of ranks that slow each other down
    int node = 0, devices = 0;                      ///< where it works, and how many of the ranks it stands for do
  };
  /// Of an exchange that did not begin.
  struct Pending {
    int num_came = 0;
    double seconds = 0;
    uint64_t levels = 0;
    // Of a message that moves only while both wait:
    size_t from = 0, to = 0;
    double all_seconds = 0;  ///< of its pieces
    bool is_sent = false, is_asked_for = false;
  };

  const TimetableEntry& entry_of(size_t p) const { return programs_[p].step[ranks_[p].entry]; }
  const CompiledExchange& exchange_of(size_t p, const CompiledPart& part) const {
    return compiled_[p].exchanges[static_cast<size_t>(part.exchange)];
  }
  Exchange& exchange(int id) { return result_.exchanges[static_cast<size_t>(id)]; }

  void start_entry(size_t p) {
    Rank& rank = ranks_[p];
    rank.part = 0;
    rank.slowness = jitter_.factor(programs_[p].rank, result_.ranks[p].num_alike, rank.entry);
    rank.handles.assign(static_cast<size_t>(compiled_[p].blocks[entry_of(p).block.index()].num_handles), -1);
    result_.ranks[p].actions.push_back({entry_of(p).action, Seconds(rank.time), Seconds(rank.time)});
  }

  /// Runs a rank until it waits, or until it would come to others at a time before which they may do something.
  void advance(size_t p, double now) {
    Rank& rank = ranks_[p];
    while (rank.entry < programs_[p].step.size()) {
      const CompiledPart& part = compiled_[p].blocks[entry_of(p).block.index()].parts[rank.part];
      if (part.what == What::kEnd) {
        result_.ranks[p].actions.back().end = Seconds(rank.time);
        if (++rank.entry < programs_[p].step.size()) start_entry(p);
        continue;
      }
      const bool meets_others =
          communicates_itself_ ? part.what != What::kWork : part.what == What::kSend || part.what == What::kCall;
      if (meets_others && rank.time > now) {
        events_.emplace(rank.time, p);
        return;
      }
      if (!run_part(p, part)) return;
      ++rank.part;
    }
    if (communicates_itself_ && !rank.is_done) finish(p, now);
  }

  void finish(size_t p, double now) {
    Rank& rank = ranks_[p];
    if (rank.time > now) {
      events_.emplace(rank.time, p);
      return;
    }
    rank.is_done = true;
    move_messages(p, now);
  }

  /// False: the rank waits.
  bool run_part(size_t p, const CompiledPart& part) {
    Rank& rank = ranks_[p];
    switch (part.what) {
      case What::kWork:
        work(p, part.work);
        break;
      case What::kWaitFor:
        return wait_for(p, rank.handles[static_cast<size_t>(part.handle)]);
      case What::kWaitSent: {
        const int sent = rank.last_sent[exchange_of(p, part).buffer];
        return sent < 0 || wait_for(p, sent);
      }
      case What::kSend:
        rank.host += part.dispatch;
        send(p, exchange_of(p, part));
        break;
      case What::kReceive: {
        rank.host += part.dispatch;
        const int id = message(exchange_of(p, part).peer, static_cast<int>(p), tag_of(p, exchange_of(p, part)));
        rank.handles[static_cast<size_t>(part.handle)] = id;
        pending_[static_cast<size_t>(id)].is_asked_for = true;
        break;
      }
      case What::kCall:
        rank.host += part.dispatch;
        rank.handles[static_cast<size_t>(part.handle)] = call(p, exchange_of(p, part));
        break;
      case What::kEnd:
        break;
    }
    return true;
  }

  /// The device has done it when it is through with it and the host is, too.
  void work(size_t p, const WorkTime& priced) {
    Rank& rank = ranks_[p];
    const WorkTime work{priced.compute * rank.slowness, priced.memory * rank.slowness, priced.dispatch * rank.slowness};
    rank.host += work.dispatch;
    const double begin = rank.time;
    rank.time = std::max(begin + work.alone(), rank.host);
    result_.ranks[p].busy += Seconds(rank.time - begin);
    if (!is_shared_) return;
    shared_time_.add(rank.node, rank.devices, begin, rank.time, work, rank.time - begin - work.alone());
    rank.worked.emplace_back(begin, rank.time);
  }

  /// To the times that devices take beside each other.
  void stretch() {
    shared_time_.close();
    const auto to_shared = [&](Seconds& time) { time = Seconds(shared_time_.at(time.value)); };
    for (Exchange& e : result_.exchanges)
      for (Seconds* time : {&e.came, &e.begin, &e.end}) to_shared(*time);
    for (size_t p = 0; p < ranks_.size(); ++p) {
      RankTimeline& timeline = result_.ranks[p];
      for (TimedAction& action : timeline.actions) to_shared(action.begin), to_shared(action.end);
      for (Wait& wait : timeline.waits) to_shared(wait.begin), to_shared(wait.end);
      ranks_[p].time = shared_time_.at(ranks_[p].time);
      timeline.busy = Seconds(0);
      for (const auto& [begin, end] : ranks_[p].worked)
        timeline.busy += Seconds(shared_time_.at(end) - shared_time_.at(begin));
    }
  }

  bool wait_for(size_t p, int id) {
    Rank& rank = ranks_[p];
    rank.wait_end = exchange(id).end.value;
    if (rank.wait_end > rank.time) move_messages(p, rank.time);
    const double end = rank.wait_end = exchange(id).end.value;
    rank.blocked_on = end == kNotKnown ? id : -1;
    if (rank.blocked_on >= 0) return false;
    if (end > rank.time) {
      result_.ranks[p].waits.push_back({Seconds(rank.time), Seconds(end), id});
      rank.time = end;
    }
    if (exchange(id).is_message) rank.host = std::max(rank.host, end);  // it waits too, to know what came
    return true;
  }

  int new_exchange(bool is_message) {
    Exchange made;
    made.is_message = is_message;
    made.begin = made.end = Seconds(kNotKnown);
    result_.exchanges.push_back(made);
    pending_.emplace_back();
    return static_cast<int>(pending_.size()) - 1;
  }

  uint64_t tag_of(size_t p, const CompiledExchange& what) const {
    return what.tag + static_cast<uint64_t>(entry_of(p).action.microbatch);
  }

  /// Whoever comes first, sender or receiver, makes it known.
  int message(int from, int to, uint64_t tag) {
    const auto [at, is_new] = messages_.try_emplace({from, to, tag}, -1);
    if (is_new) at->second = new_exchange(true);
    return at->second;
  }

  /// Somebody has come to an exchange.
  void come(size_t p, int id, const CompiledExchange& what) {
    Exchange& e = exchange(id);
    e.label = what.label;
    e.group = what.group;
    e.action = entry_of(p).action;
    e.last_program = static_cast<int>(p);
    Pending& pending = pending_[static_cast<size_t>(id)];
    ++pending.num_came;
    pending.seconds = std::max(pending.seconds, what.seconds);
    pending.levels |= what.levels;
  }

  void send(size_t p, const CompiledExchange& what) {
    const int id = message(static_cast<int>(p), what.peer, tag_of(p, what));
    come(p, id, what);
    ranks_[p].last_sent[what.buffer] = id;
    if (what.needs_sender) return announce(p, id, what);
    begin(id, ranks_[p].time, what.seconds, message_lanes(p, static_cast<size_t>(what.peer), what.levels));
    if (pending_[static_cast<size_t>(id)].num_came < what.num_pieces)
      exchange(id).end = Seconds(kNotKnown);
    else
      wake(static_cast<size_t>(what.peer), id);
  }

  std::vector<Lane*> message_lanes(size_t from, size_t to, uint64_t levels) {
    std::vector<Lane*> lanes;
    add_ports(lanes, from, levels, 0);
    add_ports(lanes, to, levels, num_levels_);
    return lanes;
  }

  /// A message that moves when its receiver waits, and its sender waits or has just come to it.
  void announce(size_t p, int id, const CompiledExchange& what) {
    Pending& pending = pending_[static_cast<size_t>(id)];
    pending.from = p;
    pending.to = static_cast<size_t>(what.peer);
    pending.all_seconds += what.seconds;
    if (pending.num_came < what.num_pieces) return;
    pending.is_sent = true;
    ranks_[pending.from].unmoved.push_back(id);
    ranks_[pending.to].unmoved.push_back(id);
    Rank& sender = ranks_[p];
    sender.wait_end = kNotKnown;
    move_messages(p, sender.time);
    sender.wait_end = 0;
    if (const double end = exchange(id).end.value; end != kNotKnown) sender.time = end;  // it hands it over itself
  }

  bool is_waiting(size_t p, double now) const {
    return ranks_[p].is_done || ranks_[p].wait_end + (ranks_[p].wait_end > 0 ? kLingers : 0) > now;
  }

  /// Rank p has begun to wait: what waits for that moves.
  void move_messages(size_t p, double now) {
    const std::vector<int> unmoved = ranks_[p].unmoved;
    for (int id : unmoved) {
      const Pending& pending = pending_[static_cast<size_t>(id)];
      if (!pending.is_asked_for || !is_waiting(pending.from, now) || !is_waiting(pending.to, now)) continue;
      exchange(id).last_program = static_cast<int>(p);
      begin(id, now, pending.all_seconds, message_lanes(pending.from, pending.to, pending.levels));
      for (size_t end : {pending.from, pending.to}) {
        std::erase(ranks_[end].unmoved, id);
        wake(end, id);
      }
      Rank& sender = ranks_[pending.from];
      if (sender.is_done) sender.time = std::max(sender.time, exchange(id).end.value);
    }
  }

  int call(size_t p, const CompiledExchange& what) {
    const uint64_t key =
        what.call_group.index() << 40 | static_cast<uint64_t>(ranks_[p].num_calls[what.call_group.index()]++);
    const auto [at, is_new] = calls_.try_emplace(key, -1);
    if (is_new) at->second = new_exchange(false);
    const int id = at->second;
    come(p, id, what);
    ranks_[p].calls.push_back(id);
    const std::vector<int>& members = result_.groups[static_cast<size_t>(what.group)];
    if (pending_[static_cast<size_t>(id)].num_came == static_cast<int>(members.size())) {
      calls_.erase(key);
      begin_call(id, ranks_[p].time);
    }
    return id;
  }

  bool can_begin(int id) {
    const std::vector<int>& members = result_.groups[static_cast<size_t>(exchange(id).group)];
    return pending_[static_cast<size_t>(id)].num_came == static_cast<int>(members.size()) &&
           std::ranges::all_of(members, [&](int m) { return ranks_[static_cast<size_t>(m)].calls.front() == id; });
  }

  /// All have come: it begins unless one of them has an earlier one to do, which then begins it.
  void begin_call(int id, double now) {
    if (!can_begin(id)) return;
    const std::vector<int>& members = result_.groups[static_cast<size_t>(exchange(id).group)];
    const uint64_t levels = pending_[static_cast<size_t>(id)].levels;
    std::vector<Lane*> lanes;
    for (int m : members) {
      const auto rank = static_cast<size_t>(m);
      lanes.push_back(&ranks_[rank].lanes.back());
      add_ports(lanes, rank, levels, 0);
      add_ports(lanes, rank, levels, num_levels_);
      ranks_[rank].calls.pop_front();
    }
    begin(id, now, pending_[static_cast<size_t>(id)].seconds, lanes);
    for (int m : members) {
      wake(static_cast<size_t>(m), id);
      const std::deque<int>& calls = ranks_[static_cast<size_t>(m)].calls;
      if (!calls.empty()) begin_call(calls.front(), now);
    }
  }

  void add_ports(std::vector<Lane*>& lanes, size_t p, uint64_t levels, size_t first) {
    for (size_t level = 0; level < num_levels_; ++level)
      if (levels >> level & 1) lanes.push_back(&ranks_[p].lanes[first + level]);
  }

  /// At `now` at the earliest, when all its lanes are free.
  void begin(int id, double now, double seconds, const std::vector<Lane*>& lanes) {
    Exchange& e = exchange(id);
    const bool is_first = e.begin.value == kNotKnown;  // else a further piece of a message
    double start = now;
    for (const Lane* lane : lanes) {
      if (lane->free <= start) continue;
      start = lane->free;
      if (is_first) e.held_up_by = lane->exchange;
    }
    if (is_first) {
      e.begin = Seconds(start);
      e.came = Seconds(now);
    }
    e.end = Seconds(start + seconds);
    for (Lane* lane : lanes) *lane = {e.end.value, id};
  }

  void wake(size_t p, int id) {
    if (ranks_[p].blocked_on != id) return;
    ranks_[p].blocked_on = -1;
    events_.emplace(std::max(ranks_[p].time, exchange(id).end.value), p);
  }

  void sum_up() {
    for (const Rank& rank : ranks_) result_.step = std::max(result_.step, Seconds(rank.time));
    for (RankTimeline& timeline : result_.ranks) {
      for (const Wait& wait : timeline.waits) {
        const Seconds from = std::clamp(exchange(wait.exchange).came, wait.begin, wait.end);
        timeline.exposed += wait.end - from;
      }
      timeline.bubble = result_.step - timeline.busy - timeline.exposed;
      if (timeline.bubble < result_.step * 1e-9) timeline.bubble = Seconds(0);  // rounding of the sums
    }
  }

  const std::vector<Program>& programs_;
  const Jitter jitter_;
  ProgramSimulation result_;
  std::vector<CompiledProgram> compiled_;
  size_t num_levels_;
  std::vector<Rank> ranks_;
  SharedTime shared_time_;
  bool is_shared_, communicates_itself_;
  std::vector<Pending> pending_;  ///< by exchange
  std::unordered_map<MessageKey, int, MessageHash> messages_;
  std::unordered_map<uint64_t, int> calls_;  ///< by group and how many calls it had before
  using Event = std::pair<double, size_t>;   ///< when, and which program
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace

Result<ProgramSimulation> simulate_programs(const std::vector<Program>& programs,
                                            const std::vector<std::vector<RankId>>& alike, const Cluster& cluster,
                                            const Jitter& jitter) {
  ALTIPLANO_ASSERT(programs.size() == alike.size(), "{} programs stand for {} lists of ranks", programs.size(),
                   alike.size());
  return ProgramSimulator(programs, alike, cluster, jitter).run();
}

bool stand_for_all(const std::vector<Program>& programs, const std::vector<std::vector<RankId>>& alike) {
  const std::map<int, int> program_of = program_of_ranks(alike);
  auto is_like = [&](size_t p, RankId peer) {
    const auto at = program_of.find(peer.value);
    if (at == program_of.end()) return false;
    const auto& others = alike[static_cast<size_t>(at->second)];
    return others.front() == peer && others.size() == alike[p].size();
  };
  for (size_t p = 0; p < programs.size(); ++p)
    for (const Block& block : programs[p].blocks)
      for (const Instruction& instruction : block.instructions) {
        const auto* send = std::get_if<SendInstruction>(&instruction.what);
        const auto* recv = std::get_if<RecvInstruction>(&instruction.what);
        if ((send && !is_like(p, send->peer)) || (recv && !is_like(p, recv->peer))) return false;
      }
  return true;
}

}  // namespace altiplano
