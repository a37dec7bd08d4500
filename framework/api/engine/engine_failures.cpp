#include <algorithm>

#include "framework/api/engine/engine.hpp"
#include "framework/base/text.hpp"

namespace altiplano {

std::string Engine::who(int rank) const {
  const auto& host = hosts_[static_cast<size_t>(rank)];
  const auto local = std::count(hosts_.begin(), hosts_.begin() + rank, host);
  return fmt::format("rank {} ({}, local {})", rank, host, local);
}

// ---- who is missing ----

const CommOperation& Engine::blocking(const CommOperation& operation) const {
  if (operation.is_started) return operation;
  for (uint64_t id : operation.after)
    if (const CommOperation* before = operations_.find(id)) return blocking(*before);
  if (operation.kind == OperationKind::kCollective) {
    const CommOperation& first = *lanes_[operation.lane()].front();
    return &first == &operation ? operation : blocking(first);
  }
  for (size_t i = 0; waiting_messages_.at(i) != &operation; ++i) {
    const CommOperation& earlier = *waiting_messages_.at(i);
    if (is_same_queue(earlier, operation)) return blocking(earlier);
  }
  return operation;
}

std::vector<int> Engine::missing_peers(const CommOperation& operation) const {
  std::vector<int> peers;
  for_each_missing_peer(operation, [&](int peer) {
    if (std::find(peers.begin(), peers.end(), peer) == peers.end()) peers.push_back(peer);
  });
  return peers;
}

std::string Engine::stuck_text(const std::vector<int>& roots, const CommOperation& operation,
                               Clock::duration silence) const {
  std::vector<int> sorted = roots;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::string> names;
  for (int root : sorted) names.push_back(who(root));
  return fmt::format("{} stopped answering at step {} in {}, {:.1f} s ago", join(names, " and "), operation.step,
                     altiplano::describe(operation), std::chrono::duration<double>(silence).count());
}

Status Engine::left_too_early(int peer, const CommOperation& operation) {
  return fail_world(StatusCode::kRuntimeFailure,
                    fmt::format("{} closed its communicator while {} needs it at step {} in {}", who(peer), who(rank_),
                                operation.step, altiplano::describe(operation)));
}

// ---- ranks that disagree ----

Status Engine::check(const std::optional<SizeMismatch>& mismatch) {
  if (!mismatch) return Status::ok();
  const auto& operation = static_cast<const CommOperation&>(*mismatch->receive->owner);
  return fail_world(StatusCode::kRuntimeFailure,
                    fmt::format("sizes differ in {} at step {}: {} sends {} B, {} expects {} B",
                                altiplano::describe(operation), operation.step, who(mismatch->receive->peer),
                                mismatch->sent_bytes, who(rank_), mismatch->receive->bytes));
}

Status Engine::calls_differ(const CommOperation& operation, size_t member, const CallRecord& theirs) {
  const CommGroup& group = *operation.group;
  return fail_world(StatusCode::kRuntimeFailure,
                    fmt::format("call #{} of group {} differs at step {}: {} calls {}, {} calls {}", operation.sequence,
                                group.name, operation.step, who(rank_), altiplano::describe(record_of(operation.call)),
                                who(group.ranks[member]), altiplano::describe(theirs)));
}

}  // namespace altiplano
