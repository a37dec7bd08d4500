// HDF5 files, as shards and token files are: whatever the bytes, an answer or an error that names the file.
#include <vector>

#include "framework/storage/hdf5_file.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace altiplano;

namespace {

constexpr int64_t kLargest = 1 << 20;  // elements: a file may claim any extent

void read_dataset(const Hdf5File& file, const std::string& name) {
  const auto info = file.info(name);
  if (!info.is_ok()) return;
  int64_t count = 1;
  for (const int64_t extent : info->extents) {
    fuzz::require(extent >= 0, "extents are not negative");
    if (extent > kLargest || (count *= extent) > kLargest) return;
  }
  std::vector<char> bytes(static_cast<size_t>(count * size_of(info->type)));
  (void)file.read(name, Extents(info->extents.size(), 0), info->extents, bytes.data());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string path = fuzz::file_with(fuzz::text_of(data, size), "input.h5");
  auto file = Hdf5File::open(path);
  if (!file.is_ok()) {
    fuzz::require(file.status().message().find(path) != std::string::npos, "an error names the file");
    return 0;
  }
  const auto names = file->dataset_names();
  if (names.is_ok())
    for (const auto& name : *names) read_dataset(*file, name);
  (void)file->string_attribute("/", "format");
  (void)file->int_attribute("/", "format_version");
  return 0;
}
