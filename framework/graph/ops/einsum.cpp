#include "framework/graph/ops/einsum.hpp"

#include <algorithm>

#include "framework/base/text.hpp"

namespace altiplano {
namespace {

bool contains(const std::vector<std::string>& letters, const std::string& letter) {
  return std::find(letters.begin(), letters.end(), letter) != letters.end();
}

/// The bracketed lists of "[b,s] [s,d]".
Result<std::vector<std::vector<std::string>>> parse_operands(const std::string& text) {
  std::vector<std::vector<std::string>> operands;
  for (size_t open = text.find('['); open != std::string::npos; open = text.find('[', open + 1)) {
    size_t close = text.find(']', open);
    if (close == std::string::npos) return invalid_argument("'{}': a bracket is not closed", trim(text));
    std::vector<std::string> letters;
    std::string inside = trim(text.substr(open + 1, close - open - 1));
    if (!inside.empty())
      for (const std::string& letter : split(inside, ',')) letters.push_back(trim(letter));
    for (size_t i = 0; i < letters.size(); ++i) {
      if (letters[i].empty()) return invalid_argument("'{}': a letter is missing", trim(text));
      if (std::count(letters.begin(), letters.end(), letters[i]) > 1)
        return invalid_argument("'{}': letter {} stands twice in one operand", trim(text), letters[i]);
    }
    operands.push_back(std::move(letters));
  }
  return operands;
}

std::string list(const std::vector<std::string>& letters) {
  return "[" + join(letters, ",") + "]";
}

}  // namespace

Result<Einsum> Einsum::parse(const std::string& equation) {
  size_t arrow = equation.find("->");
  if (arrow == std::string::npos) return invalid_argument("equation '{}' has no '->'", equation);
  ALTIPLANO_ASSIGN(auto inputs, parse_operands(equation.substr(0, arrow)));
  ALTIPLANO_ASSIGN(auto outputs, parse_operands(equation.substr(arrow + 2)));
  if (inputs.size() != 2 || outputs.size() != 1)
    return invalid_argument("equation '{}' must read '[..] [..] -> [..]', it has {} operands and {} results", equation,
                            inputs.size(), outputs.size());
  Einsum einsum{inputs[0], inputs[1], outputs[0], {}};
  for (const std::string& letter : einsum.c)
    if (!contains(einsum.a, letter) && !contains(einsum.b, letter))
      return invalid_argument("equation '{}': result letter {} is in no operand", equation, letter);
  for (const auto* operand : {&einsum.a, &einsum.b})
    for (const std::string& letter : *operand) {
      if (contains(einsum.c, letter)) continue;
      if (!contains(einsum.a, letter) || !contains(einsum.b, letter))
        return invalid_argument(
            "equation '{}': letter {} is in one operand only and not in the result; sum it with reduce_sum", equation,
            letter);
      if (operand == &einsum.a) einsum.summed.push_back(letter);
    }
  return einsum;
}

std::string Einsum::to_string() const {
  return list(a) + " " + list(b) + " -> " + list(c);
}

}  // namespace altiplano
