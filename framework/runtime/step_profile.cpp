#include "framework/runtime/step_profile.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "framework/simulate/plan_estimate.hpp"

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
  const Program& program;
  ProfileRow operator()(const ComputeInstruction& compute) const {
    const OpWork work = work_of(program, compute);
    return {compute.kind, {}, 0, 0, work.flops.value, static_cast<double>(work.bytes.value)};
  }
  ProfileRow operator()(const CollectiveInstruction& call) const {
    const auto bytes = static_cast<double>(call.count * size_of(program.buffer(call.in).dtype));
    return {to_string(call.kind), {}, 0, 0, 0, bytes};
  }
  ProfileRow operator()(const CopyInstruction& copy) const {
    return {copy.add ? "copy, added" : "copy", {}, 0, 0, 0, static_cast<double>(bytes_of(program, copy).value)};
  }
  ProfileRow operator()(const SendInstruction& send) const { return of_buffer("send", send.buffer); }
  ProfileRow operator()(const RecvInstruction& recv) const { return of_buffer("receive", recv.buffer); }
  ProfileRow operator()(const FillInstruction& fill) const { return of_buffer("fill", fill.buffer); }
  ProfileRow operator()(const FeedInstruction& feed) const { return of_buffer("feed", feed.buffer); }
  ProfileRow operator()(const FetchInstruction& fetch) const { return of_buffer("fetch", fetch.buffer); }
  ProfileRow operator()(const WaitSendInstruction&) const { return {"wait for a send", {}, 0, 0, 0, 0}; }
  ProfileRow of_buffer(const char* what, BufferId buffer) const {
    return {what, {}, 0, 0, 0, static_cast<double>(program.buffer(buffer).bytes)};
  }
};

}  // namespace

StepProfile::StepProfile(const Program& program) : program_(program) {
  for (const Block& block : program.blocks) counts_.emplace_back(block.instructions.size());
}

void StepProfile::add(BlockId block, size_t instruction, double seconds) {
  Count& count = counts_[block.index()][instruction];
  ++count.calls;
  count.seconds += seconds;
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
  sorted.push_back({"between instructions", "", 0, rest, 0, 0});
  std::ranges::stable_sort(sorted, [](const ProfileRow& a, const ProfileRow& b) { return a.seconds > b.seconds; });
  return sorted;
}

}  // namespace altiplano
