#include "tests/support/refusal_table.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <set>
#include <stdexcept>

namespace altiplano::test {
namespace {

[[noreturn]] void refuse(const std::string& path, const YAML::Node& node, const std::string& what) {
  throw std::runtime_error(fmt::format("{}:{}: {}", path, node.Mark().line + 1, what));
}

void check_keys(const std::string& path, const YAML::Node& node, const std::set<std::string>& known) {
  std::set<std::string> seen;
  for (const auto& entry : node) {
    auto key = entry.first.as<std::string>();
    if (!known.contains(key)) refuse(path, entry.first, "unknown key " + key);
    if (!seen.insert(key).second) refuse(path, entry.first, "key " + key + " twice");
  }
}

std::map<std::string, std::string> texts_of(const YAML::Node& node) {
  return node ? node.as<std::map<std::string, std::string>>() : std::map<std::string, std::string>();
}

std::vector<std::string> commands_of(const YAML::Node& node) {
  return node ? node.as<std::vector<std::string>>() : std::vector<std::string>();
}

RefusalRow read_row(const std::string& path, const YAML::Node& node) {
  check_keys(path, node, {"name", "files", "setup", "environment", "args", "exit", "error", "seconds"});
  for (const char* key : {"name", "args", "exit", "error"})
    if (!node[key]) refuse(path, node, fmt::format("a row without {}", key));
  RefusalRow row;
  row.name = node["name"].as<std::string>();
  row.args = node["args"].as<std::string>();
  row.exit = node["exit"].as<int>();
  row.error = node["error"].as<std::string>();
  row.files = texts_of(node["files"]);
  row.environment = texts_of(node["environment"]);
  row.setup = commands_of(node["setup"]);
  if (node["seconds"]) row.seconds = node["seconds"].as<double>();
  if (row.exit == 0) refuse(path, node["exit"], "exit 0 is no refusal");
  if (!row.error.ends_with('\n')) row.error += '\n';
  return row;
}

bool line_matches(const std::string& line, const std::string& pattern) {
  const std::string wild = "<any>";
  size_t star = pattern.find(wild);
  if (star == std::string::npos) return line == pattern;
  if (line.compare(0, star, pattern, 0, star) != 0) return false;
  const std::string rest = pattern.substr(star + wild.size());
  for (size_t at = star; at <= line.size(); ++at)
    if (line_matches(line.substr(at), rest)) return true;
  return false;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (char c : text) {
    if (c == '\n')
      lines.emplace_back();
    else
      lines.back() += c;
  }
  return lines;
}

}  // namespace

RefusalTable read_refusal_table(const std::string& path) {
  const YAML::Node root = YAML::LoadFile(path);
  check_keys(path, root, {"files", "setup", "rows"});
  RefusalTable table;
  table.name = std::filesystem::path(path).stem().string();
  table.files = texts_of(root["files"]);
  table.setup = commands_of(root["setup"]);
  std::set<std::string> names;
  for (const auto& node : root["rows"]) {
    table.rows.push_back(read_row(path, node));
    if (!names.insert(table.rows.back().name).second) refuse(path, node, "two rows of this name");
  }
  return table;
}

bool matches_pattern(const std::string& text, const std::string& pattern) {
  const auto lines = lines_of(text), patterns = lines_of(pattern);
  if (lines.size() != patterns.size()) return false;
  for (size_t i = 0; i < lines.size(); ++i)
    if (!line_matches(lines[i], patterns[i])) return false;
  return true;
}

}  // namespace altiplano::test
