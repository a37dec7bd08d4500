#include "framework/checkpoint/lease.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "framework/base/text.hpp"
#include "framework/storage/atomic_file.hpp"

namespace altiplano {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLeasePrefix = ".lease-";

std::string lease_path(const std::string& directory, int64_t epoch) {
  return fmt::format("{}/{}{}", directory, kLeasePrefix, epoch);
}

std::vector<int64_t> epochs_in(const std::string& directory) {
  std::vector<int64_t> epochs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kLeasePrefix)) continue;
    if (const auto epoch = parse_int(name.substr(kLeasePrefix.size()))) epochs.push_back(*epoch);
  }
  return epochs;
}

int64_t highest(const std::vector<int64_t>& epochs) {
  int64_t result = 0;
  for (const int64_t epoch : epochs) result = std::max(result, epoch);
  return result;
}

/// Exclusive creation, where a file system has no links.
bool create_exclusively(const std::string& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return false;
  const ssize_t written = ::write(file, text.data(), text.size());
  ::close(file);
  return written >= 0;
}

/// False: somebody else has this number.
Result<bool> grant(const std::string& draft, const std::string& path, const std::string& text) {
  if (::link(draft.c_str(), path.c_str()) == 0) return true;
  if (errno == EEXIST) return false;
  const int error = errno;
  if (create_exclusively(path, text)) return true;
  if (errno == EEXIST) return false;
  return runtime_failure("{}: cannot be made: {}", path, std::strerror(error));
}

/// The next number, which is the highest once it is taken: one that was removed behind a later start is no longer free.
Result<bool> take_highest(const std::string& directory, const std::string& draft, const std::string& text,
                          int64_t least, int64_t& epoch) {
  std::error_code ignored;
  for (;;) {
    epoch = std::max(least, highest(epochs_in(directory)) + 1);
    const std::string path = lease_path(directory, epoch);
    const Result<bool> granted = grant(draft, path, text);
    if (!granted.is_ok()) return granted;
    if (!*granted) continue;
    if (highest(epochs_in(directory)) == epoch) return granted;
    fs::remove(path, ignored);
  }
}

}  // namespace

Result<EpochLease> EpochLease::take(const std::string& directory, const std::string& owner, int64_t least) {
  static std::atomic<int> num_drafts = 0;
  const std::string draft = fmt::format("{}-{}", temporary_name(directory + "/.lease"), ++num_drafts);
  const std::string text = owner + "\n";
  ALTIPLANO_RETURN_IF_ERROR(write_file_atomically(draft, text));
  int64_t epoch = 0;
  const Result<bool> granted = take_highest(directory, draft, text, least, epoch);
  std::error_code ignored;
  fs::remove(draft, ignored);
  ALTIPLANO_RETURN_IF_ERROR(granted.status());
  ALTIPLANO_RETURN_IF_ERROR(sync_directory(directory));
  for (const int64_t older : epochs_in(directory))
    if (older < epoch) fs::remove(lease_path(directory, older), ignored);
  return EpochLease(directory, epoch);
}

Status EpochLease::check() const {
  const int64_t now = highest(epochs_in(directory_));
  if (now == epoch_ || now == 0) return Status::ok();  // 0: the folder was emptied, and nobody has come since
  if (now < epoch_)
    return {StatusCode::kCancelled, fmt::format("{}: is gone, so nobody knows whose turn it is; this start saves "
                                                "nothing more",
                                                lease_path(directory_, epoch_))};
  const auto owner = read_file(lease_path(directory_, now));
  return {StatusCode::kCancelled,
          fmt::format("{}: start {} of the run ({}) has taken over from this one, start {}, which saves nothing more",
                      directory_, now, owner.is_ok() ? trim(*owner) : "unknown", epoch_)};
}

}  // namespace altiplano
