#include "framework/launch/openmp_waiting.hpp"

#include <cstdlib>

namespace altiplano {

void bound_openmp_waiting() {
  constexpr const char* kSpins = "1000";  // some ten microseconds; plugins/devices/cpu/README.md has the measurement
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", kSpins, /*overwrite=*/0);
}

}  // namespace altiplano
