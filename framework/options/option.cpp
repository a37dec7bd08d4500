#include "framework/options/option.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <type_traits>

#include "framework/base/text.hpp"

namespace altiplano {

const char* to_string(OptionType type) {
  switch (type) {
    case OptionType::kBool:
      return "true or false";
    case OptionType::kInt:
      return "integer";
    case OptionType::kFloat:
      return "number";
    case OptionType::kString:
      return "text";
    case OptionType::kIntList:
      return "list of integers";
    case OptionType::kFloatList:
      return "list of numbers";
    case OptionType::kStringList:
      return "list of texts";
    case OptionType::kStringMap:
      return "map of texts";
    case OptionType::kFiles:
      return "a file, or a list of files and {path, weight}";
  }
  return "unknown";
}

namespace {

template <typename T>
std::string list_text(const std::vector<T>& values) {
  std::vector<std::string> parts;
  for (const auto& value : values) parts.push_back(fmt::format("{}", value));
  return "[" + join(parts, ", ") + "]";
}

std::string map_text(const StringMap& map) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : map) parts.push_back(key + ": " + value);
  return "{" + join(parts, ", ") + "}";
}

/// One file of weight 1 is its path alone; else "[{path: a.h5, weight: 2}, {path: b.h5, weight: 1}]".
std::string files_text(const std::vector<WeightedFile>& files) {
  if (files.size() == 1 && files[0].weight == 1) return files[0].path;
  std::vector<std::string> parts;
  for (const auto& file : files) parts.push_back(fmt::format("{{path: {}, weight: {}}}", file.path, file.weight));
  return "[" + join(parts, ", ") + "]";
}

/// "fp32, bf16 or fp64"
std::string alternatives(const std::vector<std::string>& choices) {
  if (choices.size() < 2) return join(choices, "");
  return join({choices.begin(), choices.end() - 1}, ", ") + " or " + choices.back();
}

std::string bounds_text(const OptionRecord& record) {
  bool low = std::isfinite(record.minimum), high = std::isfinite(record.maximum);
  if (low && high) {
    return fmt::format(" in [{}, {}{}", record.minimum, record.maximum, record.below_maximum ? ")" : "]");
  }
  if (low) return fmt::format(" >= {}", record.minimum);
  if (high) return fmt::format(" {} {}", record.below_maximum ? "<" : "<=", record.maximum);
  return {};
}

std::string list_type_text(const OptionRecord& record) {
  if (record.list_length == 0) return to_string(record.type);
  const char* element = record.type == OptionType::kIntList     ? "integers"
                        : record.type == OptionType::kFloatList ? "numbers"
                                                                : "texts";
  return fmt::format("list of {} {}", record.list_length, element);
}

/// Integers become numbers where numbers are due.
OptionValue widened(OptionType type, OptionValue value) {
  if (type == OptionType::kFloat && std::holds_alternative<int64_t>(value)) {
    return static_cast<double>(std::get<int64_t>(value));
  }
  if (type == OptionType::kFloatList && std::holds_alternative<std::vector<int64_t>>(value)) {
    const auto& integers = std::get<std::vector<int64_t>>(value);
    return std::vector<double>(integers.begin(), integers.end());
  }
  return value;
}

/// OptionType in the order of the variant's alternatives behind monostate.
bool has_type(const OptionValue& value, OptionType type) {
  return value.index() == static_cast<size_t>(type) + 1;
}

bool in_bounds(double number, const OptionRecord& record) {
  if (std::isnan(number)) return false;
  bool below = record.below_maximum ? number < record.maximum : number <= record.maximum;
  return number >= record.minimum && below;
}

template <typename T>
bool list_fits(const std::vector<T>& values, const OptionRecord& record) {
  if (record.list_length != 0 && static_cast<int64_t>(values.size()) != record.list_length) return false;
  return std::all_of(values.begin(), values.end(), [&](const T& value) {
    if constexpr (std::is_arithmetic_v<T>) return in_bounds(static_cast<double>(value), record);
    return true;
  });
}

