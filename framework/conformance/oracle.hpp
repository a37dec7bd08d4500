#pragma once
// Devices that suites measure against.
#include <memory>
#include <string>
#include <vector>

#include "framework/api/device.hpp"

namespace altiplano::conformance {

/// device/reference: plain loops in f64.
Result<std::unique_ptr<Device>> open_oracle();
/// device/<kind> with `threads` compute threads.
Result<std::unique_ptr<Device>> open_device(const std::string& kind, int threads = 1);
/// Short names of the devices on the search path: "cpu", "reference".
std::vector<std::string> device_kinds();

}  // namespace altiplano::conformance
