#include "framework/options/yaml_document.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <map>
#include <optional>
#include <sstream>

namespace altiplano {
namespace {

using Kind = YamlNode::Kind;

std::string without_bom_and_carriage_returns(const std::string& text) {
  std::string out;
  size_t start = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  for (size_t i = start; i < text.size(); ++i) {
    if (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] == '\n')) continue;
    out += text[i];
  }
  return out;
}

constexpr size_t kMostEntries = 100'000;

/// Where the first byte stands that no text has: a NUL, as in data files.
std::optional<YamlProblem> no_text(const std::string& text) {
  size_t at = text.find('\0');
  if (at == std::string::npos) return std::nullopt;
  YamlProblem problem{1, 1, "a byte that is no text; is this a data file?"};
  for (size_t i = 0; i < at; ++i) {
    problem.column = text[i] == '\n' ? 1 : problem.column + 1;
    if (text[i] == '\n') ++problem.line;
  }
  return problem;
}

/// Finds tabs outside of quotes and comments; YAML gives them no meaning and its parsers no clear message.
class TabScanner {
 public:
  std::vector<YamlProblem> scan(const std::string& text) {
    for (char c : text) {
      if (c == '\n') {
        next_line();
      } else {
        step(c);
        ++column_;
      }
    }
    return std::move(problems_);
  }

 private:
  void next_line() {
    ++line_;
    column_ = 1;
    comment_ = reported_ = false;
    only_blanks_ = true;
    before_ = '\n';
    if (quote_ == 0) token_start_ = true;
  }

  void step(char c) {
    if (comment_) return;
    if (quote_ != 0) return step_in_quotes(c);
    if (c == '#' && (before_ == ' ' || before_ == '\n')) comment_ = true;
    if (c == '\t') report();
    if ((c == '"' || c == '\'') && token_start_) {
      quote_ = c;
    } else if (c != ' ') {
      token_start_ = std::string_view(":,[{-").find(c) != std::string_view::npos;
    }
    if (c != ' ') only_blanks_ = false;
    before_ = c;
  }

  void step_in_quotes(char c) {
    if (c == quote_ && !(quote_ == '"' && before_ == '\\')) {
      quote_ = 0;
      token_start_ = true;  // '' inside single quotes opens again
    }
    before_ = before_ == '\\' && c == '\\' ? ' ' : c;
  }

  void report() {
    if (reported_) return;
    reported_ = true;
    problems_.push_back({line_, column_,
                         only_blanks_ ? "tab in the indentation; YAML allows only spaces there"
                                      : "tab between words; use spaces, or quotes around a text with a tab"});
  }

  std::vector<YamlProblem> problems_;
  int line_ = 1, column_ = 1;
  char quote_ = 0, before_ = '\n';
  bool comment_ = false, reported_ = false, token_start_ = true, only_blanks_ = true;
};

