// Manifests and shard records of checkpoints: what is read prints a text that is read as the same manifest.
#include "framework/checkpoint/manifest.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace altiplano;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text = fuzz::text_of(data, size);
  if (const auto manifest = Manifest::from_json(text, "manifest.json"); manifest.is_ok()) {
    const auto again = Manifest::from_json(manifest->to_json(), "again.json");
    fuzz::require(again.is_ok() && again->to_json() == manifest->to_json(), "a manifest reads back as the same");
  } else {
    fuzz::require(manifest.status().message().find("manifest.json") != std::string::npos, "an error names the file");
  }
  (void)shard_from_json(text, "rank-0000.json");
  return 0;
}
