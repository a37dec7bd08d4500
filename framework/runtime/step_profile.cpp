#include "framework/runtime/step_profile.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "framework/simulate/program_prices.hpp"

namespace altiplano {
namespace {

const char* name_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return "forward";
    case ActionKind::kBackward:
      return "backward";
    case ActionKind::kUpdate:
      return "update";
    default:
      return "other";
  }
}

/// What an instruction does, with the work of one call; calls and seconds are the caller's.
struct Describe {
  using enum ProfileGroup;
  const Program& program;
  ProfileRow operator()(const ComputeInstruction& compute) const {
    const OpWork work = work_of(program, compute);
    ProfileRow row = of(compute.kind, kComputed, static_cast<double>(work.bytes.value));
    row.flops = work.flops.value;
    return row;
  }
  ProfileRow operator()(const CollectiveInstruction& call) const {
    return of(to_string(call.kind), kExchanged,
              static_cast<double>(call.count * size_of(program.buffer(call.in).dtype)));
  }
  ProfileRow operator()(const CopyInstruction& copy) const {
    return of(copy.add ? "copy, added" : "copy", kMoved, static_cast<double>(bytes_of(program, copy).value));
  }
  ProfileRow operator()(const SendInstruction& send) const { return of_buffer("send", kExchanged, send.buffer); }
  ProfileRow operator()(const RecvInstruction& recv) const { return of_buffer("receive", kExchanged, recv.buffer); }
  ProfileRow operator()(const FillInstruction& fill) const { return of_buffer("fill", kMoved, fill.buffer); }
  ProfileRow operator()(const FeedInstruction& feed) const { return of_buffer("feed", kMoved, feed.buffer); }
  ProfileRow operator()(const FetchInstruction& fetch) const { return of_buffer("fetch", kMoved, fetch.buffer); }
  ProfileRow operator()(const WaitSendInstruction&) const { return of("wait for a send", kExchanged, 0); }
  ProfileRow of_buffer(const char* what, ProfileGroup group, BufferId buffer) const {
    return of(what, group, static_cast<double>(program.buffer(buffer).bytes));
  }
  static ProfileRow of(std::string what, ProfileGroup group, double bytes) {
    ProfileRow row;
    row.what = std::move(what);
    row.group = group;
    row.bytes = bytes;
    return row;
  }
};

}  // namespace

const char* to_string(ProfileGroup group) {
  constexpr const char* kNames[] = {"computed", "moved within the rank",
                                    "exchanged with other ranks, or waited for them", "between instructions"};
  return kNames[static_cast<size_t>(group)];
}

std::array<double, 4> seconds_by_group(const std::vector<ProfileRow>& rows) {
  std::array<double, 4> seconds{};
  for (const ProfileRow& row : rows) seconds[static_cast<size_t>(row.group)] += row.seconds;
  return seconds;
}

std::vector<ProfileRow> with_small_rows_folded(std::vector<ProfileRow> rows, double least_share) {
  double all = 0;
  for (const ProfileRow& row : rows) all += row.seconds;
  const auto first_small =
      std::ranges::find_if(rows, [&](const ProfileRow& row) { return row.seconds < least_share * all; });
  const auto num_small = rows.end() - first_small;
  if (num_small < 2) return rows;
  ProfileRow folded;
  folded.what = fmt::format("{} more", num_small);
  for (auto row = first_small; row != rows.end(); ++row) {
    folded.calls += row->calls;
    folded.seconds += row->seconds;
  }
  rows.erase(first_small, rows.end());
  rows.push_back(std::move(folded));
  return rows;
}

StepProfile::StepProfile(const Program& program) : program_(program) {
  for (const Block& block : program.blocks) counts_.emplace_back(block.instructions.size());
}

void StepProfile::add(BlockId block, size_t instruction, double seconds) {
  Count& count = counts_[block.index()][instruction];
  ++count.calls;
  count.seconds += seconds;
}

std::vector<InstructionTime> StepProfile::instructions() const {
  std::vector<InstructionTime> times;
  const auto steps = static_cast<double>(std::max<size_t>(1, steps_.size()));
  for (size_t b = 0; b < counts_.size(); ++b)
    for (size_t i = 0; i < counts_[b].size(); ++i)
      if (counts_[b][i].calls > 0)
        times.push_back({&program_.blocks[b].instructions[i], static_cast<double>(counts_[b][i].calls) / steps,
                         counts_[b][i].seconds / steps});
  return times;
}

std::vector<ProfileRow> StepProfile::rows() const {
  if (steps_.empty()) return {};
  const auto steps = static_cast<double>(steps_.size());
  std::map<std::pair<std::string, std::string>, ProfileRow> rows;
  double rest = std::accumulate(steps_.begin(), steps_.end(), 0.0) / steps;
  for (size_t b = 0; b < counts_.size(); ++b) {
    const Block& block = program_.blocks[b];
    for (size_t i = 0; i < counts_[b].size(); ++i) {
      if (counts_[b][i].calls == 0) continue;
      const ProfileRow one = std::visit(Describe{program_}, block.instructions[i].what);
      const double calls = static_cast<double>(counts_[b][i].calls) / steps, seconds = counts_[b][i].seconds / steps;
      ProfileRow& row = rows[{one.what, name_of(block.kind)}];
      row.what = one.what;
      row.group = one.group;
      row.during = name_of(block.kind);
      row.calls += calls;
      row.seconds += seconds;
      row.flops += one.flops * calls;
      row.bytes += one.bytes * calls;
      rest -= seconds;
    }
  }
  std::vector<ProfileRow> sorted;
  for (auto& [key, row] : rows) sorted.push_back(std::move(row));
  sorted.push_back({"between instructions", "", 0, rest, 0, 0, ProfileGroup::kBetween});
  std::ranges::stable_sort(sorted, [](const ProfileRow& a, const ProfileRow& b) { return a.seconds > b.seconds; });
  return sorted;
}

}  // namespace altiplano
