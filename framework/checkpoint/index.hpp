#pragma once
// index.h5: every global tensor whole, as a virtual dataset over the shards, for h5dump, h5py and other readers.
// Restore does not need it.
#include <span>
#include <string>

#include "framework/checkpoint/manifest.hpp"

namespace altiplano {

/// Every tensor has one dtype and one shape, and its boxes hold each element exactly once; else names tensor and box.
Status check_coverage(std::span<const ShardRecord> shards);
/// Writes <folder>/index.h5 over the shards beside it and syncs it. Scalars, which HDF5 cannot map, are copied.
Status write_index(const std::string& folder, std::span<const ShardRecord> shards);

}  // namespace altiplano
