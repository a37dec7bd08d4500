#pragma once
// The files of the profile database, in the user's cache: what was measured on which machine, in HDF5. Readers see a
// whole file, since writers replace it; writers take turns by a lock beside it. A file ends with a checksum of all
// before it, which is looked at before HDF5 is.
#include <functional>
#include <optional>
#include <string>

#include "framework/storage/file_lock.hpp"
#include "framework/storage/hdf5_file.hpp"

namespace altiplano {

/// ${XDG_CACHE_HOME:-~/.cache}/altiplano/`name`; empty where neither XDG_CACHE_HOME nor HOME is set.
std::string profile_path(const std::function<std::optional<std::string>(const std::string& name)>& environment,
                         const std::string& name);

/// The content is what was written, of this kind ("kernels"): only then HDF5 may look at it.
Status check_profile(const std::string& path, std::string_view what);

/// Replaces the file by what `fill` writes.
Status write_profile(const std::string& path, std::string_view what, const std::function<Status(Hdf5File&)>& fill);

/// Waits some three seconds for its turn; makes the folder.
Result<FileLock> take_turn_at_profile(const std::string& path);

}  // namespace altiplano