struct Fits {
  const OptionRecord& record;
  bool operator()(std::monostate) const { return record.allow_auto; }
  bool operator()(bool) const { return true; }
  bool operator()(int64_t value) const { return in_bounds(static_cast<double>(value), record); }
  bool operator()(double value) const { return in_bounds(value, record); }
  bool operator()(const std::string& value) const {
    return record.choices.empty() || std::ranges::find(record.choices, value) != record.choices.end();
  }
  bool operator()(const StringMap&) const { return true; }
  bool operator()(const std::vector<WeightedFile>& files) const {
    return !files.empty() && std::ranges::all_of(files, [](const WeightedFile& file) {
      return !file.path.empty() && std::isfinite(file.weight) && file.weight > 0;
    });
  }
  template <typename T>
  bool operator()(const std::vector<T>& values) const {
    return list_fits(values, record);
  }
};

}  // namespace

std::string to_string(const OptionValue& value) {
  struct Print {
    std::string operator()(std::monostate) const { return "unset"; }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(double v) const { return fmt::format("{}", v); }
    std::string operator()(const std::string& v) const { return v; }
    std::string operator()(const std::vector<int64_t>& v) const { return list_text(v); }
    std::string operator()(const std::vector<double>& v) const { return list_text(v); }
    std::string operator()(const std::vector<std::string>& v) const { return list_text(v); }
    std::string operator()(const StringMap& v) const { return map_text(v); }
    std::string operator()(const std::vector<WeightedFile>& v) const { return files_text(v); }
  };
  return std::visit(Print{}, value);
}

std::string expected_text(const OptionRecord& record) {
  std::string text =
      !record.choices.empty() ? alternatives(record.choices) : list_type_text(record) + bounds_text(record);
  return record.allow_auto ? text + " or auto" : text;
}

Status expected_but_got(const std::string& where, const std::string& got, const OptionRecord& record) {
  std::string hint;
  if (!record.choices.empty()) {
    if (auto near = did_you_mean(got, record.choices)) hint = fmt::format("; did you mean {}?", *near);
  }
  return invalid_argument("{}: got {}, expected {}{}", where, got, expected_text(record), hint);
}

std::string start_of_message(const OptionOrigin& origin, const std::string& key) {
  if (!origin.file.empty()) return fmt::format("{}: {}", origin.to_string(), key);
  if (origin.source == "--set") return "--set " + key;
  return origin.source.starts_with("--") ? origin.source : key;
}

std::string OptionOrigin::to_string() const {
  if (file.empty()) return source;
  return line > 0 ? fmt::format("{}:{}:{}", file, line, column) : file;
}

std::string OptionOrigin::describe() const {
  return detail.empty() ? to_string() : fmt::format("{} ({})", to_string(), detail);
}

Options::Options(std::vector<OptionRecord> records) : records_(std::move(records)) {
  for (auto& record : records_) {
    record.default_value = widened(record.type, std::move(record.default_value));
    bool fits =
        std::holds_alternative<std::monostate>(record.default_value) || has_type(record.default_value, record.type);
    ALTIPLANO_ASSERT(fits, "the default of option {} is no {}", record.key, altiplano::to_string(record.type));
  }
}

const OptionRecord* Options::find_record(const std::string& key) const {
  auto at = std::ranges::find(records_, key, &OptionRecord::key);
  return at == records_.end() ? nullptr : &*at;
}

Status Options::set(const std::string& key, OptionValue value, OptionOrigin origin) {
  const OptionRecord* record = find_record(key);
  std::string start = start_of_message(origin, prefix_ + key);
  if (record == nullptr) return invalid_argument("{}: unknown key", start);
  value = widened(record->type, std::move(value));
  bool is_auto = std::holds_alternative<std::monostate>(value);
  if ((!is_auto && !has_type(value, record->type)) || !std::visit(Fits{*record}, value)) {
    return expected_but_got(start, is_auto ? "auto" : altiplano::to_string(value), *record);
  }
  values_[key] = {std::move(value), std::move(origin)};
  return Status::ok();
}

