#include "framework/conformance/check_file.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/conformance/check.hpp"
#include "framework/conformance/child_process.hpp"

namespace altiplano::conformance {
namespace {

using Json = nlohmann::json;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// In the child: the file loaded as the registry would, or its refusal.
std::string load_answer(const std::string& path) {
  LoadedPlugin plugin;
  const Status status = load_plugin(path, plugin);
  return dump({{"code", static_cast<int>(status.code())},
               {"message", status.message()},
               {"path", plugin.info.path},
               {"name", plugin.info.name},
               {"version", plugin.info.version},
               {"build_id", plugin.info.build_id},
               {"help", plugin.info.help},
               {"kind", plugin.info.kind},
               {"capabilities", plugin.info.capabilities}});
}

Result<PluginInfo> load_in_child(const std::string& path, std::chrono::milliseconds timeout) {
  auto answer = run_in_child([&] { return load_answer(path); }, timeout);
  if (!answer.is_ok()) return runtime_failure("{}: loading it {}", path, answer.status().message());
  const Json json = Json::parse(*answer);
  if (const auto code = json.at("code").get<StatusCode>(); code != StatusCode::kOk)
    return Status(code, json.at("message").get<std::string>());
  PluginInfo info;
  info.path = json.at("path");
  info.name = json.at("name");
  info.version = json.at("version");
  info.build_id = json.at("build_id");
  info.help = json.at("help");
  info.kind = json.at("kind");
  info.capabilities = json.at("capabilities");
  return info;
}

/// In the child: one check.
std::string check_answer(const std::string& path, const Check& check) {
  LoadedPlugin plugin;
  Verdict verdict = Verdict::kBroken;
  std::string text;
  if (const Status status = load_plugin(path, plugin); !status.is_ok()) {
    text = "it loads no more: " + status.message();
  } else {
    const Subject subject{plugin.info, plugin.descriptor, plugin.object};
    text = check.not_owed ? check.not_owed(subject) : "";
    if (!text.empty()) {
      verdict = Verdict::kNotOwed;
    } else {
      const Finding finding = run_check(check, subject);
      verdict = finding.is_ok() ? Verdict::kKept : Verdict::kBroken;
      text = finding.is_ok() ? *finding : finding.status().to_string();
    }
  }
  return dump({{"verdict", static_cast<int>(verdict)}, {"text", text}});
}

CheckResult check_in_child(const std::string& path, const Check& check, std::chrono::milliseconds timeout) {
  auto answer = run_in_child([&] { return check_answer(path, check); }, timeout);
  if (!answer.is_ok()) return {check.name, Verdict::kBroken, "the check " + answer.status().message()};
  const Json json = Json::parse(*answer);
  return {check.name, json.at("verdict").get<Verdict>(), json.at("text").get<std::string>()};
}

}  // namespace

int FileReport::num(Verdict verdict) const {
  return static_cast<int>(
      std::count_if(results.begin(), results.end(), [&](const CheckResult& r) { return r.verdict == verdict; }));
}

Result<FileReport> check_file(const std::string& path, const CheckFileOptions& options) {
  FileReport report;
  ALTIPLANO_ASSIGN(report.info, load_in_child(path, options.timeout));
  if (options.on_loaded) options.on_loaded(report.info);
  for (const Check& check : checks_of(report.info.kind)) {
    report.results.push_back(check_in_child(path, check, options.timeout));
    if (options.on_result) options.on_result(report.results.back());
  }
  return report;
}

std::string heading_text(const PluginInfo& info) {
  return fmt::format("{} {}  {}\n", info.name, info.version, info.path);
}

std::string result_text(const CheckResult& result) {
  const char* words[] = {"kept", "BROKEN", "not owed"};
  std::string text = fmt::format("  {:<8}  {}: ", words[static_cast<size_t>(result.verdict)], result.name);
  const auto lines = split(trim(result.text), '\n');
  for (size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? "" : "\n            ") + lines[i];
  return text + "\n";
}

std::string summary_text(const FileReport& report) {
  const int kept = report.num(Verdict::kKept), broken = report.num(Verdict::kBroken),
            not_owed = report.num(Verdict::kNotOwed);
  std::string text = fmt::format("{}: {} kept", counted(kept + broken, "promise"), kept);
  if (broken > 0) text += fmt::format(", {} BROKEN", broken);
  if (not_owed > 0) text += fmt::format("; {} not owed", not_owed);
  return text + "\n";
}

}  // namespace altiplano::conformance
