#pragma once
// How well predictions agree with what was measured: errors and the order of rows.
#include <algorithm>
#include <cmath>
#include <vector>

namespace altiplano::test {

/// One row's prediction beside its measurement, in seconds.
struct Predicted {
  double measured = 0, predicted = 0;
  double error() const { return predicted / measured - 1; }  ///< above 0: predicted too long
};

inline double mean_absolute_error(const std::vector<Predicted>& rows) {
  double sum = 0;
  for (const Predicted& row : rows) sum += std::abs(row.error());
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

inline double mean_error(const std::vector<Predicted>& rows) {
  double sum = 0;
  for (const Predicted& row : rows) sum += row.error();
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

/// Kendall's tau-b: pairs in the same order less pairs in the other one, by all pairs that are no ties.
inline double kendall_tau(const std::vector<Predicted>& rows) {
  double same = 0, measured_pairs = 0, predicted_pairs = 0;
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t j = i + 1; j < rows.size(); ++j) {
      const double a = rows[i].measured - rows[j].measured, b = rows[i].predicted - rows[j].predicted;
      measured_pairs += a != 0 ? 1 : 0;
      predicted_pairs += b != 0 ? 1 : 0;
      same += a * b > 0 ? 1 : a * b < 0 ? -1 : 0;
    }
  const double pairs = std::sqrt(measured_pairs * predicted_pairs);
  return pairs > 0 ? same / pairs : 1;
}

/// How much longer the row that is predicted to be the fastest takes than the fastest one, measured.
inline double regret(const std::vector<Predicted>& rows) {
  const auto chosen = std::ranges::min_element(rows, {}, &Predicted::predicted);
  const auto best = std::ranges::min_element(rows, {}, &Predicted::measured);
  return rows.empty() ? 0 : chosen->measured / best->measured - 1;
}

}  // namespace altiplano::test
