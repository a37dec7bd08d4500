// Prints how long planning takes: of published models from job file to proved plan, by depth and by kinds of layers;
// then what the planners' solver takes on graphs like those of sharding problems: nodes of 8 to 12 choices, costs along
// edges, without and with one row for memory. One line per problem; the last column compares with CBC where asked for.
//
//   planning [--models | --depths | --solver] [--cbc SECONDS] [nodes...]
//
// All by default; nodes: 50 100 200 400 800.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "framework/base/console.hpp"
#include "framework/solve/solve.hpp"
#include "tests/bench/planning/models.hpp"
#include "tests/support/choice_problems.hpp"

namespace {

using namespace altiplano;
using namespace altiplano::test;

struct Timed {
  Solution solution;
  double seconds;
};

Timed timed_solve(const ChoiceProblem& problem, const SolveOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  Solution solution = solve(problem, options);
  return {std::move(solution), std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
}

void print_line(const char* graph, int nodes, int rows, uint64_t seed, double cbc_seconds) {
  static const std::vector<std::pair<std::string, ProblemGraph>> kinds = {
      {"chain", ProblemGraph::kChain}, {"transformer", ProblemGraph::kTransformer}, {"random", ProblemGraph::kRandom}};
  const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.first == graph; });
  RandomProblem want{kind->second, nodes, 8, 12};
  want.rows = rows;
  want.tightness = 0.3;
  const ChoiceProblem problem = random_problem(want, seed);
  SolveOptions options;
  options.back_end = SolveBackEnd::kOwn;
  const auto [own, seconds] = timed_solve(problem, options);
  std::string line =
      fmt::format("{:12} nodes {:4}  rows {}  width {}  {:10} {:9.2f} ms  gap {:.4f} %  branches {}", graph, nodes,
                  rows, own.width, to_string(own.kind), 1e3 * seconds, 100 * own.gap(), own.num_branches);
  if (cbc_seconds > 0) {
    options.back_end = SolveBackEnd::kCbc;
    options.time = Seconds(cbc_seconds);
    const auto [cbc, cbc_time] = timed_solve(problem, options);
    line += fmt::format("  cbc {} {:.2f} s, cost ratio {:.5f}", to_string(cbc.kind), cbc_time, own.cost / cbc.cost);
  }
  print_out("{}\n", line);
}

}  // namespace

int main(int argc, char** argv) {
  double cbc_seconds = 0;
  std::vector<int> sizes;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--cbc" && i + 1 < argc)
      cbc_seconds = std::atof(argv[++i]);
    else if (std::string(argv[i]).starts_with("--"))
      only = argv[i];
    else
      sizes.push_back(std::max(2, std::atoi(argv[i])));
  }
  if (sizes.empty()) sizes = {50, 100, 200, 400, 800};
  if (only.empty() || only == "--models") bench::print_models();
  if (only.empty() || only == "--depths") bench::print_depths();
  if (!only.empty() && only != "--solver") return 0;
  for (int rows : {0, 1, 4})
    for (const char* graph : {"chain", "transformer", "random"})
      for (int nodes : sizes) print_line(graph, nodes, rows, 1, cbc_seconds);
  return 0;
}
