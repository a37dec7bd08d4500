#pragma once
// conformance/ (L5): what each kind of plugin owes, as checks that run on any plugin file: the suites behind `altiplano
// plugins check` and tests/conformance. May include everything below the commands; names no plugin but the oracle,
// device/reference.
//
// A check is one promise of an interface, a sentence. It says what it counted when the promise was kept, and otherwise
// the numbers of the first case that broke it. A capability bit is a promise and the condition of its check.
#include <functional>
#include <string>
#include <vector>

#include "framework/plugin/loader.hpp"

namespace altiplano::conformance {

/// The plugin that is checked: loaded, its object made.
struct Subject {
  PluginInfo info;
  const altiplano_plugin_descriptor* descriptor = nullptr;
  void* object = nullptr;

  template <typename Interface>
  Interface& as() const {
    return *static_cast<Interface*>(object);
  }
};

/// What was counted ("1024 sizes built"), or a Status that says what broke the promise.
struct Finding : Result<std::string> {
  using Result::Result;
  Finding(const char* counted) : Result(std::string(counted)) {}  // NOLINT: implicit on purpose
};

struct Check {
  std::string name;
  std::function<Finding(const Subject&)> run;
  /// Why this plugin does not owe it; null or empty text: it does.
  std::function<std::string(const Subject&)> not_owed = nullptr;
};

/// The checks of every kind, then the kind's own, in the order in which they are run.
const std::vector<Check>& checks_of(uint32_t kind);

/// `check.run` with exceptions turned into a finding: none may come out of a plugin.
Finding run_check(const Check& check, const Subject& subject);

// One list per kind, each in a file of its own.
std::vector<Check> handshake_checks();  ///< of every kind
std::vector<Check> schedule_checks();
std::vector<Check> comm_checks();
std::vector<Check> device_checks();
std::vector<Check> op_checks();
std::vector<Check> model_checks();
std::vector<Check> planner_checks();
std::vector<Check> scheduler_checks();

/// A check over the interface object alone.
template <typename Interface>
Check check_of(std::string name, Finding (*body)(Interface&)) {
  return {std::move(name), [body](const Subject& subject) { return body(subject.as<Interface>()); }};
}

/// A broken promise.
template <typename... Args>
Status broken(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kRuntimeFailure, fmt::format(format, std::forward<Args>(args)...)};
}

/// A refusal must tell a way out: `words` (one of them) in its message.
Status must_mention(const Status& refusal, std::initializer_list<const char*> words);

}  // namespace altiplano::conformance
