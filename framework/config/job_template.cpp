#include "framework/config/job_template.hpp"

#include <algorithm>

#include "framework/base/text.hpp"
#include "framework/config/job_config.hpp"

namespace altiplano {
namespace {

/// The key within its section; a key that is no section's stands alone ("cluster").
std::string word_of(const std::string& key) {
  size_t dot = key.find('.');
  return dot == std::string::npos ? key : key.substr(dot + 1);
}

/// What stands in a comment for a key that was not chosen.
std::string default_text(const OptionRecord& record) {
  if (!std::holds_alternative<std::monostate>(record.default_value)) return yaml_value_text(record.default_value);
  return record.allow_auto ? "auto" : "...";
}

const std::string* chosen_value(const ChosenValues& chosen, const std::string& key) {
  auto at = std::ranges::find(chosen, key, &ChosenValues::value_type::first);
  return at == chosen.end() ? nullptr : &at->second;
}

std::string entry_text(const OptionRecord& record, const ChosenValues& chosen) {
  const std::string indent = record.key.find('.') == std::string::npos ? "" : "  ";
  const std::string* value = chosen_value(chosen, record.key);
  std::string text = fmt::format("{}# {} ({})\n", indent, record.help, expected_text(record));
  return text + fmt::format("{}{}{}: {}\n", indent, value == nullptr ? "# " : "", word_of(record.key),
                            value == nullptr ? default_text(record) : *value);
}

constexpr const char* kScript = R"(#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task={ranks}
#SBATCH --time=01:00:00 --signal=B:USR1@180 --requeue --open-mode=append
#SBATCH --output=%x-%j.log
# Trains {job} on {ranks} ranks of one node:
#   sbatch {script}            under Slurm; saves before the time is over, requeues itself and goes on
#   bash {script}              on this machine
# Further options go to altiplano launch: bash {script} --set train.max_steps=20
set -u
ranks={ranks}
altiplano=${{ALTIPLANO:-{program}}}
cd "${{SLURM_SUBMIT_DIR:-$(dirname "$0")}}" || exit 2

"$altiplano" launch -n "$ranks" -c {job} "$@" &
run=$!
# Slurm sends USR1 to this script some three minutes before the end: the ranks save after their step and end with 75.
trap 'kill -USR1 "$run"' USR1
trap 'kill -TERM "$run"' TERM INT
while :; do
  wait "$run"
  code=$?
  [ "$code" -gt 128 ] || break                  # a trapped signal ends `wait`, not the run
  kill -0 "$run" 2>/dev/null && continue
  wait "$run"
  late=$?
  [ "$late" -eq 127 ] || code=$late
  break
done
if [ "$code" -eq 75 ] && [ -n "${{SLURM_JOB_ID:-}}" ]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit "$code"
)";

}  // namespace

std::string commented_job(const std::vector<OptionRecord>& records, const ChosenValues& chosen,
                          const std::vector<std::string>& head) {
  std::string out, section;
  for (const auto& line : head) out += "# " + line + "\n";
  for (const auto& record : records) {
    const bool alone = record.key.find('.') == std::string::npos;
    if (section_of(record.key) != section) {
      section = section_of(record.key);
      bool has_chosen =
          std::ranges::any_of(chosen, [&](const auto& entry) { return !alone && section_of(entry.first) == section; });
      // A section without a value would be empty, which is refused: it is a comment too.
      out += alone ? "\n" : fmt::format("\n{}{}:\n", has_chosen ? "" : "# ", section);
    }
    out += entry_text(record, chosen);
  }
  return out;
}

std::string job_script(const ScriptFacts& facts) {
  const std::string script = facts.name + ".sbatch";
  return fmt::format(fmt::runtime(kScript), fmt::arg("name", facts.name), fmt::arg("ranks", facts.ranks),
                     fmt::arg("job", facts.job_file), fmt::arg("script", script), fmt::arg("program", facts.program));
}

}  // namespace altiplano
