#include "framework/solve/cbc.hpp"

#include <coin/Cbc_C_Interface.h>

#include <algorithm>
#include <cmath>
#include <memory>

namespace altiplano {

namespace {

/// Columns in CBC's compressed form; rows by their bounds.
class IntegerProgram {
 public:
  explicit IntegerProgram(const ChoiceProblem& problem) {
    for (const auto& costs : problem.nodes) {
      first_column_.push_back(num_columns());
      const int row = add_row(1, 1);
      for (double cost : costs) add_column(cost, {{row, 1}});
    }
    num_binaries_ = num_columns();
    add_limits(problem);
    for (const ChoiceEdge& edge : problem.edges) add_edge(problem, edge);
  }

  int num_columns() const { return static_cast<int>(costs_.size()); }
  int num_binaries() const { return num_binaries_; }
  int column_of(int node, int choice) const { return first_column_[to_index(node)] + choice; }

  void load(Cbc_Model* model) const {
    std::vector<CoinBigIndex> starts;
    std::vector<int> rows;
    std::vector<double> values;
    for (const auto& column : columns_) {
      starts.push_back(static_cast<CoinBigIndex>(rows.size()));
      for (const auto& [row, value] : column) {
        rows.push_back(row);
        values.push_back(value);
      }
    }
    starts.push_back(static_cast<CoinBigIndex>(rows.size()));
    const std::vector<double> zeros(costs_.size(), 0);
    Cbc_loadProblem(model, num_columns(), static_cast<int>(row_low_.size()), starts.data(), rows.data(), values.data(),
                    zeros.data(), column_high_.data(), costs_.data(), row_low_.data(), row_high_.data());
    for (int column = 0; column < num_binaries_; ++column) Cbc_setInteger(model, column);
  }

 private:
  int add_row(double low, double high) {
    row_low_.push_back(low);
    row_high_.push_back(high);
    return static_cast<int>(row_low_.size()) - 1;
  }
  /// What is forbidden is held at 0.
  void add_column(double cost, std::vector<std::pair<int, double>> entries) {
    costs_.push_back(cost == kForbidden ? 0 : cost);
    column_high_.push_back(cost == kForbidden ? 0 : 1);
    columns_.push_back(std::move(entries));
  }
  void add_limits(const ChoiceProblem& problem) {
    for (const LimitRow& limit : problem.rows) {
      const int row = add_row(-kForbidden, limit.limit);
      for (const LimitTerm& term : limit.terms)
        for (size_t k = 0; k < term.use.size(); ++k)
          if (term.use[k] != 0)
            columns_[to_index(first_column_[to_index(term.node)]) + k].emplace_back(row, term.use[k]);
    }
  }
  void add_edge(const ChoiceProblem& problem, const ChoiceEdge& edge) {
    std::vector<int> rows_a, rows_b;
    for (int k = 0; k < problem.num_choices(edge.a); ++k) rows_a.push_back(tie(edge.a, k));
    for (int k = 0; k < problem.num_choices(edge.b); ++k) rows_b.push_back(tie(edge.b, k));
    for (size_t i = 0; i < rows_a.size(); ++i)
      for (size_t j = 0; j < rows_b.size(); ++j)
        add_column(edge.costs[i * rows_b.size() + j], {{rows_a[i], 1}, {rows_b[j], 1}});
  }
  /// A row: the pairs with this choice sum up to the choice.
  int tie(int node, int choice) {
    const int row = add_row(0, 0);
    columns_[to_index(column_of(node, choice))].emplace_back(row, -1);
    return row;
  }

  std::vector<int> first_column_;
  int num_binaries_ = 0;
  std::vector<double> costs_, column_high_, row_low_, row_high_;
  std::vector<std::vector<std::pair<int, double>>> columns_;
};

void set_start(Cbc_Model* model, const IntegerProgram& program, const ChoiceProblem& problem,
               const std::vector<int>& start) {
  std::vector<int> columns;
  std::vector<double> values;
  for (int v = 0; v < static_cast<int>(problem.nodes.size()); ++v)
    for (int k = 0; k < problem.num_choices(v); ++k) {
      columns.push_back(program.column_of(v, k));
      values.push_back(start[to_index(v)] == k ? 1 : 0);
    }
  Cbc_setMIPStartI(model, static_cast<int>(columns.size()), columns.data(), values.data());
}

std::vector<int> choices_of(const double* solution, const IntegerProgram& program, const ChoiceProblem& problem) {
  std::vector<int> choices;
  for (int v = 0; v < static_cast<int>(problem.nodes.size()); ++v) {
    const double* first = solution + program.column_of(v, 0);
    choices.push_back(static_cast<int>(std::max_element(first, first + problem.num_choices(v)) - first));
  }
  return choices;
}

}  // namespace

int64_t cbc_variables(const ChoiceProblem& problem) {
  int64_t number = 0;
  for (const auto& node : problem.nodes) number += static_cast<int64_t>(node.size());
  for (const ChoiceEdge& edge : problem.edges) number += static_cast<int64_t>(edge.costs.size());
  return number;
}

SearchOutcome least_cost_by_cbc(const ChoiceProblem& problem, const SearchLimits& limits,
                                const std::vector<int>& start) {
  SearchOutcome outcome;
  if (!start.empty()) {
    outcome.choices = start;
    outcome.value = cost_of(problem, start);
  }
  const double seconds = std::chrono::duration<double>(limits.deadline - Relaxation::Clock::now()).count();
  if (seconds <= 0) return outcome;
  const IntegerProgram program(problem);
  const std::unique_ptr<Cbc_Model, void (*)(Cbc_Model*)> model(Cbc_newModel(), Cbc_deleteModel);
  Cbc_setLogLevel(model.get(), 0);
  program.load(model.get());
  Cbc_setMaximumSeconds(model.get(), seconds);
  Cbc_setAllowableFractionGap(model.get(), limits.gap);
  Cbc_setAllowableGap(model.get(), 0);
  if (!start.empty()) set_start(model.get(), program, problem, start);
  Cbc_solve(model.get());
  if (Cbc_isProvenInfeasible(model.get())) {
    if (start.empty()) outcome.bound = kForbidden;
    return outcome;
  }
  outcome.bound = Cbc_getBestPossibleObjValue(model.get());
  if (const double* solution = Cbc_bestSolution(model.get())) {
    auto choices = choices_of(solution, program, problem);
    const double value = cost_of(problem, choices);
    if (value < outcome.value && is_within_limits(problem, choices)) {
      outcome.value = value;
      outcome.choices = std::move(choices);
    }
  }
  if (Cbc_isProvenOptimal(model.get()))
    outcome.bound = std::max(outcome.bound, outcome.value - limits.gap * std::abs(outcome.value));
  outcome.bound = std::min(outcome.bound, outcome.value);
  return outcome;
}

}  // namespace altiplano
