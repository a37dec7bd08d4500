#include "framework/cli/plan_comparison.hpp"

#include <algorithm>

#include "framework/base/text.hpp"
#include "framework/cli/simulation_text.hpp"

namespace altiplano {

namespace {

/// What is compared of one plan.
struct PlanFigures {
  const Job* job = nullptr;
  ProgramSimulation simulation;
  StepParts parts;
  Bytes peak;
};

Result<PlanFigures> figures_of(const Job& job) {
  PlanFigures figures;
  figures.job = &job;
  ALTIPLANO_ASSIGN(figures.simulation, simulate_for(job, job.plan));
  figures.parts = parts_of(figures.simulation);
  figures.peak = *std::ranges::max_element(job.estimate.peak_per_rank);
  return figures;
}

class ComparisonTable {
 public:
  explicit ComparisonTable(const std::vector<PlanFigures>& figures) : figures_(figures) {}

  void row(const std::string& name, const std::function<std::string(const PlanFigures&)>& cell) {
    std::vector<std::string> cells = {name};
    for (const PlanFigures& figures : figures_) cells.push_back(cell(figures));
    rows_.push_back(cells);
  }
  /// Figures, with the difference from the first column's in percent.
  void figure_row(const std::string& name, const std::function<double(const PlanFigures&)>& value,
                  const std::function<std::string(double)>& text) {
    const double first = value(figures_[0]);
    row(name, [&](const PlanFigures& figures) {
      const double own = value(figures);
      if (&figures == &figures_[0] || first == 0) return text(own);
      return fmt::format("{} ({:+.0f} %)", text(own), 100 * (own / first - 1));
    });
  }

  std::string text() const {
    std::vector<size_t> widths(rows_[0].size(), 0);
    for (const auto& cells : rows_)
      for (size_t c = 0; c < cells.size(); ++c) widths[c] = std::max(widths[c], cells[c].size());
    std::string out;
    for (const auto& cells : rows_) {
      std::string line;
      for (size_t c = 0; c < cells.size(); ++c) line += fmt::format("{:<{}}  ", cells[c], widths[c]);
      out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return out;
  }

 private:
  const std::vector<PlanFigures>& figures_;
  std::vector<std::vector<std::string>> rows_;
};

std::string stages_text(const Plan& plan) {
  std::vector<std::string> stages;
  for (const PlanStage& stage : plan.stages) {
    const std::string range =
        stage.layers.size() == 1 ? stage.layers[0] : stage.layers.front() + " .. " + stage.layers.back();
    stages.push_back(range);
  }
  return join(stages, " | ");
}

std::string seconds_text(double seconds) {
  return to_string(Seconds(seconds));
}
std::string bytes_text(double bytes) {
  return to_string(Bytes(static_cast<int64_t>(bytes)));
}

std::string table_of(const std::vector<PlanFigures>& figures, const std::vector<std::string>& names) {
  ComparisonTable table(figures);
  size_t column = 0;
  table.row("", [&](const PlanFigures&) { return names[column++]; });
  auto plan_row = [&](const std::string& name, const std::function<std::string(const Plan&)>& cell) {
    table.row(name, [&](const PlanFigures& f) { return cell(f.job->plan); });
  };
  plan_row("plan", [](const Plan& p) { return plan_summary(p); });
  plan_row("stages", stages_text);
  plan_row("microbatches", [](const Plan& p) { return fmt::format("{} of {}", p.num_microbatches, p.microbatch); });
  plan_row("planner", [](const Plan& p) { return p.planner; });
  table.figure_row(
      "estimated step", [](const PlanFigures& f) { return f.job->plan.predicted.step.value; }, seconds_text);
  table.figure_row(
      "simulated step", [](const PlanFigures& f) { return f.simulation.step.value; }, seconds_text);
  table.figure_row(
      "  computing", [](const PlanFigures& f) { return f.parts.busy.value; }, seconds_text);
  table.figure_row(
      "  exposed", [](const PlanFigures& f) { return f.parts.exposed.value; }, seconds_text);
  table.figure_row(
      "  bubble", [](const PlanFigures& f) { return f.parts.bubble.value; }, seconds_text);
  table.figure_row(
      "fullest rank", [](const PlanFigures& f) { return static_cast<double>(f.peak.value); }, bytes_text);
  const std::vector<Level>& levels = figures[0].job->cluster.levels;
  for (size_t l = 0; l < levels.size(); ++l)
    table.figure_row(
        "sent over " + levels[l].name, [l](const PlanFigures& f) { return f.simulation.sent_per_level[l]; },
        bytes_text);
  return table.text();
}

}  // namespace

Result<std::string> compare_plans(const std::vector<PlanColumn>& columns) {
  std::vector<PlanFigures> figures;
  std::vector<std::string> names;
  std::string text;
  for (const PlanColumn& column : columns) {
    if (!column.job) continue;
    ALTIPLANO_ASSIGN(PlanFigures of_column, figures_of(*column.job));
    figures.push_back(std::move(of_column));
    names.push_back(column.name);
  }
  if (!figures.empty()) text = table_of(figures, names);
  for (const PlanColumn& column : columns)
    if (!column.job) text += fmt::format("{} has no plan: {}\n", column.name, column.refusal);
  return text;
}

}  // namespace altiplano
