#include "framework/launch/openmp_waiting.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <string>

using namespace altiplano;

namespace {

/// GOMP_SPINCOUNT after the call in an environment of these two; "unset" for nullptr.
std::string spins_with(const char* policy, const char* spins) {
  policy == nullptr ? unsetenv("OMP_WAIT_POLICY") : setenv("OMP_WAIT_POLICY", policy, 1);
  spins == nullptr ? unsetenv("GOMP_SPINCOUNT") : setenv("GOMP_SPINCOUNT", spins, 1);
  bound_openmp_waiting();
  const char* now = std::getenv("GOMP_SPINCOUNT");
  const std::string text = now == nullptr ? "unset" : now;
  unsetenv("OMP_WAIT_POLICY");
  unsetenv("GOMP_SPINCOUNT");
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(openmp_spins_for_a_bounded_time_unless_the_user_has_said_how_it_waits) {
  const std::string ours = spins_with(nullptr, nullptr);
  BOOST_TEST(ours != "unset");
  BOOST_TEST(std::stoll(ours) < 300'000);  // libgomp's own
  BOOST_TEST(spins_with(nullptr, "7") == "7");
  BOOST_TEST(spins_with("active", nullptr) == "unset");
  BOOST_TEST(spins_with("passive", "9") == "9");
}
