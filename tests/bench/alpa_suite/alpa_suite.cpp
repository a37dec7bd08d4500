// Prints docs/alpa-suite.md: over the suites of the Alpa paper the plans of planner/dp beside those of the baselines
// and beside the published ones, all costed by the same simulator, and beside the best of all plans on reduced suites.
// Pure computation: the same text everywhere.
//
//   bench_alpa_suite [--family NAME] [--member NAME] [--most-gpus N] [--reduced N]
//
// A member is named like "GPT 2.6B"; --reduced: how many reduced suites, all by default.
#include <cstdlib>

#include "framework/base/text.hpp"
#include "framework/plugin/registry.hpp"
#include "tests/bench/alpa_suite/page.hpp"
#include "tests/bench/bench.hpp"
#include "tests/support/alpa_quality.hpp"

namespace altiplano::bench {
namespace {

using namespace altiplano::test;

struct Arguments {
  std::string family, member;
  int most_gpus = 64;
  size_t reduced = 1000;
};

Arguments read_arguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--family")
      arguments.family = value;
    else if (name == "--member")
      arguments.member = value;
    else if (name == "--most-gpus")
      arguments.most_gpus = std::atoi(value.c_str());
    else if (name == "--reduced")
      arguments.reduced = static_cast<size_t>(std::atoi(value.c_str()));
    else
      require(invalid_argument("{}: valid: --family, --member, --most-gpus, --reduced", name));
  }
  return arguments;
}

/// Everything that is known of one member.
struct Row {
  const AlpaMember* member = nullptr;
  CostedPlan dp, published;
  std::vector<CostedPlan> baselines;
};

Row row_of(const AlpaMember& member) {
  Row row;
  row.member = &member;
  row.dp = require(planned(member, "dp"));
  for (const std::string& name : kBaselines) row.baselines.push_back(require(planned(member, name)));
  row.published = require(published(member));
  return row;
}

std::string time_text(const CostedPlan& plan) {
  if (!plan.has_plan()) return "—";
  if (!plan.fits) return fmt::format("needs {:.1f} GB", static_cast<double>(plan.peak.value) / 1e9);
  return fmt::format("{:.2f} s", plan.seconds);
}

std::string percent(double share) {
  return fmt::format("{:+.1f} %", 100 * share);
}

std::string against_baselines(const Row& row) {
  const auto compared = compare(row.dp, row.baselines);
  if (!compared) return row.dp.has_plan() ? "no baseline fits" : "nothing fits";
  if (compared->longer > 1e6) return fmt::format("**no plan**, {} has one", compared->best_baseline);
  const std::string text = fmt::format("{} ({})", percent(compared->longer), compared->best_baseline);
  return compared->longer > kQualityLimit ? "**" + text + "**" : text;
}

std::string against_published(const Row& row) {
  if (!row.published.has_plan() || !row.published.fits || !row.dp.has_plan()) return "";
  return percent(row.dp.seconds / row.published.seconds - 1);
}

void print_times(const std::vector<Row>& rows) {
  print_out("{}\n", kTimesHead);
  for (const Row& row : rows) {
    std::string line = fmt::format("| {} | {} | {} |", row.member->name(), row.member->gpus, time_text(row.dp));
    for (const CostedPlan& baseline : row.baselines) line += fmt::format(" {} |", time_text(baseline));
    print_out("{} {} | {} | {} |\n", line, time_text(row.published), against_baselines(row), against_published(row));
  }
  print_out("\n");
}

void print_plans(const std::vector<Row>& rows) {
  print_out("{}\n", kPlansHead);
  for (const Row& row : rows) {
    const auto memory = [](const CostedPlan& plan) {
      return plan.has_plan() ? fmt::format("{:.1f}", static_cast<double>(plan.peak.value) / 1e9) : "";
    };
    print_out("| {} | {} | {} | {} | {} | {} |\n", row.member->name(), row.dp.summary(), memory(row.dp),
              row.published.has_plan() ? row.published.summary() : row.published.refusal, memory(row.published),
              row.member->published);
  }
  print_out("\n");
}

/// What the paper measured of its GPT plans, in seconds, beside what is predicted of them here.
void print_fidelity(const std::vector<Row>& rows) {
  print_out("{}\n", kFidelityHead);
  for (const Row& row : rows) {
    if (row.member->family != "GPT" || row.member->published.empty()) continue;
    const double measured = seconds_of_gpt(*row.member, std::atof(row.member->published.c_str()));
    const bool is_costed = row.published.has_plan() && row.published.fits;
    const CostedPlan& plan = is_costed ? row.published : row.dp;
    if (!plan.has_plan()) continue;
    print_out("| {} | {:.1f} | {:.1f} | {} | {} |\n", row.member->name(), measured, plan.seconds,
              percent(plan.seconds / measured - 1), is_costed ? "published" : "of planner/dp");
  }
  print_out("\n");
}

void print_reduced(size_t most) {
  print_out("{}\n", kReducedHead);
  size_t done = 0;
  for (const ReducedCase& reduced : reduced_suite()) {
    if (done++ == most) break;
    const Exhaustive all = require(search_all(reduced.member, reduced.overrides));
    const CostedPlan dp = require(planned(reduced.member, "dp", reduced.overrides));
    const bool both = dp.has_plan() && all.best.has_plan();
    print_out("| {} | {} of {} | {} | {} | {} |\n", reduced.name, all.num_fit, all.num_plans,
              all.best.has_plan() ? fmt::format("{:.2f} ms", 1e3 * all.best.seconds) : "—",
              dp.has_plan() ? fmt::format("{:.2f} ms", 1e3 * dp.seconds) : "—",
              both ? percent(dp.seconds / all.best.seconds - 1) : "");
  }
  print_out("\n");
}

bool is_wanted(const AlpaMember& member, const Arguments& arguments) {
  return member.gpus <= arguments.most_gpus && (arguments.family.empty() || member.family == arguments.family) &&
         (arguments.member.empty() || member.name() == arguments.member);
}

void print_page(const Arguments& arguments) {
  std::vector<Row> rows;
  for (const AlpaMember& member : alpa_suite()) {
    if (!is_wanted(member, arguments)) continue;
    const double begin = now();
    rows.push_back(row_of(member));
    print_err("{} in {:.1f} s\n", member.name(), now() - begin);
  }
  print_out("{}\n", kIntroduction);
  print_times(rows);
  print_out("{}\n", kPlansIntroduction);
  print_plans(rows);
  print_out("{}\n", kFidelityIntroduction);
  print_fidelity(rows);
  print_out("{}\n", kReducedIntroduction);
  print_reduced(arguments.reduced);
}

}  // namespace
}  // namespace altiplano::bench

int main(int argc, char** argv) {
  altiplano::PluginRegistry::instance().add_search_path(ALTIPLANO_BENCH_PLUGIN_DIR);
  altiplano::bench::print_page(altiplano::bench::read_arguments(argc, argv));
  return 0;
}
