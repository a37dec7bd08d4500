#include "framework/plugin/loader.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>

#include "framework/api/fingerprint.hpp"
#include "framework/base/text.hpp"

namespace altiplano {
namespace {

struct KindRecord {
  uint32_t kind;
  const char* name;
  uint32_t interface_version;
};

template <typename Interface>
constexpr KindRecord record_of(const char* name) {
  return {Interface::kKind, name, Interface::kInterfaceVersion};
}

constexpr std::array kKinds = {record_of<Planner>("planner"),    record_of<Schedule>("schedule"),
                               record_of<CommBackend>("comm"),   record_of<DeviceBackend>("device"),
                               record_of<OpExtension>("op"),     record_of<Model>("model"),
                               record_of<Scheduler>("scheduler")};

const KindRecord* find_kind(uint32_t kind) {
  auto at = std::find_if(kKinds.begin(), kKinds.end(), [&](const KindRecord& record) { return record.kind == kind; });
  return at == kKinds.end() ? nullptr : &*at;
}

std::string known_kinds() {
  std::vector<std::string> texts;
  for (const auto& record : kKinds) texts.push_back(fmt::format("{} ({})", record.kind, record.name));
  return join(texts, ", ");
}

/// A descriptor is append-only: the smallest that can be read is the one of ABI 1.0, which ends with `destroy`.
constexpr uint32_t kSmallestDescriptor =
    offsetof(altiplano_plugin_descriptor, destroy) + sizeof(altiplano_plugin_descriptor::destroy);

Status check_not_world_writable(const std::string& path, const std::string& what) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return invalid_argument("{} {}: {}", what, path, std::strerror(errno));
  if ((status.st_mode & S_IWOTH) == 0) return Status::ok();
  return invalid_argument(
      "{} {} is writable by everybody (mode {:04o}), so anybody could replace the plugin; needed: chmod o-w {}", what,
      path, status.st_mode & 07777, path);
}

/// dlopen maps what a file's header promises, and dies of SIGBUS where a cut file has nothing.
Status check_length(const std::string& path, int64_t length) {
  Elf64_Ehdr header{};
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return Status::ok();  // dlopen says what it is
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return Status::ok();
  const auto end = static_cast<int64_t>(header.e_shoff) + int64_t{header.e_shnum} * header.e_shentsize;
  if (end <= length) return Status::ok();
  return invalid_argument("{}: cut off: {} bytes, its header promises {}; copy the file again", path, length, end);
}

Status check_file(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0)
    return invalid_argument("{}: {}; needed: a plugin's shared object", path, std::strerror(errno));
  if (!S_ISREG(status.st_mode))
    return invalid_argument("{}: not a regular file; needed: a plugin's shared object", path);
  ALTIPLANO_RETURN_IF_ERROR(check_length(path, status.st_size));
  ALTIPLANO_RETURN_IF_ERROR(check_not_world_writable(path, "plugin file"));
  auto directory = std::filesystem::absolute(path).parent_path().string();
  return check_not_world_writable(directory, "plugin directory");
}

/// Some libraries take signals over as they are loaded (UCX: SIGHUP, and those of crashes); these stay the program's.
class SignalHandlersKept {
 public:
  SignalHandlersKept() {
    for (int signal = 1; signal < NSIG; ++signal) is_known_[signal] = sigaction(signal, nullptr, &before_[signal]) == 0;
  }
  ~SignalHandlersKept() {
    for (int signal = 1; signal < NSIG; ++signal)
      if (is_known_[signal]) sigaction(signal, &before_[signal], nullptr);
  }
  SignalHandlersKept(const SignalHandlersKept&) = delete;
  SignalHandlersKept& operator=(const SignalHandlersKept&) = delete;

 private:
  struct sigaction before_[NSIG] = {};
  bool is_known_[NSIG] = {};
};

Result<altiplano_plugin_query_function> open_file(const std::string& path) {
  // A path without a slash would make dlopen search the library path.
  std::string absolute = std::filesystem::absolute(path).string();
  const SignalHandlersKept signals;
  void* library = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return invalid_argument("{}: cannot be loaded: {}", path, dlerror());
  void* symbol = dlsym(library, ALTIPLANO_PLUGIN_QUERY_SYMBOL);
  if (symbol == nullptr) {
    return invalid_argument(
        "{}: not an Altiplano plugin: found no symbol {}; needed: ALTIPLANO_REGISTER_PLUGIN at the end of its adapter",
        path, ALTIPLANO_PLUGIN_QUERY_SYMBOL);
  }
  return reinterpret_cast<altiplano_plugin_query_function>(symbol);
}

Status check_name(const std::string& path, const char* name, const std::string& kind) {
  std::string text = name == nullptr ? "" : name;
  auto is_word = [](std::string_view word) {
    return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    });
  };
  std::string prefix = kind + "/";
  if (text.starts_with(prefix) && is_word(std::string_view(text).substr(prefix.size()))) return Status::ok();
  return invalid_argument("{}: found name '{}'; needed: '{}<name>' of lower-case letters, digits, '_' and '-'", path,
                          text, prefix);
}

