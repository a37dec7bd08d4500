#pragma once
// Small covering arrays: few rows in which every legal pair of settings of any two factors occurs. Greedy and
// deterministic, one row at a time, after Cohen et al. 1997, "The AETG system: an approach to testing based on
// combinatorial design", section 3, with the candidates enumerated instead of drawn.
#include <cstddef>
#include <functional>
#include <set>
#include <tuple>
#include <vector>

namespace altiplano::test {

using Row = std::vector<int>;  ///< row[f]: level of factor f
using RowFilter = std::function<bool(const Row&)>;

/// Every row of the full grid that `is_legal` lets pass, the last factor fastest.
inline std::vector<Row> full_grid(const std::vector<int>& levels, const RowFilter& is_legal) {
  std::vector<Row> rows;
  Row row(levels.size(), 0);
  for (bool more = true; more;) {
    if (is_legal(row)) rows.push_back(row);
    more = false;
    for (size_t f = levels.size(); f-- > 0 && !more;) {
      if (++row[f] < levels[f])
        more = true;
      else
        row[f] = 0;
    }
  }
  return rows;
}

using LevelPair = std::tuple<size_t, int, size_t, int>;

inline std::vector<LevelPair> pairs_of(const Row& row) {
  std::vector<LevelPair> pairs;
  for (size_t a = 0; a < row.size(); ++a)
    for (size_t b = a + 1; b < row.size(); ++b) pairs.emplace_back(a, row[a], b, row[b]);
  return pairs;
}

/// Rows of the legal grid that together hold every pair which any legal row holds.
inline std::vector<Row> pairwise_cover(const std::vector<int>& levels, const RowFilter& is_legal) {
  std::vector<Row> grid = full_grid(levels, is_legal), cover;
  std::set<LevelPair> missing;
  for (const Row& row : grid)
    for (const LevelPair& pair : pairs_of(row)) missing.insert(pair);
  while (!missing.empty()) {
    const Row* best = nullptr;
    size_t most = 0;
    for (const Row& row : grid) {
      size_t gain = 0;
      for (const LevelPair& pair : pairs_of(row)) gain += missing.count(pair);
      if (gain > most) most = gain, best = &row;
    }
    cover.push_back(*best);
    for (const LevelPair& pair : pairs_of(*best)) missing.erase(pair);
  }
  return cover;
}

}  // namespace altiplano::test
