#pragma once
// Work that may crash, hang or exit: done in a child, so that the program lives to tell.
#include <chrono>
#include <functional>
#include <string>

#include "framework/base/status.hpp"

namespace altiplano::conformance {

/// What `work` returned in a forked child. Fails when the child died by a signal, ended without an answer or took
/// longer than `timeout` (it and all its children are killed then); the message says which, with the last line it
/// printed. Its output is shown nowhere else. To be called while this process has one thread.
Result<std::string> run_in_child(const std::function<std::string()>& work, std::chrono::milliseconds timeout);

}  // namespace altiplano::conformance
