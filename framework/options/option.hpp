#pragma once
// options/ (L1): option records, and YAML texts as trees (yaml_document.hpp). One record per key feeds parser, checks,
// help, JSON schema and the reference page. May include base/ only. Plugins declare their own records with the same
// type.
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "framework/base/status.hpp"

namespace altiplano {

/// kFiles: one file, or a list of files and {path, weight} that are mixed by weight.
enum class OptionType : uint8_t {
  kBool,
  kInt,
  kFloat,
  kString,
  kIntList,
  kFloatList,
  kStringList,
  kStringMap,
  kFiles,
};
const char* to_string(OptionType type);

/// Free keys (glob patterns, names) to text, in the order written: the first match may win.
using StringMap = std::vector<std::pair<std::string, std::string>>;
/// A file and its share among others: any finite weight above 0, relative to the sum of all.
struct WeightedFile {
  std::string path;
  double weight = 1;
  bool operator==(const WeightedFile&) const = default;
};
using OptionValue = std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<int64_t>,
                                 std::vector<double>, std::vector<std::string>, StringMap, std::vector<WeightedFile>>;
std::string to_string(const OptionValue& value);

struct OptionRecord {
  std::string key = {};  ///< dotted, e.g. "train.global_batch_size"; plugins: without their section, e.g. "hidden_size"
  OptionType type = OptionType::kString;
  OptionValue default_value = {};  ///< monostate: no default
  std::string help = {};           ///< one sentence
  bool required = false;
  double minimum = -std::numeric_limits<double>::infinity();  ///< of numbers and of list elements
  double maximum = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices = {};  ///< of strings; empty: any
  bool allow_auto = false;                ///< the word `auto` is accepted too and leaves the value unset (monostate)
  bool below_maximum = false;             ///< the maximum itself is excluded: [minimum, maximum)
  int64_t list_length = 0;                ///< of lists; 0: any
  std::vector<std::string> aliases = {};  ///< other names of the key (same form as `key`), accepted with a notice
};

/// What a value must be, for messages, help and the reference page: "integer >= 1", "fp32, bf16 or fp64", "number in
/// [0, 1) or auto".
std::string expected_text(const OptionRecord& record);

/// Where a value came from, for messages and `config show`.
struct OptionOrigin {
  std::string file = {};  ///< empty: default or command line
  int line = 0, column = 0;
  std::string to_string() const;  ///< "job.yaml:18:22", "--set", "default"
  std::string source = "default";
  std::string detail = {};                      ///< how the value became what it is: "read from n_layer", "$SCRATCH"
  std::string describe() const;                 ///< to_string() with the detail: "job.yaml:3:9 ($SCRATCH)"
  std::vector<std::pair<int, int>> items = {};  ///< line and column of each entry of a list or map in `file`
};

/// How a message about a key starts: "job.yaml:18:22: train.max_steps", "--set train.max_steps", "--resume" for an
/// option of a command that stands for one key, or the key alone.
std::string start_of_message(const OptionOrigin& origin, const std::string& key);

/// Values by key, checked against records. A missing key is its record's default.
class Options {
 public:
  Options() = default;
  explicit Options(std::vector<OptionRecord> records);

  const std::vector<OptionRecord>& records() const { return records_; }
  const OptionRecord* find_record(const std::string& key) const;
  /// Type, bounds and choices are checked; the message names origin, key, got, expected. An integer serves where a
  /// number is due.
  Status set(const std::string& key, OptionValue value, OptionOrigin origin);
  /// The value to use while the user gives none (or `auto`), computed from other keys; `source` says how ("from
  /// run.name").
  void derive(const std::string& key, OptionValue value, const std::string& source);
  bool is_set(const std::string& key) const;  ///< given by the user (not a default)
  OptionOrigin origin(const std::string& key) const;
  /// "file:line:column: key" or the key alone: how messages about this key start.
  std::string where(const std::string& key) const;
  /// The same for one entry of a list, "file:line:column: key[index]", or of a map, "file:line:column: key[entry]".
  std::string where(const std::string& key, size_t index, const std::string& entry = "") const;

  // Typed reading; a key without a record or of another type is a bug and asserts. has() is false when the value is
  // unset (auto or no default); reading an unset value asserts.
  bool has(const std::string& key) const;
  bool get_bool(const std::string& key) const;
  int64_t get_int(const std::string& key) const;
  double get_float(const std::string& key) const;
  const std::string& get_string(const std::string& key) const;
  const std::vector<int64_t>& get_ints(const std::string& key) const;
  const std::vector<double>& get_floats(const std::string& key) const;
  const std::vector<std::string>& get_strings(const std::string& key) const;
  const StringMap& get_map(const std::string& key) const;
  const std::vector<WeightedFile>& get_files(const std::string& key) const;
  /// The value whatever its type; monostate when unset.
  const OptionValue& value(const std::string& key) const;
  /// What the value is while the user gives none: derived, else the record's default.
  const OptionValue& default_value(const std::string& key) const;
  /// All values, one "key: value" line each, sorted: for fingerprints and provenance.
  std::string to_string() const;
  /// The records and values below `prefix.`, with the prefix removed (e.g. section("model")). Messages from where()
  /// keep the whole key.
  Options section(const std::string& prefix) const;

 private:
  template <typename T>
  const T& typed(const std::string& key) const;
  std::vector<OptionRecord> records_;
  std::string prefix_;  ///< of a section: what was removed, "model."
  std::map<std::string, std::pair<OptionValue, OptionOrigin>> values_;
  std::map<std::string, std::pair<OptionValue, std::string>> derived_;
};

/// "integer 3 is not >= 4" as a full refusal: "<where>: got 3, expected integer >= 4".
Status expected_but_got(const std::string& where, const std::string& got, const OptionRecord& record);

}  // namespace altiplano
