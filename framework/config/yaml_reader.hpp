#pragma once
// config/ (L5): strict YAML reader over option records, and the job file. May include L0-L4; loads no plugins: whoever
// calls hands in the records that a plugin declares. Its errors name file:line:column and the dotted key.
//
// OptionReader: YAML files and `--set` assignments into Options, strictly. Everything that is wrong is collected, not
// only the first: unknown keys (with a suggestion), keys given twice (with both lines), empty values, wrong types,
// bounds, unset variables.
//
// Keys may be nested or dotted ("train: {max_steps: 5}" or "train.max_steps: 5"). Not thread-safe.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/base/status.hpp"
#include "framework/config/foreign_keys.hpp"
#include "framework/config/scalar_text.hpp"
#include "framework/options/option.hpp"
#include "framework/options/yaml_document.hpp"

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

  /// Names of other systems are read too, each with a notice.
  void accept_foreign(const std::vector<ForeignKey>& keys) { foreign_ = keys; }
  /// Keys below `section.` without a record are passed over (their records are not known yet).
  void ignore_unknown_below(const std::string& section) { ignored_sections_.push_back(section + "."); }
  /// `file` is the name for messages.
  void read_text(const std::string& text, const std::string& file);
  void read_file(const std::string& file);
  /// "train.max_steps=20": overrides what a file gave. `flag`: the option by which it was given, for messages.
  void read_assignment(const std::string& assignment, const std::string& flag = "--set");
  /// Refuses required keys that nothing gave; `file` starts the message.
  void check_required(const std::string& file);

  Options& options() { return options_; }
  const std::string& text() const { return text_; }                     ///< of the file read last
  const std::vector<std::string>& notices() const { return notices_; }  ///< aliases used
  /// kInvalidArgument with one line per problem, in the order of the file; ok without problems.
  Status status() const;

 private:
  struct Source {
    std::string file;            ///< empty: the command line
    std::string flag = "--set";  ///< of the command line
    OptionOrigin at(int line, int column) const;
    std::string start(int line, int column, const std::string& key) const;
  };
  void add_problem(int line, int column, std::string text);
  void read_map(const YamlNode& map, const std::string& prefix, const Source& source);
  void read_entry(const YamlEntry& entry, const std::string& path, const Source& source);
  void refuse_section(const YamlEntry& entry, const std::string& path, const Source& source);
  /// A key by another name than its own: `foreign` is null for an alias of the record.
  void read_renamed(const OptionRecord& record, const ForeignKey* foreign, const YamlEntry& entry,
                    const std::string& path, const Source& source);
  std::optional<YamlEntry> translated(const OptionRecord& record, const ForeignKey& foreign, const YamlEntry& entry,
                                      const std::string& path, const Source& source);
  void read_option(const OptionRecord& record, const YamlEntry& entry, const std::string& path, const Source& source);
  Result<OptionValue> value_of(const OptionRecord& record, const YamlNode& node, const Source& source);
  Result<OptionValue> list_of(const OptionRecord& record, const YamlNode& node, const Source& source);
  Result<OptionValue> map_of(const OptionRecord& record, const YamlNode& node, const Source& source);
  Result<OptionValue> files_of(const OptionRecord& record, const YamlNode& node, const Source& source);
  Result<WeightedFile> file_of(const OptionRecord& record, const YamlNode& node, size_t index, const Source& source);
  Result<OptionValue> scalar_of(const OptionRecord& record, const YamlNode& node, const std::string& where);
  /// False and a problem when `path` was given before; `spelling`: the word it is given by now.
  bool is_first(const std::string& path, const std::string& spelling, const YamlEntry& entry, const Source& source);
  const OptionRecord* find_alias(const std::string& path) const;
  const ForeignKey* find_foreign(const std::string& path) const;
  bool is_foreign_section(const std::string& path) const;
  /// The record that a path means, by whatever name.
  const OptionRecord* find_any(const std::string& path) const;
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
  struct Place {
    int line;
    std::string spelling;
  };
  std::string text_;
  std::vector<ForeignKey> foreign_;
  std::vector<Problem> problems_;
  std::map<std::string, Place> places_;  ///< of the keys read from the file at hand
  std::vector<std::string> variables_;   ///< expanded in the value at hand
  bool unreadable_ = false;              ///< a file had no readable content: nothing more to say about missing keys
  std::set<std::string> given_;          ///< options given anywhere, rightly or wrongly
};

}  // namespace altiplano
