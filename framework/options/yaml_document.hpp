#pragma once
// YamlDocument: a YAML text as a tree with positions, for readers that name file:line:column. Built from yaml-cpp's
// parser events, because its Node keeps only one of two equal keys. Here all entries stay, in the order written;
// anchors, aliases and merge keys (`<<`) are resolved.
#include <memory>
#include <string>
#include <vector>

namespace altiplano {

struct YamlNode;
using YamlNodePointer = std::shared_ptr<const YamlNode>;

struct YamlEntry {
  std::string key;
  int line = 0, column = 0;  ///< of the key, from 1
  YamlNodePointer value;
};

struct YamlNode {
  enum class Kind { kEmpty, kScalar, kList, kMap };
  Kind kind = Kind::kEmpty;
  int line = 0, column = 0;  ///< from 1; of kEmpty unreliable, use the key's
  std::string scalar;        ///< unquoted text
  bool quoted = false;       ///< the scalar was written in quotes or as a block
  std::vector<YamlNodePointer> items;
  std::vector<YamlEntry> entries;  ///< equal keys are kept
};

struct YamlProblem {
  int line = 0, column = 0;
  std::string text;  ///< without the position
};

struct YamlDocument {
  YamlNodePointer root;               ///< kEmpty for an empty text
  std::vector<YamlProblem> problems;  ///< syntax: tabs, tags, several documents, odd keys; then root may be incomplete
};

/// Accepts a byte order mark and CRLF. Never throws. Refuses texts with bytes that are no text and texts that grow
/// beyond 100,000 entries through merge keys.
YamlDocument parse_yaml(const std::string& text);

}  // namespace altiplano
