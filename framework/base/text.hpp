#pragma once
// Small text helpers: split, trim, join, edit distance for did-you-mean.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace altiplano {

std::vector<std::string> split(std::string_view text, char separator);
std::string trim(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
/// Whole-string integer; nothing when there is anything else in the text or it does not fit.
std::optional<int64_t> parse_int(std::string_view text);
std::optional<double> parse_double(std::string_view text);
/// "1,234,567"
std::string with_thousands(int64_t number);
/// The candidate closest to `word` by edit distance, if close enough to suggest.
std::optional<std::string> did_you_mean(std::string_view word, const std::vector<std::string>& candidates);
/// Glob with `*` (any run of characters) over the whole text.
bool glob_match(std::string_view pattern, std::string_view text);
/// 64-bit FNV-1a, stable across machines: fingerprints of text forms.
uint64_t fingerprint(std::string_view text);

}  // namespace altiplano
