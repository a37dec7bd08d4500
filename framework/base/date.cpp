#include "framework/base/date.hpp"

#include <fmt/format.h>

#include <ctime>

namespace altiplano {

std::string date_of_today() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return fmt::format("{:04}-{:02}-{:02}", local.tm_year + 1900, local.tm_mon + 1, local.tm_mday);
}

}  // namespace altiplano
