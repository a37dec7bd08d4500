#pragma once
#include <string>

namespace altiplano {

/// A text as a YAML scalar that reads back as the same text, on one line: plain where that is safe, else double-quoted.
std::string yaml_text(const std::string& text);
/// The same, double-quoted in any case.
std::string yaml_quoted(const std::string& text);

}  // namespace altiplano
