// Sharding specs: what is read prints a text that is read as the same spec.
#include "framework/sharding/spec.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace altiplano;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto spec = ShardingSpec::parse(fuzz::text_of(data, size));
  if (!spec.is_ok()) return 0;
  const auto again = ShardingSpec::parse(spec->to_string());
  fuzz::require(again.is_ok() && *again == *spec, "a spec's text reads back as the same spec");
  return 0;
}
