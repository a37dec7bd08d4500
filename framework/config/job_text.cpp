// Printed forms: effective values as YAML, the reference page as Markdown.
#include <algorithm>

#include "framework/base/text.hpp"
#include "framework/config/foreign_keys.hpp"
#include "framework/config/job_config.hpp"
#include "framework/options/yaml_text.hpp"

namespace altiplano {
namespace {

/// In a job file a lone $ begins the name of a variable.
std::string job_text(const std::string& text) {
  std::string out;
  for (char c : text) out += c == '$' ? std::string("$$") : std::string(1, c);
  return yaml_text(out);
}

struct YamlValue {
  std::string operator()(const std::string& value) const { return job_text(value); }
  std::string operator()(const std::vector<std::string>& values) const {
    std::vector<std::string> parts;
    for (const auto& value : values) parts.push_back(job_text(value));
    return "[" + join(parts, ", ") + "]";
  }
  std::string operator()(const StringMap& map) const {
    std::vector<std::string> parts;
    for (const auto& [key, value] : map) parts.push_back(job_text(key) + ": " + job_text(value));
    return "{" + join(parts, ", ") + "}";
  }
  std::string operator()(const std::vector<WeightedFile>& files) const {
    if (files.size() == 1 && files[0].weight == 1) return job_text(files[0].path);
    std::vector<std::string> parts;
    for (const auto& [path, weight] : files)
      parts.push_back(fmt::format("{{path: {}, weight: {}}}", job_text(path), weight));
    return "[" + join(parts, ", ") + "]";
  }
  template <typename T>
  std::string operator()(const T& value) const {
    return to_string(OptionValue(value));
  }
};

/// '|' would end a table cell.
std::string cell(const std::string& text) {
  std::string out;
  for (char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string default_cell(const OptionRecord& record) {
  if (record.required) return "required";
  if (record.allow_auto && std::holds_alternative<std::monostate>(record.default_value)) return "`auto`";
  if (std::holds_alternative<std::monostate>(record.default_value)) return "none";
  return "`" + std::visit(YamlValue{}, record.default_value) + "`";
}

std::string help_cell(const OptionRecord& record) {
  if (record.aliases.empty()) return record.help;
  return fmt::format("{} Also accepted: `{}`.", record.help, join(record.aliases, "`, `"));
}

const char* const kReferenceStart =
    "# Keys of a job file\n\nPrinted by `altiplano config reference` from the option records; do not edit.\n\n"
    "Keys may be nested (`train: {max_steps: 10}`) or dotted (`train.max_steps: 10`), and overridden with "
    "`--set train.max_steps=10`. `${NAME}`, `${NAME:-fallback}`, `$NAME` and a leading `~` are expanded; `$$` is a "
    "dollar. Booleans are `true` and `false`.\n";

std::string table_start(const std::string& title) {
  return fmt::format("\n## {}\n\n| key | value | default | meaning |\n|---|---|---|---|\n", title);
}

std::string table_row(const OptionRecord& record) {
  return fmt::format("| `{}` | {} | {} | {} |\n", record.key, cell(expected_text(record)), cell(default_cell(record)),
                     cell(help_cell(record)));
}

std::string model_tables(const std::map<std::string, std::vector<OptionRecord>>& models) {
  std::string out;
  for (const auto& [kind, records] : models) {
    out += table_start("model, kind " + kind);
    for (const auto& record : with_section("model", records)) out += table_row(record);
  }
  return out;
}

}  // namespace

std::string section_of(const std::string& key) {
  return key.substr(0, key.find('.'));
}

std::string yaml_value_text(const OptionValue& value) {
  return std::visit(YamlValue{}, value);
}

std::string config_difference(const Options& first, const Options& second) {
  std::string out;
  auto side = [](const Options& options, const std::string& key) {
    if (options.find_record(key) == nullptr) return std::pair<std::string, std::string>("(no such key)", "-");
    return std::pair(options.has(key) ? yaml_value_text(options.value(key)) : "unset", options.origin(key).describe());
  };
  auto compare = [&](const std::string& key) {
    const auto [a, a_origin] = side(first, key);
    const auto [b, b_origin] = side(second, key);
    if (a != b) out += fmt::format("{}: {} -> {}  # {} -> {}\n", key, a, b, a_origin, b_origin);
  };
  for (const auto& record : first.records()) compare(record.key);
  for (const auto& record : second.records())
    if (first.find_record(record.key) == nullptr) compare(record.key);
  return out;
}

std::string foreign_key_tables() {
  std::string out =
      "\n## Names of other systems\n\nRead with a notice, at the top of a file or in the section of their key. Both "
      "names of one key at once are refused, and so are the names below that have no counterpart, with what to write "
      "instead.\n\n| system | name | here |\n|---|---|---|\n";
  for (const ForeignKey& foreign : foreign_keys()) {
    std::vector<std::string> values;
    for (const auto& [theirs, ours] : foreign.values) values.push_back(fmt::format("`{}` is `{}`", theirs, ours));
    std::string here = foreign.key.empty() ? "refused: " + foreign.hint : fmt::format("`{}`", foreign.key);
    if (!values.empty()) here += "; " + join(values, ", ");
    out += fmt::format("| {} | `{}` | {} |\n", foreign.tool, foreign.name, cell(here));
  }
  return out;
}

std::string job_text(const Options& options, bool with_origins) {
  std::string out;
  for (const auto& record : options.records()) {
    const OptionValue& value = options.value(record.key);
    bool unset = std::holds_alternative<std::monostate>(value);
    std::string line = fmt::format("{}: {}", record.key, unset ? "auto" : std::visit(YamlValue{}, value));
    if (unset && !record.allow_auto) line = fmt::format("# {}: none", record.key);
    if (with_origins) line = fmt::format("{:<48}  # {}", line, options.origin(record.key).describe());
    out += line + "\n";
  }
  return out;
}

std::string reference_page(const std::vector<OptionRecord>& records,
                           const std::map<std::string, std::vector<OptionRecord>>& models) {
  std::string out = kReferenceStart, section;
  for (const auto& record : records) {
    bool is_new = section_of(record.key) != section;
    if (is_new && section == "model") out += model_tables(models);
    if (is_new) out += table_start(section = section_of(record.key));
    out += table_row(record);
  }
  return out;
}

}  // namespace altiplano
