#pragma once
// checkpoint/ (L5): the saved state of a run: shards written by ranks, a manifest with checksums, atomic publish,
// restore of any boxes under any plan. May include L0-L4.
//
// <directory>/step-00000120/   manifest.json   rank-0000.h5 …   index.h5     one complete checkpoint
// <directory>/latest                           the name of the newest one
// <directory>/.tmp-step-120/                   being written; means nothing to a reader
//
// Manifest: what a checkpoint holds and how to know it is whole. JSON with its own checksum as last member. Only exact
// boxes of global tensors are listed: no padding, nothing of the plan is needed to read them.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "framework/base/status.hpp"
#include "framework/sharding/box.hpp"
#include "framework/storage/checksum.hpp"

namespace altiplano {

inline constexpr int64_t kCheckpointFormatVersion = 1;

/// One box of one global tensor: one dataset of a shard.
struct PartRecord {
  std::string name, role;  ///< tensor name; role is a word for readers ("parameter", "master", …)
  DType dtype = DType::kF32;
  Shape global;
  Box box;
  std::string dataset;    ///< path in the shard
  uint64_t checksum = 0;  ///< XXH3-64 of the box's bytes, row-major
  int64_t offset = -1;    ///< byte of the shard where they begin; -1: not stated (early writers)
};

struct ShardRecord {
  std::string file;  ///< "rank-0003.h5"
  FileDigest digest;
  std::vector<PartRecord> parts;
};

/// What the run knows of itself when it saves.
struct CheckpointInfo {
  int64_t step = 0;              ///< optimizer steps done
  int64_t samples_consumed = 0;  ///< the whole data state
  int world_size = 1;
  int64_t attempt = 1;  ///< counts the run's starts: what a later start wrote is newer, whatever its step
  std::string run_id;
  std::string model_fingerprint;
  std::map<std::string, std::string> architecture;  ///< field -> value: what the fingerprint is made of, for messages
  std::string plan;                                 ///< its text
  std::string state = "{}";  ///< JSON object of small states: the settings it was trained with, …
};

struct Manifest {
  CheckpointInfo info;
  std::string written_by;  ///< "0.1.0"
  std::vector<ShardRecord> shards;
  std::string index_file;  ///< "index.h5"
  FileDigest index_digest;

  int64_t num_bytes() const;  ///< of all shards
  std::string to_json() const;
  /// `path` is for messages. Refuses another format version (naming both programs), a changed bit, a missing member.
  static Result<Manifest> from_json(const std::string& text, const std::string& path);
};

std::string to_json(const ShardRecord& shard);
Result<ShardRecord> shard_from_json(const std::string& text, const std::string& path);

/// How a message names a field of the model: "job.yaml:3:5: model.hidden_size".
using FieldPlace = std::function<std::string(const std::string& field)>;

/// Fails when the model differs from the one of the checkpoint, listing the fields that differ, one per line.
Status check_architecture(const CheckpointInfo& saved, const std::string& fingerprint,
                          const std::map<std::string, std::string>& architecture, const FieldPlace& place = {});

}  // namespace altiplano