/// Turns parser events into the tree.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(YamlDocument& document) : document_(document) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { finish(make(mark, Kind::kEmpty), anchor); }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    auto known = anchors_.find(anchor);
    if (known == anchors_.end()) {
      problem(mark, "an alias inside its own anchor");
      return finish(make(mark, Kind::kEmpty), YAML::NullAnchor);
    }
    place(known->second, mark.line + 1, mark.column + 1);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(mark, tag);
    auto node = make(mark, Kind::kScalar);
    node->scalar = value;
    node->quoted = tag == "!";
    finish(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    check_tag(mark, tag);
    frames_.push_back({make(mark, Kind::kList), anchor, {}, false});
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    check_tag(mark, tag);
    frames_.push_back({make(mark, Kind::kMap), anchor, {}, false});
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    std::shared_ptr<YamlNode> node;
    YAML::anchor_t anchor;
    YamlEntry entry;  ///< of a map: the key read, its value due
    bool has_key;
  };

  static std::shared_ptr<YamlNode> make(const YAML::Mark& mark, Kind kind) {
    auto node = std::make_shared<YamlNode>();
    node->kind = kind;
    node->line = mark.line + 1;
    node->column = mark.column + 1;
    return node;
  }

  void problem(const YAML::Mark& mark, std::string text) {
    document_.problems.push_back({mark.line + 1, mark.column + 1, std::move(text)});
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") problem(mark, fmt::format("YAML tags are not used here ({})", tag));
  }

  void close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    finish(std::move(frame.node), frame.anchor);
  }

  void finish(std::shared_ptr<YamlNode> node, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = node;
    int line = node->line, column = node->column;
    place(std::move(node), line, column);
  }

  /// Puts a complete node where it belongs: root, list item, key or value.
  void place(YamlNodePointer node, int line, int column) {
    if (frames_.empty()) {
      document_.root = std::move(node);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.node->kind == Kind::kList) {
      frame.node->items.push_back(std::move(node));
    } else if (!frame.has_key) {
      place_key(frame, *node, line, column);
    } else {
      frame.has_key = false;
      frame.entry.value = std::move(node);
      place_entry(*frame.node, std::move(frame.entry));
    }
  }

  void place_key(Frame& frame, const YamlNode& node, int line, int column) {
    if (node.kind != Kind::kScalar) {
      document_.problems.push_back({line, column, "a key must be a word"});
    }
    frame.entry = {node.scalar, line, column, nullptr};
    frame.has_key = true;
  }

  void place_entry(YamlNode& map, YamlEntry entry) {
    if (entry.key != "<<") {
      map.entries.push_back(std::move(entry));
    } else if (entry.value->kind == Kind::kList && !entry.value->items.empty()) {
      for (const auto& item : entry.value->items) merge(map, *item, entry);
    } else {
      merge(map, *entry.value, entry);
    }
  }

  void merge(YamlNode& map, const YamlNode& merged, const YamlEntry& at) {
    if (merged.kind != Kind::kMap) {
      document_.problems.push_back({at.line, at.column, "<< needs an alias of a map"});
    } else if (map.entries.size() + merged.entries.size() > kMostEntries) {
      document_.problems.push_back({at.line, at.column, fmt::format("<< grows a map beyond {} keys", kMostEntries)});
    } else {
      map.entries.insert(map.entries.end(), merged.entries.begin(), merged.entries.end());
    }
  }

  YamlDocument& document_;
  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, YamlNodePointer> anchors_;
};

void parse_into(const std::string& text, YamlDocument& document) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  TreeBuilder builder(document);
  if (!parser.HandleNextDocument(builder)) return;
  YamlDocument second;
  TreeBuilder second_builder(second);
  if (parser.HandleNextDocument(second_builder) && second.root) {
    document.problems.push_back(
        {second.root->line, second.root->column, "a second YAML document; one file holds one document"});
  }
}

/// Within {} and [] the brace of ${NAME} opens a map.
std::string hint_at_variable(const std::string& text, int line) {
  size_t begin = 0;
  for (int i = 0; i < line && begin != std::string::npos; ++i) begin = text.find('\n', begin + (i > 0 ? 1 : 0));
  if (begin == std::string::npos) return "";
  const size_t end = text.find('\n', begin + 1);
  const bool has_variable = text.substr(begin, end - begin).find("${") != std::string::npos;
  return has_variable ? "; inside {} or [] a value with ${NAME} must be quoted" : "";
}

}  // namespace

YamlDocument parse_yaml(const std::string& raw) {
  const std::string text = without_bom_and_carriage_returns(raw);
  YamlDocument document;
  if (auto problem = no_text(text)) document.problems = {*problem};
  if (document.problems.empty()) document.problems = TabScanner().scan(text);
  if (document.problems.empty()) {
    try {
      parse_into(text, document);
    } catch (const YAML::Exception& error) {
      document.problems.push_back({error.mark.line + 1, error.mark.column + 1,
                                   "not valid YAML: " + error.msg + hint_at_variable(text, error.mark.line)});
    }
  }
  if (!document.root) document.root = std::make_shared<YamlNode>();
  return document;
}

}  // namespace altiplano
