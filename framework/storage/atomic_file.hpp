#pragma once
// Atomic publish: a reader sees the old content, the new content, or nothing, never half of it, whatever instant the
// writer dies at. Write under a temporary name, fsync, rename, fsync the directory.
#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/status.hpp"

namespace altiplano {

/// A file that appears under its name only when commit() succeeds. The writer writes to temporary_path() (beside
/// `path`, so that the rename stays in one file system) by any means; without commit() the destructor removes it.
/// Movable, owned by one thread.
class AtomicFile {
 public:
  /// Fails when the directory is missing or not writable. Of a symbolic link the file behind it is replaced.
  static Result<AtomicFile> create(const std::string& path);
  /// For a path that a person named: kInvalidArgument when it cannot be written. Removes what writers of the same file
  /// have left that were killed on this host.
  static Result<AtomicFile> create_named(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();

  const std::string& path() const { return path_; }
  const std::string& temporary_path() const { return temporary_; }
  /// fsync, rename over `path`, fsync the directory.
  Status commit();

 private:
  AtomicFile() = default;
  static Result<AtomicFile> create(const std::string& path, bool is_named);
  void discard() noexcept;
  std::string path_, temporary_;
};

/// Where a writer of this process writes what will be `path`.
std::string temporary_name(const std::string& path);

Status write_file_atomically(const std::string& path, std::string_view content);
/// The same for a path that a person named (AtomicFile::create_named).
Status write_named_file(const std::string& path, std::string_view content);
Status sync_file(const std::string& path);
Status sync_directory(const std::string& path);
/// Syncs `from` itself (the files in it were synced by their writers), renames it to `to`, syncs the parent. Fails when
/// `to` exists.
Status publish_directory(const std::string& from, const std::string& to);
/// Swaps what two names of one folder mean, in one instant, and syncs that folder. False: this file system cannot.
Result<bool> exchange(const std::string& a, const std::string& b);
/// Whole file as text; only of regular files, so that nothing is waited for and nothing is endless. The message has the
/// path and the system's reason.
Result<std::string> read_file(const std::string& path, int64_t most_bytes = int64_t{1} << 30);
/// `bytes` bytes from `offset` on, all of them or a failure.
Status read_file_range(const std::string& path, int64_t offset, void* data, size_t bytes);

}  // namespace altiplano