Status check_members(const std::string& path, const altiplano_plugin_descriptor& descriptor) {
  const std::pair<const char*, bool> members[] = {{"version", descriptor.version != nullptr},
                                                  {"build_id", descriptor.build_id != nullptr},
                                                  {"abi_fingerprint", descriptor.abi_fingerprint != nullptr},
                                                  {"help", descriptor.help != nullptr},
                                                  {"create", descriptor.create != nullptr},
                                                  {"destroy", descriptor.destroy != nullptr}};
  for (const auto& [member, is_there] : members) {
    if (!is_there)
      return invalid_argument("{}: found a null '{}' in the descriptor; needed: every member set", path, member);
  }
  return Status::ok();
}

Status check_abi(const std::string& path, const altiplano_plugin_descriptor& found) {
  if (found.struct_size < kSmallestDescriptor) {
    return invalid_argument("{}: found a descriptor of {} bytes; needed: at least {}", path, found.struct_size,
                            kSmallestDescriptor);
  }
  if (found.abi_major != ALTIPLANO_ABI_MAJOR) {
    return invalid_argument("{}: found plugin ABI {}.{}, {} than this host's; needed: {}.x, at most {}.{}", path,
                            found.abi_major, found.abi_minor, found.abi_major < ALTIPLANO_ABI_MAJOR ? "older" : "newer",
                            ALTIPLANO_ABI_MAJOR, ALTIPLANO_ABI_MAJOR, ALTIPLANO_ABI_MINOR);
  }
  if (found.abi_minor > ALTIPLANO_ABI_MINOR) {
    return invalid_argument("{}: found plugin ABI {}.{}, newer than this host's; needed: {}.x, at most {}.{}", path,
                            found.abi_major, found.abi_minor, ALTIPLANO_ABI_MAJOR, ALTIPLANO_ABI_MAJOR,
                            ALTIPLANO_ABI_MINOR);
  }
  return Status::ok();
}

void fill_info(const altiplano_plugin_descriptor& descriptor, PluginInfo& info) {
  info.kind = descriptor.kind;
  info.name = descriptor.name;
  info.version = descriptor.version;
  info.build_id = descriptor.build_id;
  info.help = descriptor.help;
  info.capabilities = descriptor.capabilities;
}

Status create_object(LoadedPlugin& plugin) {
  const char* error = nullptr;
  std::string reason = "no reason given";
  try {
    plugin.object = plugin.descriptor->create(&error);
    if (error != nullptr) reason = error;
  } catch (const std::exception& e) {
    reason = fmt::format("an exception came through the plugin door: {}", e.what());
  } catch (...) {
    reason = "an exception came through the plugin door";
  }
  if (plugin.object != nullptr) return Status::ok();
  return invalid_argument("{}: {} could not be created: {}", plugin.info.path, plugin.info.name, reason);
}

Status load_checked(const std::string& path, LoadedPlugin& plugin) {
  ALTIPLANO_RETURN_IF_ERROR(check_file(path));
  ALTIPLANO_ASSIGN(auto query, open_file(path));
  const altiplano_plugin_descriptor* descriptor = query();
  ALTIPLANO_RETURN_IF_ERROR(check_descriptor(path, descriptor));
  plugin.descriptor = descriptor;
  fill_info(*descriptor, plugin.info);
  return create_object(plugin);
}

}  // namespace

const char* plugin_kind_name(uint32_t kind) {
  const KindRecord* record = find_kind(kind);
  return record == nullptr ? nullptr : record->name;
}

Status check_descriptor(const std::string& path, const altiplano_plugin_descriptor* found) {
  if (found == nullptr)
    return invalid_argument("{}: found a null descriptor; needed: a constant altiplano_plugin_descriptor", path);
  ALTIPLANO_RETURN_IF_ERROR(check_abi(path, *found));
  const KindRecord* kind = find_kind(found->kind);
  if (kind == nullptr)
    return invalid_argument("{}: found plugin kind {}; needed: one of {}", path, found->kind, known_kinds());
  if (found->interface_version != kind->interface_version) {
    return invalid_argument("{}: found version {} of the {} interface; needed: {}", path, found->interface_version,
                            kind->name, kind->interface_version);
  }
  ALTIPLANO_RETURN_IF_ERROR(check_name(path, found->name, kind->name));
  ALTIPLANO_RETURN_IF_ERROR(check_members(path, *found));
  if (std::strcmp(found->abi_fingerprint, kAbiFingerprint) != 0) {
    return invalid_argument("{}: found fingerprint '{}'; needed: '{}'; rebuild the plugin against this host's headers",
                            path, found->abi_fingerprint, kAbiFingerprint);
  }
  return Status::ok();
}

Status load_plugin(const std::string& path, LoadedPlugin& plugin) {
  plugin = {};
  plugin.info.path = path;
  Status status = load_checked(path, plugin);
  if (!status.is_ok()) plugin.info.refusal = status.message();
  return status;
}

std::string directory_of_this_library() {
  Dl_info info{};
  ALTIPLANO_ASSERT(dladdr(reinterpret_cast<void*>(&directory_of_this_library), &info) != 0,
                   "dladdr knows not its own caller");
  std::error_code error;
  auto path = std::filesystem::canonical(info.dli_fname, error);
  if (error) path = info.dli_fname;
  return path.parent_path().string();
}

}  // namespace altiplano
