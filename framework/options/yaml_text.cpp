#include "framework/options/yaml_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace altiplano {
namespace {

bool is_plain(const std::string& text) {
  const auto is_safe = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_./-").find(c) != std::string_view::npos;
  };
  if (text.empty() || text[0] == '-' || !std::ranges::all_of(text, is_safe)) return false;
  return text != "null" && text != "NULL" && text != "Null";
}

std::string escaped(char c) {
  if (c == '"' || c == '\\') return {'\\', c};
  if (c == '\n') return "\\n";
  if (c == '\t') return "\\t";
  const auto code = static_cast<unsigned char>(c);
  return code < 0x20 || code == 0x7f ? fmt::format("\\x{:02x}", code) : std::string(1, c);
}

}  // namespace

std::string yaml_text(const std::string& text) {
  return is_plain(text) ? text : yaml_quoted(text);
}

std::string yaml_quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) out += escaped(c);
  return out + "\"";
}

}  // namespace altiplano
