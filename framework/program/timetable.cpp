#include "framework/program/timetable.hpp"

#include <algorithm>
#include <optional>

#include "framework/base/text.hpp"

namespace altiplano {
namespace {

constexpr std::pair<ActionKind, char> kLetters[] = {{ActionKind::kForward, 'F'},        {ActionKind::kBackward, 'B'},
                                                    {ActionKind::kBackwardWeight, 'W'}, {ActionKind::kRecompute, 'R'},
                                                    {ActionKind::kValidate, 'V'},       {ActionKind::kReduce, 'G'},
                                                    {ActionKind::kUpdate, 'U'}};

bool is_per_step(ActionKind kind) {
  return kind == ActionKind::kReduce || kind == ActionKind::kUpdate;
}

Status bad_action(const std::string& text) {
  return invalid_argument(
      "'{}' is no action; expected a letter of F B W R V G U, a microbatch (none for G and U) and, for a chunk "
      "other than 0, '@' and the chunk, as in F3 or F3@1",
      text);
}

/// Non-negative and small enough for an int.
std::optional<int> parse_index(std::string_view text) {
  auto number = parse_int(text);
  if (!number || *number < 0 || *number > 1'000'000) return std::nullopt;
  return static_cast<int>(*number);
}

bool is_plain(const std::vector<StageId>& chunks, size_t worker) {
  return chunks.size() == 1 && chunks[0].index() == worker;
}

/// "w12" -> 12
std::optional<int> parse_worker(std::string_view text) {
  return text.starts_with('w') ? parse_index(text.substr(1)) : std::nullopt;
}

Result<std::vector<StageId>> parse_chunks(const std::string& text) {
  std::vector<StageId> chunks;
  for (const auto& word : split(text, ' ')) {
    if (word.empty()) continue;
    auto stage = word.starts_with('s') ? parse_index(std::string_view(word).substr(1)) : std::nullopt;
    if (!stage) return invalid_argument("'{}' is no stage; expected s and a number, as in s2", word);
    chunks.emplace_back(*stage);
  }
  return chunks;
}

/// "w0 (s0 s2): F0 F0@1" appended to the table.
Status parse_worker_line(const std::string& line, Timetable& table) {
  auto colon = line.find(':');
  if (colon == std::string::npos)
    return invalid_argument("expected 'w{}: ' and its actions, got '{}'", table.workers.size(), line);
  std::string head = trim(std::string_view(line).substr(0, colon));
  std::vector<StageId> chunks = {StageId(static_cast<int64_t>(table.workers.size()))};
  if (auto open = head.find('('); open != std::string::npos) {
    if (!head.ends_with(')')) return invalid_argument("'{}' lacks its ')'", head);
    ALTIPLANO_ASSIGN(chunks, parse_chunks(head.substr(open + 1, head.size() - open - 2)));
    head = trim(std::string_view(head).substr(0, open));
  }
  if (parse_worker(head) != static_cast<int>(table.workers.size())) {
    return invalid_argument("expected worker w{}, got '{}'", table.workers.size(), head);
  }
  std::vector<Action> actions;
  for (const auto& word : split(line.substr(colon + 1), ' ')) {
    if (trim(word).empty()) continue;
    ALTIPLANO_ASSIGN(Action action, Action::parse(trim(word)));
    actions.push_back(action);
  }
  table.chunk_stage.push_back(std::move(chunks));
  table.workers.push_back(std::move(actions));
  return Status::ok();
}

/// "w0:F0" -> (worker, index of the action in its list)
Result<std::pair<int, int>> parse_end(const std::string& text, const Timetable& table) {
  auto colon = text.find(':');
  auto worker = colon == std::string::npos ? std::nullopt : parse_worker(std::string_view(text).substr(0, colon));
  if (!worker || *worker >= static_cast<int>(table.workers.size()))
    return invalid_argument("'{}' names no worker and action", text);
  ALTIPLANO_ASSIGN(Action action, Action::parse(text.substr(colon + 1)));
  const auto& list = table.workers[static_cast<size_t>(*worker)];
  auto at = std::find(list.begin(), list.end(), action);
  if (at == list.end()) return invalid_argument("w{} has no action {}", *worker, action.to_string());
  return std::pair(*worker, static_cast<int>(at - list.begin()));
}

/// "after w0:F0 -> w1:B0"
Status parse_edge_line(const std::string& line, Timetable& table) {
  auto arrow = line.find("->");
  if (arrow == std::string::npos) return invalid_argument("expected 'after w0:F0 -> w1:B0', got '{}'", line);
  ALTIPLANO_ASSIGN(auto from, parse_end(trim(std::string_view(line).substr(6, arrow - 6)), table));
  ALTIPLANO_ASSIGN(auto to, parse_end(trim(std::string_view(line).substr(arrow + 2)), table));
  table.after.push_back({from.first, from.second, to.first, to.second});
  return Status::ok();
}

void count_stages_and_microbatches(Timetable& table) {
  for (const auto& chunks : table.chunk_stage) {
    for (StageId stage : chunks) table.num_stages = std::max(table.num_stages, stage.value + 1);
  }
  for (const auto& list : table.workers) {
    for (const Action& action : list) table.num_microbatches = std::max(table.num_microbatches, action.microbatch + 1);
  }
}

}  // namespace

char letter_of(ActionKind kind) {
  for (const auto& [known, letter] : kLetters) {
    if (known == kind) return letter;
  }
  return '?';
}

std::string Action::to_string() const {
  std::string text(1, letter_of(kind));
  if (!is_per_step(kind)) text += std::to_string(microbatch);
  if (chunk != 0) text += "@" + std::to_string(chunk);
  return text;
}

Result<Action> Action::parse(const std::string& text) {
  Action action;
  auto known = std::find_if(std::begin(kLetters), std::end(kLetters),
                            [&](const auto& pair) { return text.starts_with(pair.second); });
  if (known == std::end(kLetters)) return bad_action(text);
  action.kind = known->first;
  auto at_sign = text.find('@');
  std::string number = text.substr(1, at_sign == std::string::npos ? at_sign : at_sign - 1);
  auto microbatch = parse_index(number);
  if (is_per_step(action.kind) ? !number.empty() : !microbatch) return bad_action(text);
  action.microbatch = microbatch.value_or(0);
  if (at_sign == std::string::npos) return action;
  auto chunk = parse_index(std::string_view(text).substr(at_sign + 1));
  if (!chunk) return bad_action(text);
  action.chunk = *chunk;
  return action;
}

std::string Timetable::to_string() const {
  std::string text;
  for (size_t w = 0; w < workers.size(); ++w) {
    text += fmt::format("w{}", w);
    if (w < chunk_stage.size() && !is_plain(chunk_stage[w], w)) {
      std::vector<std::string> stages;
      for (StageId stage : chunk_stage[w]) stages.push_back(fmt::format("s{}", stage));
      text += fmt::format(" ({})", join(stages, " "));
    }
    text += ":";
    for (const Action& action : workers[w]) text += " " + action.to_string();
    text += "\n";
  }
  auto end_text = [&](int worker, int index) {
    return fmt::format("w{}:{}", worker, workers[static_cast<size_t>(worker)][static_cast<size_t>(index)].to_string());
  };
  for (const auto& edge : after) {
    text += fmt::format("after {} -> {}\n", end_text(edge.from_worker, edge.from_index),
                        end_text(edge.to_worker, edge.to_index));
  }
  return text;
}

Result<Timetable> Timetable::parse(const std::string& text) {
  Timetable table;
  int number = 0;
  for (const auto& raw : split(text, '\n')) {
    ++number;
    std::string line = trim(raw);
    if (line.empty()) continue;
    Status status = line.starts_with("after ") ? parse_edge_line(line, table) : parse_worker_line(line, table);
    if (!status.is_ok()) return invalid_argument("timetable line {}: {}", number, status.message());
  }
  if (table.workers.empty()) return invalid_argument("timetable: no worker; expected lines like 'w0: F0 B0'");
  count_stages_and_microbatches(table);
  return table;
}

std::vector<int> max_in_flight(const Timetable& timetable) {
  std::vector<int> largest;
  for (const auto& list : timetable.workers) {
    int now = 0, most = 0;
    for (const Action& action : list) {
      if (action.kind == ActionKind::kForward) most = std::max(most, ++now);
      if (action.kind == ActionKind::kBackward) --now;
    }
    largest.push_back(most);
  }
  return largest;
}

}  // namespace altiplano
