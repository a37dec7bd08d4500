#include "framework/checkpoint/restore.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/checkpoint/layout.hpp"
#include "framework/checkpoint/retention.hpp"
#include "framework/checkpoint/shard_check.hpp"
#include "framework/storage/file_kind.hpp"

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

/// Elements of one dim apart, row-major.
std::vector<int64_t> strides_of(const Box& box) {
  std::vector<int64_t> strides(box.extents.size(), 1);
  for (size_t d = strides.size(); d-- > 1;) strides[d - 1] = strides[d] * box.extents[d];
  return strides;
}

int64_t index_in(const Box& box, const std::vector<int64_t>& strides, const std::vector<int64_t>& at) {
  int64_t index = 0;
  for (size_t d = 0; d < at.size(); ++d) index += (at[d] - box.origin[d]) * strides[d];
  return index;
}

/// The next row (all dims but the last) of a box; false after the last one.
bool next_row(const Box& box, std::vector<int64_t>& at) {
  for (size_t d = at.size(); d-- > 1;) {
    if (++at[d - 1] < box.origin[d - 1] + box.extents[d - 1]) return true;
    at[d - 1] = box.origin[d - 1];
  }
  return false;
}

/// The piece from the bytes of its part to its target, row by row.
void place(const Piece& piece, const char* bytes) {
  const Box& from = piece.source.part->box;
  const Box& to = piece.target->box;
  const int64_t size = size_of(piece.target->dtype);
  const auto row = static_cast<size_t>((piece.box.extents.empty() ? 1 : piece.box.extents.back()) * size);
  const std::vector<int64_t> from_strides = strides_of(from), to_strides = strides_of(to);
  std::vector<int64_t> at = piece.box.origin;
  do {
    std::memcpy(static_cast<char*>(piece.target->data) + index_in(to, to_strides, at) * size,
                bytes + index_in(from, from_strides, at) * size, row);
  } while (next_row(piece.box, at));
}

/// Reads a part whole, so that its checksum can be compared, and puts the wanted pieces of it in their places.
Status read_pieces(const std::string& folder, const std::vector<const Piece*>& pieces) {
  const Source& source = pieces[0]->source;
  const std::string path = folder + "/" + source.shard->file;
  const PartRecord& part = *source.part;
  if (pieces.size() == 1 && pieces[0]->box == part.box && pieces[0]->target->box == part.box)
    return read_part(path, part, pieces[0]->target->data);
  std::vector<char> bytes(static_cast<size_t>(part.box.num_elements() * size_of(part.dtype)));
  ALTIPLANO_RETURN_IF_ERROR(read_part(path, part, bytes.data()));
  for (const Piece* piece : pieces) place(*piece, bytes.data());
  return Status::ok();
}

Status no_checkpoint(std::string message) {
  return {StatusCode::kNoCheckpoint, std::move(message)};
}

std::string listed(const std::vector<SkippedCheckpoint>& skipped) {
  std::string text;
  for (const SkippedCheckpoint& one : skipped) text += "\n  " + one.reason;
  return text;
}

/// A folder whose manifest can be read, with its age.
struct Candidate {
  std::string path;
  CheckpointAge age;
};

/// Newest first. Folders without a manifest that can be read go to `skipped`.
std::vector<Candidate> candidates_in(const std::string& directory, std::vector<SkippedCheckpoint>& skipped) {
  std::vector<Candidate> candidates;
  for (const StepFolder& folder : list_step_folders(directory)) {
    auto manifest = read_manifest(folder.path);
    if (manifest) {
      candidates.push_back({folder.path, {manifest->info.attempt, manifest->info.step}});
    } else {
      skipped.push_back({folder.path, folder.step, manifest.status().to_string()});
    }
  }
  std::ranges::sort(candidates, std::greater(), &Candidate::age);
  return candidates;
}

/// Saves that never finished, from step `after` on.
std::vector<SkippedCheckpoint> unfinished_saves(const std::string& directory, int64_t after) {
  std::vector<SkippedCheckpoint> unfinished;
  for (const std::string& path : list_leftovers(directory)) {
    auto step = unfinished_step(path);
    if (!step || *step <= after) continue;
    std::error_code error;
    const auto files = std::distance(fs::directory_iterator(path, error), {});
    unfinished.push_back(
        {path, *step,
         fmt::format("{}: the save of step {} never finished; it left {}", path, *step, counted(files, "file"))});
  }
  return unfinished;
}

using Excluded = std::vector<SkippedCheckpoint>;

/// Nothing when it is not among them.
const SkippedCheckpoint* find_excluded(const Excluded& excluded, const std::string& path) {
  auto found = std::ranges::find(excluded, path, &SkippedCheckpoint::path);
  return found == excluded.end() ? nullptr : &*found;
}

