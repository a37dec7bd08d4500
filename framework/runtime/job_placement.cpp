#include "framework/runtime/job_placement.hpp"

#include "framework/base/text.hpp"
#include "framework/search/program_traffic.hpp"

namespace altiplano {
namespace {

std::string bytes_text(double bytes) {
  return to_string(Bytes(static_cast<int64_t>(bytes)));
}

const char* what_is_between(int level) {
  return level == 0 ? "hosts" : level == 1 ? "switches" : "outer switches";
}

}  // namespace

std::string placement_in_words(const RankPlaces& places, const Placement& placement) {
  std::string text = places.to_string() + ": a step sends " + bytes_text(placement.score.between(0)) + " between hosts";
  std::string before = bytes_text(placement.in_order.between(0));
  for (int level = 1; level < places.num_levels(); ++level) {
    if (places.num_groups(level) < 2) break;
    text += fmt::format(", {} of it between {}", bytes_text(placement.score.between(level)), what_is_between(level));
    before += ", " + bytes_text(placement.in_order.between(level));
  }
  const bool is_in_order = placement.score.bytes == placement.in_order.bytes;
  return text + (is_in_order ? " (ranks in their order)" : " (with ranks in their order " + before + ")");
}

Status place_ranks(Job& job, const RankPlaces& places) {
  if (places.groups.empty() || places.num_groups(0) < 2) return Status::ok();
  const Placement placement = find_placement(places, exchanges_of(job.programs));
  job.placement = placement_in_words(places, placement);
  if (placement.binding.rank_of_slot == job.binding.rank_of_slot) return Status::ok();
  job.binding = placement.binding;
  ALTIPLANO_ASSIGN(job.programs, lower(*job.graph, job.plan, job.timetable, job.binding, job.device->lowering()));
  return Status::ok();
}

std::string told_plan(const Job& job) {
  std::vector<std::string> ranks;
  for (RankId rank : job.binding.rank_of_slot) ranks.push_back(std::to_string(rank.value));
  return join(ranks, " ") + "\n" + job.plan.to_yaml();
}

Result<ProvedPlan> plan_as_told(const std::string& text, RankId rank) {
  const size_t end = text.find('\n');
  ProvedPlan proved;
  proved.rank = rank;
  for (const std::string& word : split(text.substr(0, end), ' ')) {
    const auto number = parse_int(word);
    if (!number || end == std::string::npos)
      return invalid_argument("what the first rank told of its plan begins with '{}', which is no rank", word);
    proved.binding.rank_of_slot.emplace_back(*number);
  }
  proved.text = text.substr(end + 1);
  return proved;
}

}  // namespace altiplano
