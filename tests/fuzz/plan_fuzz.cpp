// Plan files: what is read prints a text that is read as the same plan.
#include "framework/plan/plan.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace altiplano;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto plan = Plan::from_yaml(fuzz::text_of(data, size), "plan.yaml");
  if (!plan.is_ok()) {
    fuzz::require(plan.status().message().find("plan.yaml") != std::string::npos, "an error names the file");
    return 0;
  }
  const std::string text = plan->to_yaml();
  const auto again = Plan::from_yaml(text, "again.yaml");
  fuzz::require(again.is_ok() && again->to_yaml() == text, "a plan's text reads back as the same plan");
  return 0;
}
