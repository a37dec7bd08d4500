#pragma once
// Is a file of a checkpoint as it was written? Looks at sizes and sums only and finds a dataset's bytes where the
// manifest says they lie: a damaged file is never given to HDF5, which may crash on it.
#include <string>
#include <vector>

#include "framework/checkpoint/manifest.hpp"
#include "framework/checkpoint/restore.hpp"

namespace altiplano {

/// Compares the size, and the sum of all bytes; the message has both values.
Status check_file_size(const std::string& path, const FileDigest& expected);
Status check_file(const std::string& path, const FileDigest& expected);
/// As check_file by `level`; names the datasets that are damaged.
Status check_shard(const std::string& folder, const ShardRecord& shard, CheckLevel level);
/// Reads the bytes of a part and compares their sum. `data` has the size of its box.
Status read_part(const std::string& shard_path, const PartRecord& part, void* data);
/// <path>/manifest.json.
Result<Manifest> read_manifest(const std::string& path);

}  // namespace altiplano
