#include "framework/simulate/critical_path.hpp"

#include <algorithm>

#include "framework/base/text.hpp"

namespace altiplano {

namespace {

/// Walks back from the end of the step.
class PathWalk {
 public:
  explicit PathWalk(const ProgramSimulation& simulation) : simulation_(simulation) {}

  std::vector<PathPart> run() {
    for (size_t p = 0; p < simulation_.ranks.size(); ++p)
      if (end_of(p) > time_) {
        time_ = end_of(p);
        program_ = p;
      }
    while (time_ > Seconds(0)) back_from_rank();
    std::ranges::reverse(path_);
    return std::move(path_);
  }

 private:
  Seconds end_of(size_t p) const {
    const auto& actions = simulation_.ranks[p].actions;
    return actions.empty() ? Seconds(0) : actions.back().end;
  }

  /// The rank worked since its last wait; what that was for decides where it goes on.
  void back_from_rank() {
    const std::vector<Wait>& waits = simulation_.ranks[program_].waits;
    const auto after = std::upper_bound(waits.begin(), waits.end(), time_,
                                        [](Seconds time, const Wait& wait) { return time < wait.end; });
    const Seconds since = after == waits.begin() ? Seconds(0) : std::prev(after)->end;
    if (time_ > since) path_.push_back({since, time_, -1, static_cast<int>(program_)});
    time_ = since;
    if (after != waits.begin()) back_from_exchange(std::prev(after)->exchange);
  }

  void back_from_exchange(int id) {
    while (id >= 0) {
      const Exchange& exchange = simulation_.exchanges[static_cast<size_t>(id)];
      if (exchange.end > exchange.begin) path_.push_back({exchange.begin, exchange.end, id, exchange.last_program});
      time_ = exchange.begin;
      program_ = static_cast<size_t>(exchange.last_program);
      id = exchange.held_up_by;
    }
  }

  const ProgramSimulation& simulation_;
  std::vector<PathPart> path_;
  Seconds time_;
  size_t program_ = 0;
};

/// Stretches that one line tells: what one stage works, with what it does in its own groups, or one action on its way
/// through several stages.
struct PathLine {
  int first_program = 0, last_program = 0;
  std::string first_action, last_action;
  Seconds length, exchanging, messages;
};

class PathWords {
 public:
  PathWords(const ProgramSimulation& simulation, const std::vector<std::string>& stage_names)
      : simulation_(simulation), stage_names_(stage_names) {
    for (const PathPart& part : critical_path(simulation)) add(part);
  }

  std::string text() const {
    constexpr size_t kMostLines = 16, kEnds = 7;
    std::string out = fmt::format("critical path, {}\n", to_string(simulation_.step));
    const bool is_long = lines_.size() > kMostLines;
    for (size_t i = 0; i < lines_.size(); ++i) {
      if (is_long && i == kEnds) {
        Seconds hidden;
        for (; i + kEnds < lines_.size(); ++i) hidden += lines_[i].length;
        out += fmt::format("  {:>9}  {} more stretches\n", to_string(hidden), lines_.size() - 2 * kEnds);
      }
      out += text_of(lines_[i]);
    }
    return out + summary();
  }

 private:
  const std::string& name(int program) const {
    return stage_names_[simulation_.ranks[static_cast<size_t>(program)].stage.index()];
  }

  /// Joins the line before where that is about the same stage, or about the same action.
  void add(const PathPart& part) {
    const PathLine next = line_of(part);
    if (!lines_.empty()) {
      PathLine& last = lines_.back();
      const bool is_one_action = last.first_action == last.last_action && next.first_action == next.last_action &&
                                 last.first_action == next.first_action;
      const bool is_one_stage = last.first_program == last.last_program && next.first_program == next.last_program &&
                                last.first_program == next.first_program;
      if (is_one_action || is_one_stage) {
        last.last_program = next.last_program;
        last.last_action = next.last_action;
        last.length += next.length;
        last.exchanging += next.exchanging;
        last.messages += next.messages;
        return;
      }
    }
    lines_.push_back(next);
  }

  PathLine line_of(const PathPart& part) const {
    const Seconds length = part.end - part.begin;
    PathLine line{part.program, part.program, {}, {}, length, {}, {}};
    if (part.exchange < 0) {
      name_actions(part, line);
      return line;
    }
    const Exchange& exchange = simulation_.exchanges[static_cast<size_t>(part.exchange)];
    line.first_action = line.last_action = exchange.action.to_string();
    if (!exchange.is_message) {
      line.exchanging = length;
      return line;
    }
    line.last_program = simulation_.groups[static_cast<size_t>(exchange.group)][1];
    line.messages = length;
    return line;
  }

  /// The first and the last action that the part's time meets.
  void name_actions(const PathPart& part, PathLine& line) const {
    const auto& all = simulation_.ranks[static_cast<size_t>(part.program)].actions;
    const auto first = std::upper_bound(all.begin(), all.end(), part.begin,
                                        [](Seconds time, const TimedAction& action) { return time < action.end; });
    const auto last = std::lower_bound(all.begin(), all.end(), part.end,
                                       [](const TimedAction& action, Seconds time) { return action.begin < time; });
    line.first_action = first->action.to_string();
    line.last_action = std::prev(last)->action.to_string();
  }

  std::string text_of(const PathLine& line) const {
    auto range = [](const std::string& from, const std::string& to) { return from == to ? from : from + " .. " + to; };
    std::string what = fmt::format("{}: {}", range(name(line.first_program), name(line.last_program)),
                                   range(line.first_action, line.last_action));
    std::vector<std::string> parts;
    if (line.exchanging > Seconds(0)) parts.push_back(to_string(line.exchanging) + " in collectives");
    if (line.messages > Seconds(0)) parts.push_back(to_string(line.messages) + " in messages");
    if (!parts.empty()) what += ", of it " + join(parts, " and ");
    return fmt::format("  {:>9}  {}\n", to_string(line.length), what);
  }

  /// Where the time of the path is, by kind and by stage.
  std::string summary() const {
    std::map<std::string, double> by_stage;
    double exchanging = 0, messages = 0;
    for (const PathLine& line : lines_) {
      exchanging += line.exchanging.value;
      messages += line.messages.value;
      if (line.first_program == line.last_program) by_stage[name(line.first_program)] += line.length.value;
    }
    const double percent = 100 / std::max(simulation_.step.value, 1e-300);
    std::string out = fmt::format("  computing {:.0f} %, collectives {:.0f} %, messages between stages {:.0f} %",
                                  percent * (simulation_.step.value - exchanging - messages), percent * exchanging,
                                  percent * messages);
    const auto most = std::ranges::max_element(by_stage, {}, [](const auto& entry) { return entry.second; });
    if (stage_names_.size() > 1 && most != by_stage.end())
      out += fmt::format("; {} alone {:.0f} %", most->first, percent * most->second);
    return out + "\n";
  }

  const ProgramSimulation& simulation_;
  const std::vector<std::string>& stage_names_;
  std::vector<PathLine> lines_;
};

}  // namespace

std::vector<PathPart> critical_path(const ProgramSimulation& simulation) {
  return PathWalk(simulation).run();
}

std::string critical_path_in_words(const ProgramSimulation& simulation, const std::vector<std::string>& stage_names) {
  return PathWords(simulation, stage_names).text();
}

}  // namespace altiplano
