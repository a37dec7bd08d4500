#include "framework/checkpoint/save.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <ranges>

#include "framework/base/text.hpp"
#include "framework/checkpoint/element.hpp"
#include "framework/checkpoint/index.hpp"
#include "framework/checkpoint/layout.hpp"
#include "framework/checkpoint/shard_check.hpp"
#include "framework/storage/atomic_file.hpp"

namespace altiplano {
namespace {

namespace fs = std::filesystem;

/// "/block.0.w/0_24": tensor and origin; unique in a shard because boxes do not overlap.
std::string dataset_name(const TensorPart& part) {
  std::vector<std::string> origin;
  for (int64_t at : part.box.origin) origin.push_back(std::to_string(at));
  return fmt::format("/{}/{}", part.name, origin.empty() ? "scalar" : join(origin, "_"));
}

int64_t bytes_of(const TensorPart& part) {
  return part.box.num_elements() * size_of(part.dtype);
}

Result<PartRecord> write_part(Hdf5File& file, const TensorPart& part) {
  ALTIPLANO_ASSERT(part.box.origin.size() == part.global.size() && Box::whole(part.global).contains(part.box),
                   "box {} of {} {}", part.box.to_string(), part.name, to_string(part.global));
  PartRecord record{part.name, part.role, part.dtype, part.global, part.box, dataset_name(part), 0, -1};
  record.checksum = checksum(part.data, static_cast<size_t>(bytes_of(part)));
  Extents zero(part.box.extents.size());
  ALTIPLANO_RETURN_IF_ERROR(file.create_dataset(record.dataset, element_type_of(part.dtype), part.box.extents));
  ALTIPLANO_RETURN_IF_ERROR(file.write(record.dataset, zero, part.box.extents, part.data));
  ALTIPLANO_ASSIGN(record.offset, file.data_offset(record.dataset));
  return record;
}

Status write_shard(const std::string& folder, int rank, std::span<const TensorPart> parts) {
  ShardRecord shard;
  shard.file = shard_name(rank);
  std::string path = folder + "/" + shard.file;
  ALTIPLANO_ASSIGN(Hdf5File file, Hdf5File::create(path));
  for (const TensorPart& part : parts) {
    if (part.box.is_empty()) continue;
    ALTIPLANO_ASSIGN(PartRecord record, write_part(file, part));
    shard.parts.push_back(std::move(record));
  }
  ALTIPLANO_RETURN_IF_ERROR(file.close());
  ALTIPLANO_RETURN_IF_ERROR(sync_file(path));
  ALTIPLANO_ASSIGN(shard.digest, digest_file(path));
  return write_file_atomically(folder + "/" + shard_record_name(rank), to_json(shard));
}

void remove_shard(const std::string& folder, int rank) {
  std::error_code ignored;
  fs::remove(folder + "/" + shard_record_name(rank), ignored);
  fs::remove(folder + "/" + shard_name(rank), ignored);
}

Result<std::vector<ShardRecord>> gather_records(const std::string& folder, int world_size) {
  std::vector<ShardRecord> shards;
  for (int rank = 0; rank < world_size; ++rank) {
    std::string path = folder + "/" + shard_record_name(rank);
    std::error_code missing;
    if (!fs::exists(path, missing)) return runtime_failure("{}: is not there: rank {} has not saved", path, rank);
    ALTIPLANO_ASSIGN(std::string text, read_file(path));
    ALTIPLANO_ASSIGN(ShardRecord shard, shard_from_json(text, path));
    std::error_code error;
    auto size = fs::file_size(folder + "/" + shard.file, error);
    if (error || static_cast<int64_t>(size) != shard.digest.bytes) {
      return runtime_failure("{}/{}: has {} bytes, its record says {}", folder, shard.file, error ? 0 : size,
                             shard.digest.bytes);
    }
    shards.push_back(std::move(shard));
  }
  return shards;
}

/// Everything in the folder that the manifest will not name: records, files of an earlier attempt.
void remove_unlisted(const std::string& folder, const Manifest& manifest) {
  std::vector<std::string> listed = {kManifestName, manifest.index_file};
  for (const ShardRecord& shard : manifest.shards) listed.push_back(shard.file);
  std::vector<fs::path> unlisted;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (std::ranges::find(listed, entry.path().filename().string()) == listed.end()) unlisted.push_back(entry.path());
  }
  for (const fs::path& path : unlisted) fs::remove_all(path, error);
}

/// Nothing when it cannot be read.
std::optional<CheckpointInfo> info_of(const std::string& step_path) {
  auto manifest = read_manifest(step_path);
  if (!manifest) return std::nullopt;
  return manifest->info;
}

/// The old folder steps aside and is removed once the new one is there: for file systems that cannot exchange two
/// names. Whoever looks between the two renames finds the old one under its other name (list_step_folders).
Status replace_in_two_steps(const std::string& folder, const std::string& path) {
  std::error_code error;
  const std::string aside = aside_folder(path);
  fs::remove_all(aside, error);
  fs::rename(path, aside, error);
  if (error) return runtime_failure("{}: cannot be renamed to {}: {}", path, aside, error.message());
  ALTIPLANO_RETURN_IF_ERROR(publish_directory(folder, path));
  fs::remove_all(aside, error);
  return Status::ok();
}

/// Puts the finished folder in place. A resumed run comes again to a step whose old folder was damaged, or lies after
/// the step it resumed from; the two change places.
Status put_in_place(const std::string& folder, const std::string& path, const CheckpointInfo& info) {
  std::error_code error;
  if (!fs::exists(path, error)) return publish_directory(folder, path);
  auto old = info_of(path);
  if (old && old->run_id != info.run_id) {
    return runtime_failure("{}: is a checkpoint of run {}, this is run {}; use another checkpoint.dir", path,
                           old->run_id, info.run_id);
  }
  if (old && old->attempt > info.attempt)
    return Status(StatusCode::kCancelled,
                  fmt::format("{}: is of start {} of the run, this is start {}, which saves nothing more", path,
                              old->attempt, info.attempt));
  ALTIPLANO_RETURN_IF_ERROR(sync_directory(folder));
  ALTIPLANO_ASSIGN(const bool is_exchanged, exchange(folder, path));
  if (!is_exchanged) return replace_in_two_steps(folder, path);
  fs::remove_all(folder, error);  // now the old one
  return Status::ok();
}

void prune(const std::string& directory, const CheckpointInfo& info, const KeepRule& rule, PublishReport& report) {
  std::map<CheckpointAge, std::string> paths;
  for (const StepFolder& folder : list_step_folders(directory)) {
    auto other = info_of(folder.path);
    if (other && other->run_id == info.run_id) paths[{other->attempt, other->step}] = folder.path;
  }
  std::vector<CheckpointAge> ages;
  for (const auto& [age, path] : paths) ages.push_back(age);
  for (const CheckpointAge& age : ages_to_remove(ages, rule)) {
    const std::string& path = paths.at(age);
    if (path == report.path || !remove_checkpoint(path)) continue;  // what cannot be removed is tried again next time
    report.pruned.push_back(path);
    paths.erase(age);
  }
  for (const auto& [age, path] : paths) report.kept.push_back(age.step);
  std::ranges::sort(report.kept);
}

}  // namespace

