#pragma once
// What a shared object shows without being loaded.
#include <string>
#include <vector>

#include "framework/base/status.hpp"

namespace altiplano::conformance {

/// Names of the dynamic symbols that a 64-bit ELF file of this machine defines and exports, sorted. A file that is
/// none, or is cut off, is refused.
Result<std::vector<std::string>> exported_symbols(const std::string& path);

}  // namespace altiplano::conformance
