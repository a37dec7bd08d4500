#include "nodelist.hpp"

#include <algorithm>
#include <charconv>

namespace altiplano::slurm {
namespace {

/// A place in a text, for reading forwards and for messages.
class Cursor {
 public:
  Cursor(std::string_view text, const char* what) : text_(text), what_(what) {}

  bool at_end() const { return at_ == text_.size(); }
  bool sees(char c) const { return !at_end() && text_[at_] == c; }
  bool take(char c) {
    if (!sees(c)) return false;
    ++at_;
    return true;
  }
  std::string_view take_until(std::string_view stops) {
    const size_t start = at_;
    at_ = std::min(text_.find_first_of(stops, at_), text_.size());
    return text_.substr(start, at_ - start);
  }
  /// Digits as text; empty when there are none.
  std::string_view take_digits() {
    const size_t start = at_;
    at_ = std::min(text_.find_first_not_of("0123456789", at_), text_.size());
    return text_.substr(start, at_ - start);
  }
  Status refuse(std::string_view why) const {
    return invalid_argument("{} '{}', column {}: {}", what_, text_, at_ + 1, why);
  }

 private:
  std::string_view text_;
  const char* what_;
  size_t at_ = 0;
};

/// At most nine digits, so that no sum or width leaves an int.
Result<int> number(const Cursor& cursor, std::string_view digits) {
  int value = 0;
  if (digits.empty()) return cursor.refuse("expected a number");
  if (digits.size() > 9) return cursor.refuse("expected a number of at most nine digits");
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

Status check_length(const Cursor& cursor, size_t entries) {
  if (entries <= kMostEntries) return Status::ok();
  return cursor.refuse(fmt::format("more than {} entries", kMostEntries));
}

/// One range of a bracket: "7", "1-3", "007-010".
Status read_range(Cursor& cursor, std::vector<std::string>& names) {
  const std::string_view first_text = cursor.take_digits();
  ALTIPLANO_ASSIGN(const int first, number(cursor, first_text));
  int last = first;
  if (cursor.take('-')) {
    ALTIPLANO_ASSIGN(last, number(cursor, cursor.take_digits()));
    if (last < first) return cursor.refuse(fmt::format("the range falls from {} to {}", first, last));
  }
  ALTIPLANO_RETURN_IF_ERROR(check_length(cursor, names.size() + static_cast<size_t>(last - first) + 1));
  const size_t width = first_text.front() == '0' ? first_text.size() : 1;
  for (int value = first; value <= last; ++value) names.push_back(fmt::format("{:0{}}", value, width));
  return Status::ok();
}

/// After "[": the numbers up to and with "]".
Result<std::vector<std::string>> read_bracket(Cursor& cursor) {
  std::vector<std::string> numbers;
  do {
    ALTIPLANO_RETURN_IF_ERROR(read_range(cursor, numbers));
  } while (cursor.take(','));
  if (!cursor.take(']')) return cursor.refuse("expected ',' or ']'");
  return numbers;
}

Result<std::vector<std::string>> combined(const Cursor& cursor, const std::vector<std::string>& starts,
                                          const std::vector<std::string>& ends) {
  ALTIPLANO_RETURN_IF_ERROR(check_length(cursor, starts.size() * ends.size()));
  std::vector<std::string> all;
  for (const auto& start : starts)
    for (const auto& end : ends) all.push_back(start + end);
  return all;
}

/// One name with its brackets, up to a comma outside them.
Result<std::vector<std::string>> read_name(Cursor& cursor) {
  std::vector<std::string> names = {""};
  while (!cursor.at_end() && !cursor.sees(',')) {
    const std::string plain(cursor.take_until("[],"));
    for (auto& name : names) name += plain;
    if (cursor.sees(']')) return cursor.refuse("']' without '['");
    if (!cursor.take('[')) continue;
    ALTIPLANO_ASSIGN(const auto numbers, read_bracket(cursor));
    ALTIPLANO_ASSIGN(names, combined(cursor, names, numbers));
  }
  if (names.front().empty()) return cursor.refuse("expected a host's name");
  return names;
}

}  // namespace

Result<std::vector<std::string>> expand_nodelist(std::string_view text, const char* what) {
  Cursor cursor(text, what);
  std::vector<std::string> hosts;
  do {
    ALTIPLANO_ASSIGN(auto names, read_name(cursor));
    ALTIPLANO_RETURN_IF_ERROR(check_length(cursor, hosts.size() + names.size()));
    hosts.insert(hosts.end(), names.begin(), names.end());
  } while (cursor.take(','));
  return hosts;
}

Result<std::vector<int>> expand_counts(std::string_view text, const char* what) {
  Cursor cursor(text, what);
  std::vector<int> counts;
  do {
    ALTIPLANO_ASSIGN(const int count, number(cursor, cursor.take_digits()));
    int times = 1;
    if (cursor.take('(')) {
      if (!cursor.take('x')) return cursor.refuse("expected 'x', as in 4(x2)");
      ALTIPLANO_ASSIGN(times, number(cursor, cursor.take_digits()));
      if (!cursor.take(')')) return cursor.refuse("expected ')', as in 4(x2)");
    }
    if (count < 1 || times < 1) return cursor.refuse("expected numbers from 1 on");
    ALTIPLANO_RETURN_IF_ERROR(check_length(cursor, counts.size() + static_cast<size_t>(times)));
    counts.insert(counts.end(), static_cast<size_t>(times), count);
  } while (cursor.take(','));
  if (!cursor.at_end()) return cursor.refuse("expected ',' or the end");
  return counts;
}

}  // namespace altiplano::slurm
