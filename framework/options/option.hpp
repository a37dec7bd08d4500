#pragma once
// options/ (L1): option records. One record per key feeds parser, checks, help, JSON schema and the reference page. May include
// base/ only. Plugins declare their own records with the same type.
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "framework/base/status.hpp"

namespace altiplano {

enum class OptionType : uint8_t { kBool, kInt, kFloat, kString, kIntList, kFloatList, kStringList };
const char* to_string(OptionType type);

using OptionValue = std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                                 std::vector<std::string>>;
std::string to_string(const OptionValue& value);

struct OptionRecord {
  std::string key;  ///< dotted, e.g. "train.global_batch_size"; plugins: without their section, e.g. "hidden_size"
  OptionType type = OptionType::kString;
  OptionValue default_value;  ///< monostate: no default
  std::string help;           ///< one sentence
  bool required = false;
  double minimum = -std::numeric_limits<double>::infinity();  ///< of numbers and of list elements
  double maximum = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices;  ///< of strings; empty: any
  bool allow_auto = false;           ///< the word `auto` is accepted too and leaves the value unset (monostate)
};

/// Where a value came from, for messages and `config show`.
struct OptionOrigin {
  std::string file;  ///< empty: default or command line
  int line = 0, column = 0;
  std::string to_string() const;  ///< "job.yaml:18:22", "--set", "default"
  std::string source = "default";
};

/// Values by key, checked against records. A missing key is its record's default.
class Options {
 public:
  Options() = default;
  explicit Options(std::vector<OptionRecord> records);

  const std::vector<OptionRecord>& records() const { return records_; }
  const OptionRecord* find_record(const std::string& key) const;
  /// Type, bounds and choices are checked; the message names origin, key, got, expected.
  Status set(const std::string& key, OptionValue value, OptionOrigin origin);
  bool is_set(const std::string& key) const;  ///< given by the user (not a default)
  OptionOrigin origin(const std::string& key) const;
  /// "file:line:column: key" or the key alone: how messages about this key start.
  std::string where(const std::string& key) const;

  // Typed reading; a key without a record or of another type is a bug and asserts. has() is false when the value is unset (auto or
  // no default); reading an unset value asserts.
  bool has(const std::string& key) const;
  bool get_bool(const std::string& key) const;
  int64_t get_int(const std::string& key) const;
  double get_float(const std::string& key) const;
  const std::string& get_string(const std::string& key) const;
  const std::vector<int64_t>& get_ints(const std::string& key) const;
  const std::vector<double>& get_floats(const std::string& key) const;
  const std::vector<std::string>& get_strings(const std::string& key) const;
  /// All values, one "key: value" line each, sorted: for fingerprints and provenance.
  std::string to_string() const;
  /// The records and values below `prefix.`, with the prefix removed (e.g. section("model")).
  Options section(const std::string& prefix) const;

 private:
  const OptionValue& value(const std::string& key) const;
  std::vector<OptionRecord> records_;
  std::map<std::string, std::pair<OptionValue, OptionOrigin>> values_;
};

}  // namespace altiplano
