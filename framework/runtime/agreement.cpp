#include "framework/runtime/agreement.hpp"

#include <algorithm>
#include <vector>

namespace altiplano {

namespace {

/// What a rank sends to the others: fixed size, no pointers.
struct Packed {
  int64_t code;
  char message[1016];
};
static_assert(sizeof(Packed) % sizeof(int64_t) == 0);

Packed pack(const Status& status, const std::string& who) {
  Packed packed{};
  packed.code = static_cast<int64_t>(status.code());
  const std::string text = status.is_ok() ? "" : who + ": " + status.to_string();
  std::copy_n(text.begin(), std::min(text.size(), sizeof(packed.message) - 1), packed.message);
  return packed;
}

Status gather(Communicator& communicator, GroupId world, const Packed& mine, std::vector<Packed>& all) {
  CollectiveCall call{CollectiveKind::kAllGather,
                      ReduceKind::kSum,
                      DType::kI64,
                      &mine,
                      all.data(),
                      static_cast<int64_t>(sizeof(Packed) / sizeof(int64_t)),
                      0};
  ALTIPLANO_ASSIGN(const Event event, communicator.collective(world, call, StreamKind::kCollective, {}));
  return communicator.wait(event);
}

}  // namespace

Agreement agree(Communicator& communicator, GroupId world, const Status& mine, const std::string& who) {
  std::vector<Packed> all(static_cast<size_t>(communicator.world_size()));
  if (Status status = gather(communicator, world, pack(mine, who), all); !status.is_ok()) return {status, false};
  const auto failed =
      std::ranges::find_if(all, [](const Packed& p) { return p.code != static_cast<int64_t>(StatusCode::kOk); });
  if (failed == all.end()) return {Status::ok(), true};
  return {Status(static_cast<StatusCode>(failed->code), failed->message), true};
}

}  // namespace altiplano
