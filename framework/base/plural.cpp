#include "framework/base/plural.hpp"

#include "framework/base/text.hpp"

namespace altiplano {

std::string plural(int64_t count, std::string_view one, std::string_view many) {
  if (count == 1) return std::string(one);
  return many.empty() ? std::string(one) + "s" : std::string(many);
}

std::string counted(int64_t count, std::string_view one, std::string_view many) {
  return with_thousands(count) + " " + plural(count, one, many);
}

}  // namespace altiplano
