// Slurm's node lists and counts: bounded results, or a refusal that quotes the text.
#include "schedulers/slurm/nodelist.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace altiplano;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text = fuzz::text_of(data, size);
  if (const auto hosts = slurm::expand_nodelist(text); hosts.is_ok()) {
    fuzz::require(!hosts->empty() && hosts->size() <= slurm::kMostEntries, "between one host and the most");
    for (const auto& host : *hosts)
      fuzz::require(!host.empty() && host.find_first_of("[],") == std::string::npos, "names are plain");
  } else {
    fuzz::require(hosts.status().message().find("column") != std::string::npos, "a refusal names the column");
  }
  if (const auto counts = slurm::expand_counts(text); counts.is_ok())
    for (const int count : *counts) fuzz::require(count > 0, "counts are positive");
  return 0;
}
