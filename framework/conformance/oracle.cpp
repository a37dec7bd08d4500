#include "framework/conformance/oracle.hpp"

#include <algorithm>

#include "framework/plugin/registry.hpp"

namespace altiplano::conformance {

Result<std::unique_ptr<Device>> open_device(const std::string& kind, int threads) {
  ALTIPLANO_ASSIGN(DeviceBackend * backend, PluginRegistry::instance().device(kind));
  return backend->open({.threads = threads});
}

Result<std::unique_ptr<Device>> open_oracle() {
  return open_device("reference");
}

std::vector<std::string> device_kinds() {
  std::vector<std::string> kinds;
  for (const PluginInfo& info : PluginRegistry::instance().list())
    if (info.kind == DeviceBackend::kKind && info.refusal.empty())
      kinds.push_back(info.name.substr(info.name.find('/') + 1));
  std::sort(kinds.begin(), kinds.end());
  return kinds;
}

}  // namespace altiplano::conformance
