#include "framework/cost/profile_file.hpp"

#include <filesystem>
#include <fstream>

#include "framework/storage/atomic_file.hpp"
#include "framework/storage/checksum.hpp"

namespace altiplano {

namespace {

constexpr int64_t kMostProfileBytes = int64_t{1} << 28;

std::string seal_of(std::string_view what, std::string_view content) {
  return fmt::format("\naltiplano {} {}\n", what, checksum_text(checksum(content.data(), content.size())));
}

}  // namespace

std::string profile_path(const std::function<std::optional<std::string>(const std::string& name)>& environment,
                         const std::string& name) {
  const std::string cache = environment("XDG_CACHE_HOME").value_or(""), home = environment("HOME").value_or("");
  if (!cache.empty() && cache.front() == '/') return cache + "/altiplano/" + name;
  return home.empty() ? home : home + "/.cache/altiplano/" + name;
}

Status check_profile(const std::string& path, std::string_view what) {
  ALTIPLANO_ASSIGN(const std::string text, read_file(path, kMostProfileBytes));
  const size_t seal_bytes = seal_of(what, "").size();
  if (text.size() < seal_bytes) return runtime_failure("{} is cut short", path);
  const std::string_view content(text.data(), text.size() - seal_bytes);
  if (text.substr(content.size()) != seal_of(what, content)) return runtime_failure("{} is damaged", path);
  return Status::ok();
}

Status write_profile(const std::string& path, std::string_view what, const std::function<Status(Hdf5File&)>& fill) {
  ALTIPLANO_ASSIGN(AtomicFile target, AtomicFile::create_named(path));
  {
    ALTIPLANO_ASSIGN(Hdf5File file, Hdf5File::create(target.temporary_path()));
    ALTIPLANO_RETURN_IF_ERROR(fill(file));
    ALTIPLANO_RETURN_IF_ERROR(file.close());
  }
  ALTIPLANO_ASSIGN(const std::string content, read_file(target.temporary_path(), kMostProfileBytes));
  std::ofstream end(target.temporary_path(), std::ios::binary | std::ios::app);
  end << seal_of(what, content);
  end.close();
  if (!end) return runtime_failure("{} cannot be written", target.temporary_path());
  return target.commit();
}

Result<FileLock> take_turn_at_profile(const std::string& path) {
  constexpr int kTries = 4;  // a lock waits a moment each time
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  for (int i = 1;; ++i) {
    auto lock = FileLock::take(path + ".lock", "profile database");
    if (lock.is_ok() || i == kTries) return lock;
  }
}

}  // namespace altiplano