Result<FoundCheckpoint> newest_complete(const std::string& directory, CheckLevel level, const Excluded& excluded) {
  FoundCheckpoint found;
  found.skipped = excluded;
  std::vector<SkippedCheckpoint> unreadable;
  for (const Candidate& candidate : candidates_in(directory, unreadable)) {
    if (find_excluded(excluded, candidate.path)) continue;
    auto checkpoint = Checkpoint::open(candidate.path, level);
    if (checkpoint) {
      found.checkpoint = std::move(checkpoint).value();
      break;
    }
    found.skipped.push_back({candidate.path, candidate.age.step, checkpoint.status().to_string()});
  }
  const int64_t step = found.checkpoint ? found.checkpoint->manifest().info.step : -1;
  std::erase_if(unreadable, [step](const SkippedCheckpoint& one) { return one.step < step; });
  found.skipped.insert(found.skipped.begin(), unreadable.begin(), unreadable.end());
  found.unfinished = unfinished_saves(directory, step);
  if (found.checkpoint || found.skipped.empty()) return found;
  const size_t count = found.skipped.size();
  const std::string what =
      count == 1 ? "its only checkpoint cannot be used" : fmt::format("none of its {} checkpoints can be used", count);
  return no_checkpoint(fmt::format("{}: {}; to start afresh use train.resume: none and another checkpoint.dir:{}",
                                   directory, what, listed(found.skipped)));
}

bool is_denied(const std::string& path, int mode) {
  return access(path.c_str(), mode) != 0 && errno == EACCES;
}

/// What may not be read is not damaged: to go on without it would replace good checkpoints by older ones.
Status check_permissions(const std::string& directory) {
  auto denied = [](const std::string& path) {
    return no_checkpoint(
        fmt::format("{}: permission denied; nothing was changed. Give this user the right to read it, or use "
                    "train.resume: none and another checkpoint.dir",
                    path));
  };
  std::error_code error;
  if (!fs::is_directory(directory, error)) return Status::ok();  // others say what it is
  if (is_denied(directory, R_OK | X_OK)) return denied(directory);
  for (const StepFolder& folder : list_step_folders(directory)) {
    if (is_denied(folder.path, R_OK | X_OK)) return denied(folder.path);
    for (const auto& entry : fs::directory_iterator(folder.path, error))
      if (is_denied(entry.path().string(), R_OK)) return denied(entry.path().string());
  }
  return Status::ok();
}

Result<FoundCheckpoint> required(Result<FoundCheckpoint> found, const std::string& directory) {
  if (!found || found->checkpoint) return found;
  return no_checkpoint(
      fmt::format("{}: there is no checkpoint, and one is required{}", directory, listed(found->unfinished)));
}

Result<FoundCheckpoint> at_path(const std::string& path, CheckLevel level, const Excluded& excluded) {
  std::error_code error;
  bool is_one = fs::exists(path + "/" + kManifestName, error) || list_step_folders(path).empty();
  if (!is_one) return required(newest_complete(path, level, excluded), path);
  if (auto* known = find_excluded(excluded, path)) return no_checkpoint(known->reason);
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
  std::map<std::pair<std::string, int64_t>, std::vector<const Piece*>> by_part;  // in the order of the files
  for (const Piece& piece : pieces) {
    auto number = piece.source.part - piece.source.shard->parts.data();
    by_part[{piece.source.shard->file, number}].push_back(&piece);
  }
  for (const auto& [part, wanted] : by_part) ALTIPLANO_RETURN_IF_ERROR(read_pieces(path_, wanted));
  return Status::ok();
}

Status Checkpoint::verify_share(int part, int parts) const {
  for (auto i = static_cast<size_t>(part); i < manifest_.shards.size(); i += static_cast<size_t>(parts))
    ALTIPLANO_RETURN_IF_ERROR(check_shard(path_, manifest_.shards[i], CheckLevel::kChecksums));
  return Status::ok();
}

bool is_misnamed(const Status& refusal) {
  return refusal.code() == StatusCode::kInvalidArgument;  // the one refusal of open() that is somebody's wish
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

Result<FoundCheckpoint> find_checkpoint(const std::string& directory, const std::string& resume, CheckLevel level,
                                        const Excluded& excluded) {
  if (resume == "none") return FoundCheckpoint{};
  ALTIPLANO_RETURN_IF_ERROR(check_permissions(resume == "auto" || resume == "must" ? directory : resume));
  if (resume == "auto") return newest_complete(directory, level, excluded);
  if (resume == "must") return required(newest_complete(directory, level, excluded), directory);
  ALTIPLANO_RETURN_IF_ERROR(check_file_kind(resume, FileKind::kCheckpoint));
  return at_path(resume, level, excluded);
}

Status check_no_other_run(const std::string& directory, const std::string& run_id, bool counts_unreadable) {
  for (const StepFolder& folder : list_step_folders(directory)) {
    auto manifest = read_manifest(folder.path);
    if (manifest ? manifest->info.run_id == run_id : !counts_unreadable) continue;
    return invalid_argument(
        "checkpoint.dir: {} holds {}{}; resume it (train.resume: auto) or use another checkpoint.dir", directory,
        fs::path(folder.path).filename().string(),
        manifest ? " of run " + manifest->info.run_id : ", which cannot be read");
  }
  return Status::ok();
}

}  // namespace altiplano
