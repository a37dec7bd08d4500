#pragma once
// Einsum equation of two operands: "[b,s,d] [d,f] -> [b,s,f]". Also for device kernels.
#include <string>
#include <vector>

#include "framework/base/status.hpp"
#include "framework/graph/dtype.hpp"

namespace altiplano {

struct Einsum {
  std::vector<std::string> a, b, c;  ///< letters per dim
  std::vector<std::string> summed;   ///< in a and b, not in c; in the order of a

  /// Refuses: a letter twice in one operand, a result letter in neither operand, a letter of one operand only that the
  /// result lacks.
  static Result<Einsum> parse(const std::string& equation);
  std::string to_string() const;
};

}  // namespace altiplano
