#pragma once
// One plugin file: opened, its descriptor checked, its interface object made. The only home of dlfcn.h (see
// loader.cpp).
#include <string>

#include "framework/plugin/registry.hpp"

namespace altiplano {

struct LoadedPlugin {
  PluginInfo info;
  const altiplano_plugin_descriptor* descriptor = nullptr;  ///< lives as long as the process (RTLD_NODELETE)
  void* object = nullptr;  ///< of the kind's interface; released by descriptor->destroy
};

/// Everything that a descriptor owes this host, in this order: struct size, ABI major, ABI minor, kind, interface
/// version, name, texts and functions, fingerprint. `path` is for the message, which says what was found and what is
/// needed.
Status check_descriptor(const std::string& path, const altiplano_plugin_descriptor* descriptor);

/// File checks (exists, not world-writable, nor its directory), dlopen, check_descriptor, create. `info` is filled as
/// far as it got, with `refusal` set on failure. No exception of the plugin comes through.
Status load_plugin(const std::string& path, LoadedPlugin& plugin);

/// Directory of the file that holds this function: libaltiplano.so.
std::string directory_of_this_library();

}  // namespace altiplano
