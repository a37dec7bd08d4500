#include "framework/api/segment/segment_operation.hpp"

#include "framework/base/units.hpp"

namespace altiplano {

std::string describe(const SegmentOperation& operation) {
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
  const auto kind = static_cast<CollectiveKind>(record.kind);
  std::string text = to_string(kind);
  if (kind == CollectiveKind::kBarrier) return text;
  if (kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter)
    text += static_cast<ReduceKind>(record.reduce) == ReduceKind::kSum ? " sum" : " max";
  text += fmt::format(" of {} {}", record.count, to_string(static_cast<DType>(record.dtype)));
  if (kind == CollectiveKind::kBroadcast) text += fmt::format(" from {}", record.root);
  return text;
}

CallRecord record_of(const SegmentOperation& operation) {
  const CollectiveCall& call = operation.call;
  CallRecord record;
  record.sequence = static_cast<int64_t>(operation.sequence);
  record.kind = static_cast<int32_t>(call.kind);
  if (call.kind == CollectiveKind::kBarrier) return record;
  record.count = call.count;
  record.dtype = static_cast<int32_t>(call.dtype);
  if (call.kind == CollectiveKind::kAllReduce || call.kind == CollectiveKind::kReduceScatter)
    record.reduce = static_cast<int32_t>(call.reduce);
  if (call.kind == CollectiveKind::kBroadcast) record.root = call.root;
  return record;
}

}  // namespace altiplano
