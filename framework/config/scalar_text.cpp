#include "framework/config/scalar_text.hpp"

#include <cctype>
#include <cmath>
#include <cstdlib>

#include "framework/base/text.hpp"

namespace altiplano {
namespace {

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Without a plus sign and without underscores between digits; nothing when a character has no place in a number.
std::optional<std::string> plain_number(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '_') {
      if (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) || !is_digit(text[i + 1])) return std::nullopt;
    } else if (is_digit(c) || std::string_view("eE.-").find(c) != std::string_view::npos) {
      out += c;
    } else if (c != '+' || text.size() == 1) {
      return std::nullopt;
    } else if (i > 0 && (text[i - 1] == 'e' || text[i - 1] == 'E')) {
      continue;
    } else if (i > 0 || text[1] == '-' || text[1] == '+') {
      return std::nullopt;
    }
  }
  return out;
}

bool has_leading_zero(const std::string& number) {
  size_t first = number.starts_with('-') ? 1 : 0;
  return number.size() > first + 1 && number[first] == '0' && is_digit(number[first + 1]);
}

std::optional<bool> bool_from_text(const std::string& text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// One `$...` of a text, at `position`; moves behind it.
Result<std::string> expand_one(const std::string& text, size_t& position, const VariableLookup& lookup,
                               std::vector<std::string>& used) {
  size_t start = position + 1;
  if (start < text.size() && text[start] == '$') {
    position += 2;
    return std::string("$");
  }
  bool braced = start < text.size() && text[start] == '{';
  size_t end = start + (braced ? 1 : 0);
  const size_t name_start = end;
  while (end < text.size() && is_name_character(text[end])) ++end;
  const std::string name = text.substr(name_start, end - name_start);
  if (!braced && name.empty()) {
    position = start;
    return std::string("$");
  }
  std::optional<std::string> fallback;
  if (braced) {
    size_t close = text.find('}', end);
    bool has_fallback = text.compare(end, 2, ":-") == 0;
    if (close == std::string::npos || name.empty() || (!has_fallback && close != end)) {
      return invalid_argument("cannot read {}; write ${{NAME}} or ${{NAME:-fallback}}", text.substr(position));
    }
    if (has_fallback) fallback = text.substr(end + 2, close - end - 2);
    end = close + 1;
  }
  position = end;
  auto value = lookup(name);
  if (value && !(value->empty() && fallback)) {
    used.push_back(name);
    return *value;
  }
  if (fallback) return *fallback;
  return invalid_argument("variable {} is not set; set it or write ${{{}:-fallback}}", name, name);
}

}  // namespace

std::optional<int64_t> integer_from_text(const std::string& text) {
  auto number = plain_number(text);
  if (!number || has_leading_zero(*number)) return std::nullopt;
  if (auto integer = parse_int(*number)) return integer;
  if (number->find_first_of("eE") == std::string::npos) return std::nullopt;
  auto real = parse_double(*number);
  if (!real || std::trunc(*real) != *real || std::abs(*real) > 9007199254740992.0) return std::nullopt;
  return static_cast<int64_t>(*real);
}

std::optional<double> number_from_text(const std::string& text) {
  auto number = plain_number(text);
  return number ? parse_double(*number) : std::nullopt;
}

std::optional<OptionValue> scalar_from_text(OptionType type, const std::string& text) {
  auto as_value = [](const auto& value) { return value ? std::optional<OptionValue>(*value) : std::nullopt; };
  switch (type) {
    case OptionType::kBool:
      return as_value(bool_from_text(text));
    case OptionType::kInt:
    case OptionType::kIntList:
      return as_value(integer_from_text(text));
    case OptionType::kFloat:
    case OptionType::kFloatList:
      return as_value(number_from_text(text));
    default:
      return OptionValue(text);
  }
}

std::string scalar_hint(OptionType type, const std::string& text) {
  const std::string word = lower(text);
  if (type == OptionType::kBool) {
    if (word == "yes" || word == "on" || word == "y" || word == "1") return "; write true";
    if (word == "no" || word == "off" || word == "n" || word == "0") return "; write false";
  }
  bool number = type != OptionType::kString && type != OptionType::kStringList;
  bool integer = type == OptionType::kInt || type == OptionType::kIntList;
  auto digits = plain_number(text);
  if (integer && digits &&
      digits->find_first_not_of("0123456789", digits->starts_with('-') ? 1 : 0) == std::string::npos &&
      digits->size() > 18 && !parse_int(*digits))
    return digits->starts_with('-') ? "; it is below -2^63" : "; it does not fit into 64 bits: the largest is 2^63-1";
  if (!integer && number && digits && !parse_double(*digits) && digits->find_first_of("eE") != std::string::npos)
    return "; too large or too small for a number of 64 bits";
  if (number && has_leading_zero(text) && parse_int(text))
    return "; leading zeros are read differently by different tools";
  return {};
}

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Result<std::string> expand_variables(const std::string& text, const VariableLookup& lookup,
                                     std::vector<std::string>* used) {
  std::string out;
  std::vector<std::string> names;
  size_t position = 0;
  if (text == "~" || text.starts_with("~/")) {
    auto home = lookup("HOME");
    if (!home) return invalid_argument("~ needs the variable HOME, which is not set");
    out = *home;
    position = 1;
    names.push_back("HOME");
  }
  while (position < text.size()) {
    if (text[position] != '$') {
      out += text[position++];
      continue;
    }
    ALTIPLANO_ASSIGN(std::string part, expand_one(text, position, lookup, names));
    out += part;
  }
  if (used != nullptr) used->insert(used->end(), names.begin(), names.end());
  return out;
}

}  // namespace altiplano
