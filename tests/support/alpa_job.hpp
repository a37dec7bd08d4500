#pragma once
// Jobs of the Alpa suites' members, loaded as the command line loads job files.
#include "framework/config/job_config.hpp"
#include "framework/plugin/registry.hpp"
#include "tests/support/alpa_suite.hpp"

namespace altiplano::test {

/// Plugins must be on the search path.
inline Result<JobConfig> alpa_job(const AlpaMember& member, const std::string& planner,
                                  const std::vector<std::string>& overrides = {}) {
  return load_job_config(
      {.file = member.name(), .text = member.job(planner), .overrides = overrides, .uses_validation = false},
      [](const std::string& kind, const std::vector<std::string>&) -> Result<std::vector<OptionRecord>> {
        ALTIPLANO_ASSIGN(const Model* model, PluginRegistry::instance().model(kind));
        return model->option_records();
      });
}

}  // namespace altiplano::test
