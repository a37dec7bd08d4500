#pragma once
// One plugin file against everything its kind owes, each check in a child process of its own: a plugin that crashes,
// hangs or ends the process loses that check and no other.
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "framework/plugin/registry.hpp"

namespace altiplano::conformance {

enum class Verdict : uint8_t { kKept, kBroken, kNotOwed };

struct CheckResult {
  std::string name;
  Verdict verdict = Verdict::kKept;
  std::string text;  ///< what was counted, what broke it, or why it is not owed
};

struct FileReport {
  PluginInfo info;
  std::vector<CheckResult> results;
  int num(Verdict verdict) const;
};

struct CheckFileOptions {
  std::chrono::milliseconds timeout = std::chrono::minutes(5);  ///< of each check
  std::function<void(const PluginInfo&)> on_loaded = nullptr;
  std::function<void(const CheckResult&)> on_result = nullptr;  ///< as soon as it is known
};

/// A file that is refused (see loader.hpp), or cannot even be loaded, gives that as a Status. To be called while this
/// process has one thread; the file is never loaded into it.
Result<FileReport> check_file(const std::string& path, const CheckFileOptions& options = {});

// As people read it.
std::string heading_text(const PluginInfo& info);    ///< "schedule/mine 0.1.0  /path\n"
std::string result_text(const CheckResult& result);  ///< one line, more when the text has more
std::string summary_text(const FileReport& report);  ///< "9 promises: 8 kept, 1 broken\n"

}  // namespace altiplano::conformance
