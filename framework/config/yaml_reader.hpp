#pragma once
// OptionReader: YAML files and `--set` assignments into Options, strictly. Everything that is wrong is collected, not
// only the first: unknown keys (with a suggestion), keys given twice (with both lines), empty values, wrong types,
// bounds, unset variables.
//
// Keys may be nested or dotted ("train: {max_steps: 5}" or "train.max_steps: 5"). Not thread-safe.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "framework/base/status.hpp"
#include "framework/config/scalar_text.hpp"
#include "framework/config/yaml_document.hpp"
#include "framework/options/option.hpp"

namespace altiplano {

/// A scalar at `key` sets all of `targets` ("parallel.planner: manual" sets its stages and its sharding half).
struct Shorthand {
  std::string key;
  std::vector<std::string> targets;
};

class OptionReader {
 public:
  explicit OptionReader(std::vector<OptionRecord> records, std::vector<Shorthand> shorthands = {},
                        VariableLookup lookup = environment_variable);

  /// Keys below `section.` without a record are passed over (their records are not known yet).
  void ignore_unknown_below(const std::string& section) { ignored_sections_.push_back(section + "."); }
  /// `file` is the name for messages.
  void read_text(const std::string& text, const std::string& file);
  void read_file(const std::string& file);
  /// "train.max_steps=20": overrides what a file gave.
  void read_assignment(const std::string& assignment);
  /// Refuses required keys that nothing gave; `file` starts the message.
  void check_required(const std::string& file);

  Options& options() { return options_; }
  const std::vector<std::string>& notices() const { return notices_; }  ///< aliases used
  /// kInvalidArgument with one line per problem, in the order of the file; ok without problems.
  Status status() const;

 private:
  struct Source {
    std::string file;  ///< empty: --set
    OptionOrigin at(int line, int column) const;
    std::string start(int line, int column, const std::string& key) const;
  };
  void add_problem(int line, int column, std::string text);
  void read_map(const YamlNode& map, const std::string& prefix, const Source& source);
  void read_entry(const YamlEntry& entry, const std::string& path, const Source& source);
  void read_section(const YamlEntry& entry, const std::string& path, const Source& source);
  void read_option(const OptionRecord& record, const YamlEntry& entry, const std::string& path, const Source& source);
  Result<OptionValue> value_of(const OptionRecord& record, const YamlNode& node, const Source& source);
  Result<OptionValue> list_of(const OptionRecord& record, const YamlNode& node, const Source& source);
  Result<OptionValue> map_of(const OptionRecord& record, const YamlNode& node, const Source& source);
  Result<OptionValue> files_of(const OptionRecord& record, const YamlNode& node, const Source& source);
  Result<WeightedFile> file_of(const OptionRecord& record, const YamlNode& node, size_t index, const Source& source);
  Result<OptionValue> scalar_of(const OptionRecord& record, const YamlNode& node, const std::string& where);
  bool is_first(const std::string& path, const YamlEntry& entry, const Source& source);
  const OptionRecord* find_record_or_alias(const std::string& path, const YamlEntry& entry, const Source& source);
  const Shorthand* find_shorthand(const std::string& path) const;
  std::vector<std::string> keys_of_section(const std::string& prefix) const;
  std::string suggestion(const std::string& path) const;

  struct Problem {
    int line, column;
    std::string text;
  };
  Options options_;
  std::vector<Shorthand> shorthands_;
  VariableLookup lookup_;
  std::vector<std::string> ignored_sections_, notices_;
  std::vector<Problem> problems_;
  std::map<std::string, int> lines_;  ///< of the keys read from the file at hand
  bool unreadable_ = false;           ///< a file had no readable content: nothing more to say about missing keys
  std::set<std::string> given_;       ///< options given anywhere, rightly or wrongly
};

}  // namespace altiplano
