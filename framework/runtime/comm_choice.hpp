#pragma once
// Which communication backend a job uses: the one it names, or one whose capability bits promise what the job needs.
#include <string>
#include <vector>

#include "framework/options/option.hpp"
#include "framework/plugin/registry.hpp"

namespace altiplano {

/// Ranks that are processes.
struct RanksToConnect {
  int count = 1;
  int hosts = 1;  ///< on which they are
};

/// The full name for comm.backend. `auto`: of the backends that can connect the ranks, the deterministic first, then
/// (for one rank) those of threads, for one host those of one host, then those that notice a rank's death, then those
/// beside the library, then by name. One that connects hosts may be named
/// for ranks of one host, too. A backend that is named but cannot connect them is refused with those that can.
Result<std::string> choose_comm_backend(const Options& options, RanksToConnect ranks);

/// The same over given plugins; pure. `home`: the folder beside the library.
Result<std::string> choose_comm_backend(const std::vector<PluginInfo>& plugins, const std::string& home,
                                        const std::string& wanted, const std::string& where, RanksToConnect ranks);

}  // namespace altiplano
