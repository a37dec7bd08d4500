#pragma once
// ALTIPLANO_REGISTER_PLUGIN: the last line of a plugin's adapter. It defines altiplano_plugin_query with everything the
// handshake needs; the plugin's kind and interface version come from the interface class (`Interface::kKind`,
// `kInterfaceVersion`).
#include <exception>
#include <string>

#include "framework/api/fingerprint.hpp"
#include "framework/api/plugin.h"

#define ALTIPLANO_PLUGIN_EXPORT extern "C" __attribute__((visibility("default")))

/// Interface: e.g. altiplano::Schedule. Implementation: a default-constructible class derived from it. capabilities:
/// uint64_t bits.
#define ALTIPLANO_REGISTER_PLUGIN(Interface, Implementation, plugin_name, plugin_version, plugin_capabilities, \
                                  plugin_help)                                                                 \
  ALTIPLANO_PLUGIN_EXPORT const altiplano_plugin_descriptor* altiplano_plugin_query() {                        \
    static const altiplano_plugin_descriptor descriptor = {                                                    \
        sizeof(altiplano_plugin_descriptor),                                                                   \
        ALTIPLANO_ABI_MAJOR,                                                                                   \
        ALTIPLANO_ABI_MINOR,                                                                                   \
        static_cast<uint32_t>(Interface::kKind),                                                               \
        Interface::kInterfaceVersion,                                                                          \
        plugin_name,                                                                                           \
        plugin_version,                                                                                        \
        __DATE__,                                                                                              \
        altiplano::kAbiFingerprint,                                                                            \
        plugin_capabilities,                                                                                   \
        plugin_help,                                                                                           \
        [](const char** error) -> void* {                                                                      \
          try {                                                                                                \
            return static_cast<Interface*>(new Implementation());                                              \
          } catch (const std::exception& e) {                                                                  \
            static thread_local std::string text;                                                              \
            text = e.what();                                                                                   \
            *error = text.c_str();                                                                             \
            return nullptr;                                                                                    \
          }                                                                                                    \
        },                                                                                                     \
        [](void* object) { delete static_cast<Interface*>(object); }};                                         \
    return &descriptor;                                                                                        \
  }
