#pragma once
// Reading YAML strictly, for the readers of this folder: errors with file:line:column and dotted key, the first one
// wins.
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/base/quantity.hpp"
#include "framework/base/text.hpp"
#include "framework/cluster/curves.hpp"

namespace altiplano {

/// A mapping of the file. Every read* remembers the key as known; finish() refuses the others. Errors are kept: the
/// first one wins.
class YamlSection {
 public:
  YamlSection(const YAML::Node& node, std::string prefix, const std::string& file,
              std::map<std::string, YAML::Mark>& marks, Status& status)
      : node_(node), prefix_(std::move(prefix)), file_(file), marks_(marks), status_(status) {
    if (!node_.IsMap()) {
      fail(node_.Mark(), prefix_.empty() ? "the file" : prefix_, "must be a mapping of keys to values");
      return;
    }
    std::set<std::string> seen;
    for (const auto& entry : node_) {
      std::string key = entry.first.Scalar();
      marks_[dotted(key)] = entry.second.Mark();
      if (!seen.insert(key).second) fail(entry.first.Mark(), dotted(key), "stands twice");
    }
  }

  YAML::Node child(const std::string& key) {
    known_.push_back(key);
    return node_.IsMap() ? node_[key] : YAML::Node(YAML::NodeType::Undefined);
  }

  /// A missing required key is an error; the result is then empty.
  std::optional<std::string> scalar(const std::string& key, bool required) {
    YAML::Node node = child(key);
    if (!node.IsDefined()) {
      if (required) fail(node_.Mark(), dotted(key), "missing");
      return std::nullopt;
    }
    if (node.IsScalar()) return node.Scalar();
    fail(node.Mark(), dotted(key), "must be a single value");
    return std::nullopt;
  }

  void read_text(const std::string& key, std::string& out) {
    if (auto text = scalar(key, true)) out = *text;
  }

  void read_int(const std::string& key, int64_t& out) {
    auto text = scalar(key, true);
    if (!text) return;
    auto value = parse_int(*text);
    if (!value || *value > 1'000'000)
      return fail(node_[key].Mark(), dotted(key), fmt::format("\"{}\" is no whole number up to 1000000", *text));
    out = *value;
  }

  void read_number(const std::string& key, double& out) {
    auto text = scalar(key, false);
    if (!text) return;
    auto value = parse_double(*text);
    if (!value) return fail(node_[key].Mark(), dotted(key), fmt::format("\"{}\" is no number", *text));
    out = *value;
  }

  void read_bool(const std::string& key, bool& out) {
    auto text = scalar(key, false);
    if (!text) return;
    if (*text != "true" && *text != "false")
      return fail(node_[key].Mark(), dotted(key), fmt::format("\"{}\" is neither true nor false", *text));
    out = *text == "true";
  }

  void read_quantity(const std::string& key, QuantityKind kind, double& out, bool required = true) {
    auto text = scalar(key, required);
    if (!text) return;
    auto value = parse_quantity(kind, *text);
    if (!value)
      return fail(node_[key].Mark(), dotted(key), fmt::format("\"{}\" is not {}", *text, quantity_example(kind)));
    out = *value;
  }

  void read_type(const std::string& key, DType& out, bool only_floating) {
    auto text = scalar(key, true);
    if (!text) return;
    const auto type = dtype_from_string(*text);
    if (!type || (only_floating && !is_floating(*type)))
      return fail(
          node_[key].Mark(), dotted(key),
          fmt::format("\"{}\" is no type here; valid: f64, f32, bf16{}", *text, only_floating ? "" : ", i32, i64"));
    out = *type;
  }

  /// A list of pairs [size, value]; `sizes` nothing: bare numbers, as are values without a kind.
  void read_curve(const std::string& key, std::optional<QuantityKind> sizes, std::optional<QuantityKind> values,
                  Curve& out) {
    const YAML::Node list = child(key);
    if (!list.IsDefined()) return;
    if (!list.IsSequence()) return fail(list.Mark(), dotted(key), "must be a list of pairs [size, value]");
    for (const YAML::Node& pair : list) {
      if (!pair.IsSequence() || pair.size() != 2 || !pair[0].IsScalar() || !pair[1].IsScalar())
        return fail(pair.Mark(), dotted(key), "must be pairs [size, value]");
      CurvePoint point;
      if (!read_side(pair[0], key, sizes, point.size) || !read_side(pair[1], key, values, point.value)) return;
      out.push_back(point);
    }
  }

  void finish() {
    if (!node_.IsMap()) return;
    for (const auto& entry : node_) {
      std::string key = entry.first.Scalar();
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      auto near = did_you_mean(key, known_);
      fail(entry.first.Mark(), dotted(key),
           "unknown key; " + (near ? "did you mean " + *near + "?" : "known: " + join(known_, ", ")));
    }
  }

  std::string dotted(const std::string& key) const { return prefix_.empty() ? key : prefix_ + "." + key; }

  void fail(const YAML::Mark& mark, const std::string& key, const std::string& message) {
    if (status_.is_ok())
      status_ = invalid_argument("{}:{}:{}: {}: {}", file_, mark.line + 1, mark.column + 1, key, message);
  }

  /// Every item of the list `key`, which may be missing.
  template <typename Read>
  void for_each_item(const std::string& key, Read read) {
    const YAML::Node list = child(key);
    if (!list.IsDefined()) return;
    if (!list.IsSequence()) return fail(list.Mark(), dotted(key), "must be a list");
    for (size_t i = 0; i < list.size(); ++i) {
      YamlSection of_item = item(list[i], fmt::format("{}[{}]", dotted(key), i));
      read(of_item);
      of_item.finish();
    }
  }

  YamlSection sub(const std::string& key) { return {child(key), dotted(key), file_, marks_, status_}; }
  YamlSection item(const YAML::Node& node, const std::string& key) { return {node, key, file_, marks_, status_}; }

 private:
  bool read_side(const YAML::Node& node, const std::string& key, std::optional<QuantityKind> kind, double& out) {
    const auto value = kind ? parse_quantity(*kind, node.Scalar()) : parse_double(node.Scalar());
    if (value) {
      out = *value;
      return true;
    }
    fail(node.Mark(), dotted(key),
         fmt::format("\"{}\" is not {}", node.Scalar(), kind ? quantity_example(*kind) : "a number"));
    return false;
  }

  const YAML::Node node_;  // const: reading a missing key must not create it
  std::string prefix_;
  const std::string& file_;
  std::map<std::string, YAML::Mark>& marks_;
  Status& status_;
  std::vector<std::string> known_;
};

}  // namespace altiplano
