#pragma once
// plugin/ (L4): loader (the only home of dlfcn.h), registry, search path. Every wrong plugin is refused with a message
// that prints both sides; the process goes on. May include L0-L3 and api/; names no plugin.
//
// Search path: --plugin-path, ALTIPLANO_PLUGIN_PATH (colon separated), <dir of libaltiplano.so>/altiplano/plugins.
// World-writable files or directories are refused. Loaded with RTLD_NOW|RTLD_LOCAL|RTLD_NODELETE.
#include <memory>
#include <string>
#include <vector>

#include "framework/api/comm.hpp"
#include "framework/api/device.hpp"
#include "framework/api/model.hpp"
#include "framework/api/op.hpp"
#include "framework/api/planner.hpp"
#include "framework/api/schedule.hpp"
#include "framework/api/scheduler.hpp"

namespace altiplano {

struct PluginInfo {
  std::string path, name, version, build_id, help;
  uint32_t kind = 0;
  uint64_t capabilities = 0;
  std::string refusal;  ///< not empty: found but not usable, and why
};

/// "schedule" for ALTIPLANO_PLUGIN_SCHEDULE; nullptr for a kind this build does not know.
const char* plugin_kind_name(uint32_t kind);

/// Thread-safe. A name found in two files is usable from the first on the search path; the second is refused naming
/// both.
class PluginRegistry {
 public:
  /// The process-wide one; the first use searches the path.
  static PluginRegistry& instance();
  /// A directory to search in addition, before the environment's and the installed one, after those added earlier.
  void add_search_path(const std::string& directory);
  /// Loads and checks one file: its info, or a refusal that names file, what was found and what is needed.
  Result<PluginInfo> load_file(const std::string& path);
  /// Everything found on the search path, refused ones included, by directory and file name. Valid until the next
  /// load_file or add_search_path.
  const std::vector<PluginInfo>& list();
  const std::vector<std::string>& search_path();

  // By short name ("1f1b" or "schedule/1f1b"). Unknown: names what there is, with did-you-mean. Objects live as long as
  // the process.
  Result<const Planner*> planner(const std::string& name);
  Result<const Schedule*> schedule(const std::string& name);
  Result<CommBackend*> comm(const std::string& name);
  Result<DeviceBackend*> device(const std::string& name);
  Result<const Model*> model(const std::string& name);
  Result<const Scheduler*> scheduler(const std::string& name);
  /// All op extensions; their definitions are in the OpTable once this returned ok.
  Result<std::vector<const OpExtension*>> ops();

  PluginRegistry();
  ~PluginRegistry();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace altiplano
