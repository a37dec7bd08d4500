#include "framework/api/engine/operation.hpp"

#include <algorithm>

#include "framework/base/units.hpp"

namespace altiplano {

bool is_same_queue(const CommOperation& a, const CommOperation& b) {
  const Transfer &x = a.transfers.front(), &y = b.transfers.front();
  return a.kind == b.kind && x.peer == y.peer && x.tag == y.tag;
}

std::string describe(const CommOperation& operation) {
  if (operation.kind != OperationKind::kCollective) {
    const Transfer& transfer = operation.transfers.front();
    return fmt::format("{} tag {} ({})", transfer.is_send ? "send" : "recv", transfer.tag,
                       to_string(Bytes(transfer.bytes)));
  }
  const CollectiveCall& call = operation.call;
  std::string text = fmt::format("{} #{} of group {}", to_string(call.kind), operation.sequence, operation.group->name);
  if (call.kind != CollectiveKind::kBarrier)
    text += fmt::format(" ({}, {})", to_string(Bytes(call.count * size_of(call.dtype))), to_string(call.dtype));
  return text;
}

std::string describe(const CallRecord& record) {
  std::string text = to_string(record.kind);
  if (record.kind == CollectiveKind::kBarrier) return text;
  if (record.kind == CollectiveKind::kAllReduce || record.kind == CollectiveKind::kReduceScatter)
    text += record.reduce == ReduceKind::kSum ? " sum" : " max";
  text += fmt::format(" of {} {}", record.count, to_string(record.dtype));
  if (record.kind == CollectiveKind::kBroadcast) text += fmt::format(" from {}", record.root);
  return text;
}

CallRecord record_of(const CollectiveCall& call) {
  CallRecord record;  // what the kind has no use for stays as it is
  record.kind = call.kind;
  if (call.kind == CollectiveKind::kBarrier) return record;
  record.count = call.count;
  record.dtype = call.dtype;
  if (call.kind == CollectiveKind::kAllReduce || call.kind == CollectiveKind::kReduceScatter)
    record.reduce = call.reduce;
  if (call.kind == CollectiveKind::kBroadcast) record.root = call.root;
  return record;
}

CallRecord record_of(const MeetingPost& post) {
  CollectiveCall call;
  call.kind = static_cast<CollectiveKind>(post.kind);
  call.reduce = static_cast<ReduceKind>(post.reduce);
  call.dtype = static_cast<DType>(post.dtype);
  call.count = post.count;
  call.root = post.root;
  return record_of(call);
}

namespace {

bool is_before(const CommOperation* operation, uint64_t id) {
  return operation->id < id;
}

/// As new, but with the memory of its lists.
void reset(CommOperation& operation) {
  CommOperation fresh;
  fresh.after = std::move(operation.after);
  fresh.transfers = std::move(operation.transfers);
  fresh.after.clear();
  fresh.transfers.clear();
  operation = std::move(fresh);
}

}  // namespace

Operations::Operations() {
  constexpr int kUsual = 256;  // more are made when they are needed
  for (int i = 0; i < kUsual; ++i) {
    CommOperation& operation = *all_.emplace_back(std::make_unique<CommOperation>());
    operation.transfers.reserve(1);
    free_.push_back(&operation);
  }
  live_.reserve(kUsual);
}

CommOperation& Operations::begin(uint64_t id) {
  if (free_.empty()) free_.push_back(all_.emplace_back(std::make_unique<CommOperation>()).get());
  CommOperation* operation = free_.back();
  free_.pop_back();
  operation->id = id;
  live_.push_back(operation);
  return *operation;
}

void Operations::end(uint64_t id) {
  const auto found = std::lower_bound(live_.begin(), live_.end(), id, is_before);
  reset(**found);
  free_.push_back(*found);
  live_.erase(found);
}

CommOperation* Operations::find(uint64_t id) const {
  const auto found = std::lower_bound(live_.begin(), live_.end(), id, is_before);
  return found != live_.end() && (*found)->id == id ? *found : nullptr;
}

}  // namespace altiplano
