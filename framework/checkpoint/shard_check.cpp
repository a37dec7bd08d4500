#include "framework/checkpoint/shard_check.hpp"

#include <filesystem>

#include "framework/base/text.hpp"
#include "framework/checkpoint/element.hpp"
#include "framework/checkpoint/layout.hpp"
#include "framework/storage/atomic_file.hpp"

namespace altiplano {
namespace {

namespace fs = std::filesystem;

size_t bytes_of(const PartRecord& part) {
  return static_cast<size_t>(part.box.num_elements() * size_of(part.dtype));
}

/// Early writers did not say where a dataset's bytes lie.
Status read_by_name(const std::string& shard_path, const PartRecord& part, void* data) {
  ALTIPLANO_ASSIGN(Hdf5File file, Hdf5File::open(shard_path));
  ALTIPLANO_ASSIGN(DatasetInfo info, file.info(part.dataset));
  if (info.extents != part.box.extents || info.type != element_type_of(part.dtype))
    return runtime_failure("{}: dataset '{}' is not as the manifest says", shard_path, part.dataset);
  return file.read(part.dataset, Extents(part.box.extents.size()), part.box.extents, data);
}

/// Which datasets of a damaged shard differ from their checksums.
std::string damaged_datasets(const std::string& path, const ShardRecord& shard) {
  std::vector<std::string> names;
  for (const PartRecord& part : shard.parts) {
    if (part.offset < 0) return "an early checkpoint, which does not say where its datasets lie";
    std::vector<char> data(bytes_of(part));
    Status status = read_file_range(path, part.offset, data.data(), data.size());
    if (status && checksum(data.data(), data.size()) == part.checksum) continue;
    names.push_back(fmt::format("dataset '{}' (box {} of {})", part.dataset, part.box.to_string(), part.name));
  }
  return names.empty() ? "outside of the data of its datasets" : join(names, ", ");
}

}  // namespace

Status check_file_size(const std::string& path, const FileDigest& expected) {
  std::error_code error;
  auto size = static_cast<int64_t>(fs::file_size(path, error));
  if (error) return runtime_failure("{}: missing: {}", path, error.message());
  if (size == expected.bytes) return Status::ok();
  return runtime_failure("{}: has {} bytes, expected {}: {}", path, size, expected.bytes,
                         size < expected.bytes ? "cut off" : "something was added");
}

Status check_file(const std::string& path, const FileDigest& expected) {
  ALTIPLANO_RETURN_IF_ERROR(check_file_size(path, expected));
  ALTIPLANO_ASSIGN(FileDigest found, digest_file(path));
  if (found == expected) return Status::ok();
  return runtime_failure("{}: checksum {}, expected {}: bits have changed", path, checksum_text(found.checksum),
                         checksum_text(expected.checksum));
}

Status check_shard(const std::string& folder, const ShardRecord& shard, CheckLevel level) {
  std::string path = folder + "/" + shard.file;
  ALTIPLANO_RETURN_IF_ERROR(check_file_size(path, shard.digest));
  if (level == CheckLevel::kSizes) return Status::ok();
  Status status = check_file(path, shard.digest);
  if (status) return status;
  return runtime_failure("{}; {}", status.message(), damaged_datasets(path, shard));
}

Status read_part(const std::string& shard_path, const PartRecord& part, void* data) {
  ALTIPLANO_RETURN_IF_ERROR(part.offset < 0 ? read_by_name(shard_path, part, data)
                                            : read_file_range(shard_path, part.offset, data, bytes_of(part)));
  if (checksum(data, bytes_of(part)) == part.checksum) return Status::ok();
  return runtime_failure("{}: dataset '{}' (box {} of {}): its checksum does not match: bits have changed", shard_path,
                         part.dataset, part.box.to_string(), part.name);
}

Result<Manifest> read_manifest(const std::string& path) {
  std::string file = path + "/" + kManifestName;
  std::error_code error;
  if (!fs::exists(path, error)) return runtime_failure("{}: there is no such folder", path);
  if (!fs::is_directory(path, error))
    return runtime_failure("{}: is a file; a checkpoint is a folder named step-<number>", path);
  if (!fs::exists(file, error)) return runtime_failure("{}: has no manifest, so it is no complete checkpoint", path);
  ALTIPLANO_ASSIGN(std::string text, read_file(file));
  ALTIPLANO_ASSIGN(Manifest manifest, Manifest::from_json(text, file));
  const auto step = named_step(path);
  if (!step || *step == manifest.info.step) return manifest;
  return invalid_argument("{}: holds step {}, not {} as its name says; it does not count, name it {} or move it away",
                          path, manifest.info.step, *step,
                          fs::path(step_folder("", manifest.info.step)).filename().string());
}

}  // namespace altiplano
