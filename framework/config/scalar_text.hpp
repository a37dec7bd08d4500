#pragma once
// Texts of a job file as values: numbers in every form people write, variables of the environment.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.hpp"
#include "framework/options/option.hpp"

namespace altiplano {

/// 3, +3, 20_000, 2e4 (whole numbers only). No 010, which YAML 1.1 reads as 8.
std::optional<int64_t> integer_from_text(const std::string& text);
/// 1e-4, 1E-4, 1.e-4, .5, 20_000, +3; no inf, no nan.
std::optional<double> number_from_text(const std::string& text);

/// A scalar of the type (of a list: of its elements), or nothing.
std::optional<OptionValue> scalar_from_text(OptionType type, const std::string& text);
/// Why a text that looks right is refused: "; write true" for a yes. Empty when there is nothing to say.
std::string scalar_hint(OptionType type, const std::string& text);

using VariableLookup = std::function<std::optional<std::string>(const std::string& name)>;
/// The process environment.
std::optional<std::string> environment_variable(const std::string& name);
/// Replaces ${NAME}, ${NAME:-fallback}, $NAME and a leading ~ (home directory); $$ is a dollar. An unset variable
/// without fallback is refused: no folder is ever called "$SCRATCH".
/// Names of the variables that gave something are appended to `used`.
Result<std::string> expand_variables(const std::string& text, const VariableLookup& lookup,
                                     std::vector<std::string>* used = nullptr);

}  // namespace altiplano
