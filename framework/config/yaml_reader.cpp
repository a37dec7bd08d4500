#include "framework/config/yaml_reader.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/base/text.hpp"
#include "framework/storage/input_file.hpp"

namespace altiplano {
namespace {

using Kind = YamlNode::Kind;
constexpr int kLast = std::numeric_limits<int>::max();  ///< line of problems that belong to no line

bool is_list(OptionType type) {
  return type == OptionType::kIntList || type == OptionType::kFloatList || type == OptionType::kStringList;
}

const char* element_name(OptionType type) {
  return type == OptionType::kIntList ? "integer" : type == OptionType::kFloatList ? "number" : "text";
}

std::string quoted_if_odd(const std::string& text) {
  bool odd = text.empty() || text.find_first_of(" \t\n") != std::string::npos;
  return odd ? "\"" + text + "\"" : text;
}

/// What a node is, for "got ...".
std::string node_text(const YamlNode& node) {
  switch (node.kind) {
    case Kind::kScalar:
      return quoted_if_odd(node.scalar);
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a map";
    case Kind::kEmpty:
      break;
  }
  return "nothing";
}

std::string last_part(const std::string& path) {
  return path.substr(path.rfind('.') + 1);
}

std::string prefix_of(const std::string& path) {
  size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot + 1);
}

/// "read from n_layer, $SCRATCH"
std::string detail_of(const OptionRecord& record, const std::string& path, const std::vector<std::string>& variables) {
  std::vector<std::string> parts;
  if (path != record.key) parts.push_back("read from " + path);
  for (const auto& name : variables) parts.push_back("$" + name);
  return join(parts, ", ");
}

/// Line and column of each entry of a list or map.
std::vector<std::pair<int, int>> places_of_items(const YamlNode& node) {
  std::vector<std::pair<int, int>> places;
  for (const auto& item : node.items) places.emplace_back(item->line, item->column);
  for (const auto& entry : node.entries) places.emplace_back(entry.line, entry.column);
  return places;
}

YamlNodePointer scalar_node(const std::string& text) {
  auto node = std::make_shared<YamlNode>();
  node->kind = Kind::kScalar;
  node->scalar = text;
  return node;
}

}  // namespace

OptionOrigin OptionReader::Source::at(int line, int column) const {
  if (file.empty()) return {.source = flag};
  return {.file = file, .line = line, .column = column, .source = "file"};
}

std::string OptionReader::Source::start(int line, int column, const std::string& key) const {
  if (file.empty()) return start_of_message({.source = flag}, key);
  return fmt::format("{}:{}:{}: {}", file, line, column, key);
}

OptionReader::OptionReader(std::vector<OptionRecord> records, std::vector<Shorthand> shorthands, VariableLookup lookup)
    : options_(std::move(records)), shorthands_(std::move(shorthands)), lookup_(std::move(lookup)) {}

void OptionReader::add_problem(int line, int column, std::string text) {
  problems_.push_back({line, column, std::move(text)});
}

void OptionReader::read_file(const std::string& file) {
  auto text = read_input_file(file, kMostWrittenBytes);
  unreadable_ = !text.is_ok();
  if (unreadable_) return add_problem(0, 0, text.status().message());
  read_text(*text, file);
}

void OptionReader::read_text(const std::string& text, const std::string& file) {
  const Source source{file};
  text_ = text;
  YamlDocument document = parse_yaml(text);
  places_.clear();
  for (const auto& problem : document.problems) {
    add_problem(problem.line, problem.column,
                fmt::format("{}:{}:{}: {}", file, problem.line, problem.column, problem.text));
  }
  const YamlNode& root = *document.root;
  unreadable_ = !document.problems.empty() || root.kind != Kind::kMap;
  if (!document.problems.empty()) return;
  if (root.kind == Kind::kMap) return read_map(root, "", source);
  std::string got = root.kind == Kind::kEmpty ? "empty file" : "got " + node_text(root);
  add_problem(1, 1, fmt::format("{}:1:1: {}, expected sections: {}", file, got, join(keys_of_section(""), ", ")));
}

