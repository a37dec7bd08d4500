// Cluster files: what is accepted has numbers that costs can be computed from.
#include "framework/cluster/cluster.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace altiplano;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto cluster = Cluster::from_yaml(fuzz::text_of(data, size), "cluster.yaml");
  if (cluster.is_ok())
    fuzz::require(cluster->verify().is_ok(), "a cluster that was read passes its own rules");
  else
    fuzz::require(cluster.status().message().find("cluster.yaml") != std::string::npos, "an error names the file");
  return 0;
}
