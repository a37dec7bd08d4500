// Checkpoints with a shard replaced by any bytes: found out before the shard is read as HDF5, and named.
#include <filesystem>

#include "framework/checkpoint/restore.hpp"
#include "framework/storage/atomic_file.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace altiplano;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::filesystem::path original =
      std::filesystem::path(ALTIPLANO_SOURCE_DIR) / "tests/fixtures/checkpoint_v1/step-00000120";
  static const std::string shard = "rank-0000.h5";
  static const std::string good = read_file((original / shard).string()).value();
  static const std::string folder = [] {
    const auto target = std::filesystem::path(fuzz::file_with("", "step/marker")).parent_path();
    std::filesystem::copy(original, target,
                          std::filesystem::copy_options::overwrite_existing | std::filesystem::copy_options::recursive);
    std::filesystem::remove(target / "marker");
    return target.string();
  }();
  const std::string bytes = fuzz::text_of(data, size);
  fuzz::file_with(bytes, "step/" + shard);
  const auto checkpoint = Checkpoint::open(folder, CheckLevel::kChecksums);
  fuzz::require(checkpoint.is_ok() == (bytes == good), "only the shard that was written is accepted");
  if (!checkpoint.is_ok())
    fuzz::require(checkpoint.status().message().find(shard) != std::string::npos, "the damaged shard is named");
  return 0;
}
