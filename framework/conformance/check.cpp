#include "framework/conformance/check.hpp"

#include <exception>
#include <map>

#include "framework/base/text.hpp"

namespace altiplano::conformance {
namespace {

std::vector<Check> own_checks(uint32_t kind) {
  switch (kind) {
    case ALTIPLANO_PLUGIN_PLANNER:
      return planner_checks();
    case ALTIPLANO_PLUGIN_SCHEDULE:
      return schedule_checks();
    case ALTIPLANO_PLUGIN_COMM:
      return comm_checks();
    case ALTIPLANO_PLUGIN_DEVICE:
      return device_checks();
    case ALTIPLANO_PLUGIN_OP:
      return op_checks();
    case ALTIPLANO_PLUGIN_MODEL:
      return model_checks();
    case ALTIPLANO_PLUGIN_SCHEDULER:
      return scheduler_checks();
    default:
      return {};
  }
}

}  // namespace

const std::vector<Check>& checks_of(uint32_t kind) {
  static std::map<uint32_t, std::vector<Check>> made;
  auto [at, is_new] = made.try_emplace(kind);
  if (is_new) {
    at->second = handshake_checks();
    for (Check& check : own_checks(kind)) at->second.push_back(std::move(check));
  }
  return at->second;
}

Finding run_check(const Check& check, const Subject& subject) try {
  return check.run(subject);
} catch (const std::exception& e) {
  return broken("an exception came through the plugin door: {}", e.what());
} catch (...) {
  return broken("an exception came through the plugin door");
}

Status must_mention(const Status& refusal, std::initializer_list<const char*> words) {
  for (const char* word : words)
    if (refusal.message().find(word) != std::string::npos) return Status::ok();
  std::vector<std::string> quoted;
  for (const char* word : words) quoted.push_back(fmt::format("'{}'", word));
  return broken("a refusal without {}: \"{}\"", join(quoted, " or "), refusal.message());
}

}  // namespace altiplano::conformance