void Options::derive(const std::string& key, OptionValue value, const std::string& source) {
  const OptionRecord* record = find_record(key);
  ALTIPLANO_ASSERT(record != nullptr, "option {} has no record", key);
  value = widened(record->type, std::move(value));
  ALTIPLANO_ASSERT(has_type(value, record->type), "derived value of option {} has the wrong type", key);
  derived_[key] = {std::move(value), source};
}

bool Options::is_set(const std::string& key) const {
  return values_.contains(key);
}

OptionOrigin Options::origin(const std::string& key) const {
  if (auto at = values_.find(key); at != values_.end()) return at->second.second;
  OptionOrigin origin;
  if (auto at = derived_.find(key); at != derived_.end()) origin.source = at->second.second;
  return origin;
}

std::string Options::where(const std::string& key) const {
  return start_of_message(origin(key), prefix_ + key);
}

std::string Options::where(const std::string& key, size_t index, const std::string& entry) const {
  OptionOrigin place = origin(key);
  if (index < place.items.size()) std::tie(place.line, place.column) = place.items[index];
  return start_of_message(place, fmt::format("{}{}[{}]", prefix_, key, entry.empty() ? fmt::to_string(index) : entry));
}

const OptionValue& Options::default_value(const std::string& key) const {
  const OptionRecord* record = find_record(key);
  ALTIPLANO_ASSERT(record != nullptr, "option {} has no record", key);
  auto derived = derived_.find(key);
  return derived != derived_.end() ? derived->second.first : record->default_value;
}

const OptionValue& Options::value(const std::string& key) const {
  auto given = values_.find(key);
  if (given == values_.end()) return default_value(key);
  const OptionValue& chosen = given->second.first;
  if (!std::holds_alternative<std::monostate>(chosen)) return chosen;
  auto derived = derived_.find(key);  // auto: what follows from other keys, else unset; never the record's default
  return derived != derived_.end() ? derived->second.first : chosen;
}

template <typename T>
const T& Options::typed(const std::string& key) const {
  const OptionValue& found = value(key);
  ALTIPLANO_ASSERT(std::holds_alternative<T>(found), "option {} is read as another type or unset ({})", key,
                   altiplano::to_string(found));
  return std::get<T>(found);
}

bool Options::has(const std::string& key) const {
  return !std::holds_alternative<std::monostate>(value(key));
}
bool Options::get_bool(const std::string& key) const {
  return typed<bool>(key);
}
int64_t Options::get_int(const std::string& key) const {
  return typed<int64_t>(key);
}
double Options::get_float(const std::string& key) const {
  return typed<double>(key);
}
const std::string& Options::get_string(const std::string& key) const {
  return typed<std::string>(key);
}
const std::vector<int64_t>& Options::get_ints(const std::string& key) const {
  return typed<std::vector<int64_t>>(key);
}
const std::vector<double>& Options::get_floats(const std::string& key) const {
  return typed<std::vector<double>>(key);
}
const std::vector<std::string>& Options::get_strings(const std::string& key) const {
  return typed<std::vector<std::string>>(key);
}
const StringMap& Options::get_map(const std::string& key) const {
  return typed<StringMap>(key);
}
const std::vector<WeightedFile>& Options::get_files(const std::string& key) const {
  return typed<std::vector<WeightedFile>>(key);
}

std::string Options::to_string() const {
  std::vector<std::string> lines;
  for (const auto& record : records_) {
    lines.push_back(fmt::format("{}: {}\n", record.key, altiplano::to_string(value(record.key))));
  }
  std::ranges::sort(lines);
  return join(lines, "");
}

Options Options::section(const std::string& prefix) const {
  const std::string start = prefix + ".";
  Options part;
  part.prefix_ = prefix_ + start;
  for (const auto& record : records_) {
    if (!record.key.starts_with(start)) continue;
    std::string key = record.key.substr(start.size());
    if (auto at = values_.find(record.key); at != values_.end()) part.values_[key] = at->second;
    if (auto at = derived_.find(record.key); at != derived_.end()) part.derived_[key] = at->second;
    part.records_.push_back(record);
    part.records_.back().key = key;
  }
  return part;
}

}  // namespace altiplano