void OptionReader::read_assignment(const std::string& assignment, const std::string& flag) {
  size_t equals = assignment.find('=');
  std::string key = trim(assignment.substr(0, equals));
  std::string text = equals == std::string::npos ? "" : trim(assignment.substr(equals + 1));
  if (equals == std::string::npos || key.empty()) {
    return add_problem(kLast, 0, fmt::format("--set {}: expected key=value, e.g. train.max_steps=100", assignment));
  }
  if (text.empty()) {
    return add_problem(kLast, 0, fmt::format("--set {}: empty value; leave it out to keep the job file's", key));
  }
  YamlEntry entry{key, kLast, 0, scalar_node(text)};
  const OptionRecord* record = find_any(key);
  bool structured = record != nullptr && (is_list(record->type) || record->type == OptionType::kStringMap ||
                                          (record->type == OptionType::kFiles && text.starts_with('[')));
  if (structured || text.starts_with('{')) {
    YamlDocument document = parse_yaml(text);
    if (!document.problems.empty()) {
      return add_problem(kLast, 0, fmt::format("--set {}: {}", key, document.problems.front().text));
    }
    entry.value = document.root;
  }
  places_.clear();
  read_entry(entry, key, Source{.file = {}, .flag = flag});
}

void OptionReader::check_required(const std::string& file) {
  if (unreadable_) return;
  for (const auto& record : options_.records()) {
    if (!record.required || given_.contains(record.key)) continue;
    add_problem(kLast, 0, fmt::format("{}: {}: missing, expected {}", file, record.key, expected_text(record)));
  }
}