int64_t payload_bytes(std::span<const TensorPart> parts) {
  return std::accumulate(parts.begin(), parts.end(), int64_t{0},
                         [](int64_t sum, const TensorPart& part) { return sum + bytes_of(part); });
}

Status save_shard(const std::string& directory, int64_t step, int rank, std::span<const TensorPart> parts,
                  int64_t attempt) {
  std::string folder = temporary_folder(directory, step, attempt);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return runtime_failure("{}: cannot be created: {}", folder, error.message());
  remove_shard(folder, rank);
  Status status = write_shard(folder, rank, parts);
  if (!status) remove_shard(folder, rank);
  return status.with_context(fmt::format("while saving step {} of rank {}", step, rank));
}

Result<PublishReport> publish_checkpoint(const std::string& directory, const CheckpointInfo& info, const KeepRule& keep,
                                         const std::function<Status()>& may_publish) {
  std::string folder = temporary_folder(directory, info.step, info.attempt);
  Manifest manifest;
  manifest.info = info;
  manifest.written_by = ALTIPLANO_VERSION;
  manifest.index_file = kIndexName;
  ALTIPLANO_ASSIGN(manifest.shards, gather_records(folder, info.world_size));
  ALTIPLANO_RETURN_IF_ERROR(check_coverage(manifest.shards));
  ALTIPLANO_RETURN_IF_ERROR(write_index(folder, manifest.shards));
  ALTIPLANO_ASSIGN(manifest.index_digest, digest_file(folder + "/" + kIndexName));
  remove_unlisted(folder, manifest);
  ALTIPLANO_RETURN_IF_ERROR(write_file_atomically(folder + "/" + kManifestName, manifest.to_json()));

  PublishReport report;
  report.path = step_folder(directory, info.step);
  report.bytes = manifest.num_bytes();
  if (may_publish) ALTIPLANO_RETURN_IF_ERROR(may_publish());
  ALTIPLANO_RETURN_IF_ERROR(put_in_place(folder, report.path, info));
  std::string name = fs::path(report.path).filename().string();
  ALTIPLANO_RETURN_IF_ERROR(write_file_atomically(directory + "/" + kLatestName, name + "\n"));
  prune(directory, info, keep, report);
  return report;
}

Status remove_checkpoint(const std::string& path) {
  if (is_held_by_link(path)) return runtime_failure("{}: stays, for a symbolic link", path);
  std::error_code error;
  const std::string hidden = retired_folder(path);
  fs::remove_all(hidden, error);
  fs::rename(path, hidden, error);
  if (!error) fs::remove_all(hidden, error);
  if (!error) return Status::ok();
  return runtime_failure("{}: cannot be removed: {}", path, error.message());
}

void discard_unfinished(const std::string& directory, int64_t step, int64_t attempt) {
  std::error_code ignored;
  fs::remove_all(temporary_folder(directory, step, attempt), ignored);
}

std::vector<std::string> remove_unfinished(const std::string& directory) {
  std::vector<std::string> paths = list_leftovers(directory);
  std::error_code ignored;
  for (const std::string& path : paths) fs::remove_all(path, ignored);
  for (const StepFolder& folder : list_step_folders(directory)) {
    const std::string in_place = step_folder(directory, folder.step);
    if (folder.path == aside_folder(in_place)) fs::rename(folder.path, in_place, ignored);
  }
  return paths;
}

}  // namespace altiplano
