#include "framework/checkpoint/restore.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include "framework/base/text.hpp"
#include "framework/checkpoint/element.hpp"
#include "framework/checkpoint/layout.hpp"
#include "framework/storage/atomic_file.hpp"

namespace altiplano {
namespace {

namespace fs = std::filesystem;

/// One part of a shard, and one read of a piece of it into a target.
struct Source {
  const ShardRecord* shard;
  const PartRecord* part;
};
struct Piece {
  Source source;
  const TensorTarget* target;
  Box box;
};

Extents relative(const Box& box, const Box& to) {
  Extents origin = box.origin;
  for (size_t d = 0; d < origin.size(); ++d) origin[d] -= to.origin[d];
  return origin;
}

using SourcesByName = std::map<std::string, std::vector<Source>>;

SourcesByName sources_by_name(const Manifest& manifest) {
  SourcesByName sources;
  for (const ShardRecord& shard : manifest.shards) {
    for (const PartRecord& part : shard.parts) sources[part.name].push_back({&shard, &part});
  }
  return sources;
}

Status check_names(const SourcesByName& sources, std::span<const TensorTarget> targets, const std::string& path) {
  std::vector<std::string> missing, known;
  for (const TensorTarget& target : targets) {
    bool is_missing = !target.box.is_empty() && !sources.contains(target.name);
    if (is_missing && std::ranges::find(missing, target.name) == missing.end()) missing.push_back(target.name);
  }
  if (missing.empty()) return Status::ok();
  for (const auto& [name, parts] : sources) known.push_back(name);
  auto near = did_you_mean(missing[0], known);
  size_t count = missing.size();
  if (count > 8) missing.resize(8);
  return invalid_argument("{}: has no tensor {}{}{}", path, join(missing, ", "),
                          count > 8 ? fmt::format(" and {} more", count - 8) : "",
                          near ? fmt::format("; nearest to the first: {}", *near) : "");
}

Status plan_target(const TensorTarget& target, const std::vector<Source>& sources, const std::string& path,
                   std::vector<Piece>& pieces) {
  const PartRecord& first = *sources[0].part;
  if (first.dtype != target.dtype || first.global != target.global) {
    return invalid_argument("{}: tensor {} is {} {} there, {} {} is wanted", path, target.name, to_string(first.dtype),
                            to_string(first.global), to_string(target.dtype), to_string(target.global));
  }
  std::vector<HeldBox> held, uncovered;
  for (size_t i = 0; i < sources.size(); ++i) held.push_back({static_cast<int>(i), sources[i].part->box});
  for (const BoxTransfer& transfer : plan_transfer(held, {{-1, target.box}}, &uncovered)) {
    pieces.push_back({sources[static_cast<size_t>(transfer.source)], &target, transfer.box});
  }
  if (uncovered.empty()) return Status::ok();
  return runtime_failure("{}: no shard holds box {} of tensor {}", path, uncovered[0].box.to_string(), target.name);
}

Status check_part(const Piece& piece, const std::string& shard_path) {
  bool is_whole = piece.box == piece.source.part->box && piece.box == piece.target->box;
  if (!is_whole) return Status::ok();
  auto bytes = static_cast<size_t>(piece.box.num_elements() * size_of(piece.target->dtype));
  if (checksum(piece.target->data, bytes) == piece.source.part->checksum) return Status::ok();
  return runtime_failure("{}: dataset '{}': its checksum does not match: bits have changed", shard_path,
                         piece.source.part->dataset);
}

Status read_pieces(const std::string& shard_path, const std::vector<const Piece*>& pieces) {
  ALTIPLANO_ASSIGN(Hdf5File file, Hdf5File::open(shard_path));
  for (const Piece* piece : pieces) {
    const TensorTarget& target = *piece->target;
    ALTIPLANO_RETURN_IF_ERROR(file.read_into(piece->source.part->dataset, relative(piece->box, piece->source.part->box),
                                             piece->box.extents, target.data, target.box.extents,
                                             relative(piece->box, target.box)));
    ALTIPLANO_RETURN_IF_ERROR(check_part(*piece, shard_path));
  }
  return Status::ok();
}

Result<Manifest> read_manifest(const std::string& path) {
  std::string file = path + "/" + kManifestName;
  std::error_code error;
  if (!fs::exists(path, error)) return runtime_failure("{}: there is no such folder", path);
  if (!fs::exists(file, error)) return runtime_failure("{}: has no manifest, so it is no complete checkpoint", path);
  ALTIPLANO_ASSIGN(std::string text, read_file(file));
  return Manifest::from_json(text, file);
}

Status check_size(const std::string& path, const FileDigest& expected) {
  std::error_code error;
  auto size = static_cast<int64_t>(fs::file_size(path, error));
  if (error) return runtime_failure("{}: missing: {}", path, error.message());
  if (size == expected.bytes) return Status::ok();
  return runtime_failure("{}: has {} bytes, expected {}: {}", path, size, expected.bytes,
                         size < expected.bytes ? "cut off" : "something was added");
}

/// Which datasets of a damaged shard differ from their checksums.
std::string damaged_datasets(const std::string& path, const ShardRecord& shard) {
  auto file = Hdf5File::open(path);
  if (!file) return "the file's structure is damaged: " + file.status().message();
  std::vector<std::string> names;
  for (const PartRecord& part : shard.parts) {
    std::vector<char> data(static_cast<size_t>(part.box.num_elements() * size_of(part.dtype)));
    Extents zero(part.box.extents.size());
    auto info = file->info(part.dataset);
    bool is_same = info && info->extents == part.box.extents && info->type == element_type_of(part.dtype) &&
                   file->read(part.dataset, zero, part.box.extents, data.data()).is_ok() &&
                   checksum(data.data(), data.size()) == part.checksum;
    if (!is_same)
      names.push_back(fmt::format("dataset '{}' (box {} of {})", part.dataset, part.box.to_string(), part.name));
  }
  return names.empty() ? "outside of the data of its datasets" : join(names, ", ");
}

Status check_file(const std::string& path, const FileDigest& expected) {
  ALTIPLANO_RETURN_IF_ERROR(check_size(path, expected));
  ALTIPLANO_ASSIGN(FileDigest found, digest_file(path));
  if (found == expected) return Status::ok();
  return runtime_failure("{}: checksum {}, expected {}: bits have changed", path, checksum_text(found.checksum),
                         checksum_text(expected.checksum));
}

Status check_shard(const std::string& folder, const ShardRecord& shard, CheckLevel level) {
  std::string path = folder + "/" + shard.file;
  ALTIPLANO_RETURN_IF_ERROR(check_size(path, shard.digest));
  if (level == CheckLevel::kSizes) return Status::ok();
  Status status = check_file(path, shard.digest);
  if (status) return status;
  return runtime_failure("{}; {}", status.message(), damaged_datasets(path, shard));
}

Status no_checkpoint(std::string message) {
  return {StatusCode::kNoCheckpoint, std::move(message)};
}

std::string listed(const std::vector<SkippedCheckpoint>& skipped) {
  std::string text;
  for (const SkippedCheckpoint& one : skipped) text += "\n  " + one.reason;
  return text;
}

Result<FoundCheckpoint> newest_complete(const std::string& directory, CheckLevel level) {
  FoundCheckpoint found;
  for (const StepFolder& folder : list_step_folders(directory)) {
    auto checkpoint = Checkpoint::open(folder.path, level);
    if (checkpoint) {
      found.checkpoint = std::move(checkpoint).value();
      return found;
    }
    found.skipped.push_back({folder.path, checkpoint.status().to_string()});
  }
  if (found.skipped.empty()) return found;
  return no_checkpoint(
      fmt::format("{}: none of its {} checkpoints can be used; to start afresh use train.resume: none and another "
                  "checkpoint.dir:{}",
                  directory, found.skipped.size(), listed(found.skipped)));
}

Result<FoundCheckpoint> required(Result<FoundCheckpoint> found, const std::string& directory) {
  if (!found || found->checkpoint) return found;
  return no_checkpoint(fmt::format("{}: there is no checkpoint, and one is required", directory));
}

Result<FoundCheckpoint> at_path(const std::string& path, CheckLevel level) {
  std::error_code error;
  bool is_one = fs::exists(path + "/" + kManifestName, error) || list_step_folders(path).empty();
  if (!is_one) return required(newest_complete(path, level), path);
  auto checkpoint = Checkpoint::open(path, level);
  if (!checkpoint) return no_checkpoint(checkpoint.status().to_string());
  FoundCheckpoint found;
  found.checkpoint = std::move(checkpoint).value();
  return found;
}

}  // namespace

Result<Checkpoint> Checkpoint::open(const std::string& path, CheckLevel level) {
  ALTIPLANO_ASSIGN(Manifest manifest, read_manifest(path));
  for (const ShardRecord& shard : manifest.shards) ALTIPLANO_RETURN_IF_ERROR(check_shard(path, shard, level));
  return Checkpoint(path, std::move(manifest));
}

Status Checkpoint::restore(std::span<const TensorTarget> targets) const {
  SourcesByName sources = sources_by_name(manifest_);
  ALTIPLANO_RETURN_IF_ERROR(check_names(sources, targets, path_));
  std::vector<Piece> pieces;
  for (const TensorTarget& target : targets) {
    if (target.box.is_empty()) continue;
    ALTIPLANO_RETURN_IF_ERROR(plan_target(target, sources.at(target.name), path_, pieces));
  }
  std::map<std::string, std::vector<const Piece*>> by_shard;
  for (const Piece& piece : pieces) by_shard[path_ + "/" + piece.source.shard->file].push_back(&piece);
  for (const auto& [shard_path, wanted] : by_shard) ALTIPLANO_RETURN_IF_ERROR(read_pieces(shard_path, wanted));
  return Status::ok();
}

std::vector<std::string> verify_checkpoint(const std::string& path) {
  auto manifest = read_manifest(path);
  if (!manifest) return {manifest.status().to_string()};
  std::vector<std::string> problems;
  for (const ShardRecord& shard : manifest->shards) {
    if (Status status = check_shard(path, shard, CheckLevel::kChecksums); !status)
      problems.push_back(status.to_string());
  }
  Status index = check_file(path + "/" + manifest->index_file, manifest->index_digest);
  if (!index) problems.push_back(index.to_string() + "; only other programs read the index, restoring works");
  return problems;
}

Result<FoundCheckpoint> find_checkpoint(const std::string& directory, const std::string& resume, CheckLevel level) {
  if (resume == "none") return FoundCheckpoint{};
  if (resume == "auto") return newest_complete(directory, level);
  if (resume == "must") return required(newest_complete(directory, level), directory);
  return at_path(resume, level);
}

Status check_no_other_run(const std::string& directory, const std::string& run_id) {
  for (const StepFolder& folder : list_step_folders(directory)) {
    auto manifest = read_manifest(folder.path);
    if (manifest && manifest->info.run_id == run_id) continue;
    return invalid_argument(
        "checkpoint.dir: {} holds {}{}; resume it (train.resume: auto) or use another checkpoint.dir", directory,
        fs::path(folder.path).filename().string(),
        manifest ? " of run " + manifest->info.run_id : ", which cannot be read");
  }
  return Status::ok();
}

}  // namespace altiplano
