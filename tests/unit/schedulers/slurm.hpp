#pragma once
#include <boost/test/unit_test.hpp>

#include "framework/plugin/registry.hpp"

namespace altiplano::test {

inline const Scheduler& slurm() {
  const auto plugin = PluginRegistry::instance().scheduler("slurm");
  BOOST_REQUIRE_MESSAGE(plugin.is_ok(), plugin.status().to_string());
  return **plugin;
}

}  // namespace altiplano::test
