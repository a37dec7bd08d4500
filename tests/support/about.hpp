#pragma once
#include <boost/test/unit_test.hpp>

namespace altiplano::test {

/// Equal but for rounding.
inline auto about(double relative = 1e-12) {
  return boost::test_tools::tolerance(relative);
}

}  // namespace altiplano::test