Status OptionReader::status() const {
  if (problems_.empty()) return Status::ok();
  auto sorted = problems_;
  std::ranges::stable_sort(sorted, [](const Problem& a, const Problem& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
  std::vector<std::string> lines;
  for (const auto& problem : sorted) lines.push_back(problem.text);
  return {StatusCode::kInvalidArgument, join(lines, "\n")};
}

void OptionReader::read_map(const YamlNode& map, const std::string& prefix, const Source& source) {
  for (const auto& entry : map.entries) read_entry(entry, prefix + entry.key, source);
}

void OptionReader::read_entry(const YamlEntry& entry, const std::string& path, const Source& source) {
  if (!is_first(path, path, entry, source)) return;
  if (const OptionRecord* record = options_.find_record(path)) return read_option(*record, entry, path, source);
  if (const OptionRecord* record = find_alias(path)) return read_renamed(*record, nullptr, entry, path, source);
  const bool is_map = entry.value->kind == Kind::kMap;
  if (is_map && (!keys_of_section(path + ".").empty() || is_foreign_section(path)))
    return read_map(*entry.value, path + ".", source);
  const Shorthand* shorthand = find_shorthand(path);
  if (shorthand != nullptr && entry.value->kind == Kind::kScalar) {
    for (const auto& target : shorthand->targets) {
      if (is_first(target, path, entry, source)) read_option(*options_.find_record(target), entry, path, source);
    }
    return;
  }
  if (!keys_of_section(path + ".").empty()) return refuse_section(entry, path, source);
  if (const ForeignKey* foreign = find_foreign(path)) {
    const OptionRecord* record = options_.find_record(foreign->key);
    if (record != nullptr) return read_renamed(*record, foreign, entry, path, source);
    return add_problem(entry.line, entry.column,
                       fmt::format("{}: a name of {}; {}", source.start(entry.line, entry.column, path), foreign->tool,
                                   foreign->hint));
  }
  if (std::ranges::any_of(ignored_sections_, [&](const auto& section) { return path.starts_with(section); })) return;
  add_problem(entry.line, entry.column,
              fmt::format("{}: unknown key{}", source.start(entry.line, entry.column, path), suggestion(path)));
}

void OptionReader::read_renamed(const OptionRecord& record, const ForeignKey* foreign, const YamlEntry& entry,
                                const std::string& path, const Source& source) {
  const std::string where = source.start(entry.line, entry.column, path);
  if (auto place = places_.find(record.key); place != places_.end()) {
    const std::string& first = place->second.spelling;
    return add_problem(entry.line, entry.column,
                       fmt::format("{}: another name of {}, which line {} gives{}; keep one of them", where, record.key,
                                   place->second.line, first == record.key ? "" : " as " + first));
  }
  places_[record.key] = {entry.line, path};
  notices_.push_back(fmt::format("{}: read as {}{}", where, record.key,
                                 foreign == nullptr ? "" : fmt::format(" ({}'s name)", foreign->tool)));
  if (foreign == nullptr || foreign->values.empty()) return read_option(record, entry, path, source);
  if (auto ours = translated(record, *foreign, entry, path, source)) read_option(record, *ours, path, source);
}

/// The entry with the value that says the same here; nothing, and a problem, when there is none.
std::optional<YamlEntry> OptionReader::translated(const OptionRecord& record, const ForeignKey& foreign,
                                                  const YamlEntry& entry, const std::string& path,
                                                  const Source& source) {
  if (entry.value->kind != Kind::kScalar) return entry;
  const std::string& word = entry.value->scalar;
  std::vector<std::string> known;
  for (const auto& [theirs, ours] : foreign.values) {
    known.push_back(theirs);
    if (theirs != word) continue;
    auto node = std::make_shared<YamlNode>(*entry.value);
    node->scalar = ours;
    return YamlEntry{entry.key, entry.line, entry.column, node};
  }
  if (std::ranges::find(record.choices, word) != record.choices.end()) return entry;
  given_.insert(record.key);
  for (const auto& choice : record.choices)
    if (std::ranges::find(known, choice) == known.end()) known.push_back(choice);
  const int line = source.file.empty() ? kLast : entry.value->line;
  add_problem(line, entry.value->column,
              fmt::format("{}: got {}, expected one of {}", source.start(entry.value->line, entry.value->column, path),
                          quoted_if_odd(word), join(known, ", ")));
  return std::nullopt;
}

void OptionReader::refuse_section(const YamlEntry& entry, const std::string& path, const Source& source) {
  bool empty = entry.value->kind == Kind::kEmpty;
  int line = empty ? entry.line : entry.value->line, column = empty ? entry.column : entry.value->column;
  if (source.file.empty()) line = kLast;
  std::string expected = join(keys_of_section(path + "."), ", ");
  add_problem(line, column,
              fmt::format("{}: {}, expected a section with keys among {}", source.start(line, column, path),
                          empty ? "empty value" : "got " + node_text(*entry.value), expected));
}

void OptionReader::read_option(const OptionRecord& record, const YamlEntry& entry, const std::string& path,
                               const Source& source) {
  given_.insert(record.key);
  const YamlNode& node = *entry.value;
  bool nothing = node.kind == Kind::kEmpty;
  int line = nothing ? entry.line : node.line, column = nothing ? entry.column : node.column;
  if (source.file.empty()) line = kLast;
  if (nothing || (node.kind == Kind::kScalar && node.scalar.empty())) {
    return add_problem(
        line, column,
        fmt::format("{}: empty value, expected {}", source.start(line, column, path), expected_text(record)));
  }
  variables_.clear();
  auto value = value_of(record, node, source);
  OptionOrigin origin = source.at(line, column);
  origin.detail = detail_of(record, path, variables_);
  if (!source.file.empty()) origin.items = places_of_items(node);
  Status status = value ? options_.set(record.key, std::move(value).value(), std::move(origin)) : value.status();
  if (!status) add_problem(line, column, status.message());
}

Result<OptionValue> OptionReader::value_of(const OptionRecord& record, const YamlNode& node, const Source& source) {
  const std::string where = source.start(node.line, node.column, record.key);
  bool is_auto = node.kind == Kind::kScalar && node.scalar == "auto";
  if (is_auto && record.allow_auto) return OptionValue();
  if (record.type == OptionType::kFiles) return files_of(record, node, source);
  Kind due = record.type == OptionType::kStringMap ? Kind::kMap : is_list(record.type) ? Kind::kList : Kind::kScalar;
  if (node.kind != due) {
    std::string hint = due == Kind::kList && node.kind == Kind::kScalar ? fmt::format("; write [{}]", node.scalar) : "";
    return Status(StatusCode::kInvalidArgument, expected_but_got(where, node_text(node), record).message() + hint);
  }
  if (due == Kind::kMap) return map_of(record, node, source);
  if (due == Kind::kList) return list_of(record, node, source);
  return scalar_of(record, node, where);
}

Result<OptionValue> OptionReader::scalar_of(const OptionRecord& record, const YamlNode& node,
                                            const std::string& where) {
  auto text = expand_variables(node.scalar, lookup_, &variables_);
  if (!text) return invalid_argument("{}: {}", where, text.status().message());
  if (text->empty()) return invalid_argument("{}: {} is an empty text", where, node.scalar);
  if (auto value = scalar_from_text(record.type, *text)) return *value;
  std::string message = is_list(record.type) ? fmt::format("{}: got {}, expected {}", where, quoted_if_odd(*text),
                                                           element_name(record.type))
                                             : expected_but_got(where, quoted_if_odd(*text), record).message();
  return Status(StatusCode::kInvalidArgument, message + scalar_hint(record.type, *text));
}

Result<OptionValue> OptionReader::list_of(const OptionRecord& record, const YamlNode& node, const Source& source) {
  std::vector<int64_t> integers;
  std::vector<double> numbers;
  std::vector<std::string> texts;
  for (size_t i = 0; i < node.items.size(); ++i) {
    const YamlNode& item = *node.items[i];
    const std::string where = source.start(item.line, item.column, fmt::format("{}[{}]", record.key, i));
    if (item.kind != Kind::kScalar || item.scalar.empty()) {
      return invalid_argument("{}: got {}, expected {}", where, node_text(item), element_name(record.type));
    }
    ALTIPLANO_ASSIGN(OptionValue value, scalar_of(record, item, where));
    if (auto* integer = std::get_if<int64_t>(&value)) integers.push_back(*integer);
    if (auto* number = std::get_if<double>(&value)) numbers.push_back(*number);
    if (auto* text = std::get_if<std::string>(&value)) texts.push_back(*text);
  }
  if (record.type == OptionType::kIntList) return OptionValue(std::move(integers));
  if (record.type == OptionType::kFloatList) return OptionValue(std::move(numbers));
  return OptionValue(std::move(texts));
}

Result<OptionValue> OptionReader::map_of(const OptionRecord& record, const YamlNode& node, const Source& source) {
  StringMap map;
  std::map<std::string, int> lines;
  for (const auto& entry : node.entries) {
    const std::string where = source.start(entry.line, entry.column, fmt::format("{}[{}]", record.key, entry.key));
    if (auto [first, fresh] = lines.emplace(entry.key, entry.line); !fresh) {
      return invalid_argument("{}: given twice, first in line {}", where, first->second);
    }
    if (entry.value->kind != Kind::kScalar) {
      bool list = entry.value->kind == Kind::kList || entry.value->kind == Kind::kMap;
      return invalid_argument("{}: got {}, expected text{}", where, node_text(*entry.value),
                              list ? " (put it in quotes)" : "");
    }
    OptionRecord text_record{.key = record.key, .type = OptionType::kString};
    ALTIPLANO_ASSIGN(OptionValue value, scalar_of(text_record, *entry.value, where));
    map.emplace_back(entry.key, std::get<std::string>(std::move(value)));
  }
  return OptionValue(std::move(map));
}

Result<OptionValue> OptionReader::files_of(const OptionRecord& record, const YamlNode& node, const Source& source) {
  const std::string where = source.start(node.line, node.column, record.key);
  std::vector<WeightedFile> files;
  if (node.kind == Kind::kScalar) {
    ALTIPLANO_ASSIGN(OptionValue path, scalar_of(record, node, where));
    files.push_back({std::get<std::string>(std::move(path)), 1});
    return OptionValue(std::move(files));
  }
  if (node.kind != Kind::kList || node.items.empty())
    return expected_but_got(where, node.kind == Kind::kList ? "an empty list" : node_text(node), record);
  for (size_t i = 0; i < node.items.size(); ++i) {
    ALTIPLANO_ASSIGN(WeightedFile file, file_of(record, *node.items[i], i, source));
    bool is_known = std::ranges::any_of(files, [&](const WeightedFile& other) { return other.path == file.path; });
    if (is_known) {
      return invalid_argument(
          "{}: {} is in the list already; give it once, with the sum of the weights",
          source.start(node.items[i]->line, node.items[i]->column, fmt::format("{}[{}]", record.key, i)), file.path);
    }
    files.push_back(std::move(file));
  }
  return OptionValue(std::move(files));
}

/// One item of a mix: a path, or {path: ..., weight: ...}.
Result<WeightedFile> OptionReader::file_of(const OptionRecord& record, const YamlNode& node, size_t index,
                                           const Source& source) {
  const std::string key = fmt::format("{}[{}]", record.key, index);
  const OptionRecord path_record{.key = key + ".path", .type = OptionType::kString};
  const OptionRecord weight_record{.key = key + ".weight", .type = OptionType::kFloat};
  WeightedFile file;
  auto read = [&](const OptionRecord& of, const YamlNode& from) -> Result<OptionValue> {
    const std::string where = source.start(from.line, from.column, of.key);
    if (from.kind != Kind::kScalar || from.scalar.empty()) return expected_but_got(where, node_text(from), of);
    return scalar_of(of, from, where);
  };
  if (node.kind == Kind::kScalar) {
    ALTIPLANO_ASSIGN(OptionValue path, read(path_record, node));
    return WeightedFile{std::get<std::string>(std::move(path)), 1};
  }
  const std::string where = source.start(node.line, node.column, key);
  if (node.kind != Kind::kMap)
    return invalid_argument("{}: got {}, expected a path or {{path: FILE, weight: NUMBER}}", where, node_text(node));
  std::set<std::string> given;
  for (const auto& entry : node.entries) {
    if (!given.insert(entry.key).second)
      return invalid_argument("{}: given twice", source.start(entry.line, entry.column, key + "." + entry.key));
    if (entry.key == "path") {
      ALTIPLANO_ASSIGN(OptionValue path, read(path_record, *entry.value));
      file.path = std::get<std::string>(std::move(path));
    } else if (entry.key == "weight") {
      ALTIPLANO_ASSIGN(OptionValue weight, read(weight_record, *entry.value));
      file.weight = std::get<double>(weight);
      if (!std::isfinite(file.weight) || file.weight <= 0)
        return invalid_argument("{}: got {}, expected a number above 0; leave the file out to give it no share",
                                source.start(entry.value->line, entry.value->column, weight_record.key), file.weight);
    } else {
      return invalid_argument("{}: unknown key; known keys: path, weight",
                              source.start(entry.line, entry.column, key + "." + entry.key));
    }
  }
  if (file.path.empty()) return invalid_argument("{}: path is missing", where);
  return file;
}

bool OptionReader::is_first(const std::string& path, const std::string& spelling, const YamlEntry& entry,
                            const Source& source) {
  auto [first, fresh] = places_.emplace(path, Place{entry.line, spelling});
  if (fresh) return true;
  std::string as = first->second.spelling == path ? "" : " as " + first->second.spelling;
  add_problem(entry.line, entry.column,
              fmt::format("{}: given twice, first in line {}{}", source.start(entry.line, entry.column, path),
                          first->second.line, as));
  return false;
}

const OptionRecord* OptionReader::find_alias(const std::string& path) const {
  for (const auto& record : options_.records())
    if (std::ranges::find(record.aliases, path) != record.aliases.end()) return &record;
  return nullptr;
}

/// By its own name, or by that name in the section of our key.
const ForeignKey* OptionReader::find_foreign(const std::string& path) const {
  for (const ForeignKey& foreign : foreign_) {
    if (!foreign.key.empty() && options_.find_record(foreign.key) == nullptr) continue;
    if (path == foreign.name || (!foreign.key.empty() && path == prefix_of(foreign.key) + foreign.name))
      return &foreign;
  }
  return nullptr;
}

bool OptionReader::is_foreign_section(const std::string& path) const {
  return std::ranges::any_of(foreign_, [&](const ForeignKey& key) { return key.name.starts_with(path + "."); });
}

const OptionRecord* OptionReader::find_any(const std::string& path) const {
  if (const OptionRecord* record = options_.find_record(path)) return record;
  if (const OptionRecord* record = find_alias(path)) return record;
  const ForeignKey* foreign = find_foreign(path);
  return foreign == nullptr ? nullptr : options_.find_record(foreign->key);
}

const Shorthand* OptionReader::find_shorthand(const std::string& path) const {
  auto at = std::ranges::find(shorthands_, path, &Shorthand::key);
  return at == shorthands_.end() ? nullptr : &*at;
}

std::vector<std::string> OptionReader::keys_of_section(const std::string& prefix) const {
  std::vector<std::string> keys;
  for (const auto& record : options_.records()) {
    if (!record.key.starts_with(prefix)) continue;
    std::string rest = record.key.substr(prefix.size());
    std::string key = rest.substr(0, rest.find('.'));
    if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  }
  return keys;
}

/// Nearest sibling; else the same word or the nearest key elsewhere; else what the section knows.
std::string OptionReader::suggestion(const std::string& path) const {
  const std::string prefix = prefix_of(path), word = last_part(path);
  const auto siblings = keys_of_section(prefix);
  if (auto near = did_you_mean(word, siblings)) return fmt::format("; did you mean {}?", *near);
  std::vector<std::string> all;
  for (const auto& record : options_.records()) {
    if (last_part(record.key) == word) return fmt::format("; did you mean {}?", record.key);
    all.push_back(record.key);
  }
  if (prefix.empty()) return fmt::format("; known sections: {}", join(siblings, ", "));
  if (!siblings.empty())
    return fmt::format("; known keys of {}: {}", prefix.substr(0, prefix.size() - 1), join(siblings, ", "));
  auto near = did_you_mean(path, all);
  return near ? fmt::format("; did you mean {}?", *near) : "";
}

}  // namespace altiplano
