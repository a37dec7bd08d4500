#pragma once
#include "tests/support/temporary_directory.hpp"

namespace altiplano::test {

/// Output and exit code of `altiplano ARGUMENTS` without the environment's plugin folders.
inline CommandResult run_altiplano(const std::string& arguments) {
  return run_command("env -u ALTIPLANO_PLUGIN_PATH " ALTIPLANO_BINARY_DIR "/bin/altiplano " + arguments);
}

}  // namespace altiplano::test
