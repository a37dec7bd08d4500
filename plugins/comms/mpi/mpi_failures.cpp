#include <algorithm>
#include <thread>

#include "framework/base/text.hpp"
#include "plugins/comms/mpi/mpi_communicator.hpp"

namespace altiplano::mpi {
namespace {

constexpr auto kTellLimit = std::chrono::seconds(1);
constexpr auto kAnswerLimit = std::chrono::milliseconds(300);
constexpr auto kOthersLimit = std::chrono::milliseconds(1500);  // for who knows more to say it

// Of a rank that is asked for whom it waits; else it is a rank.
constexpr int kNobody = -1, kSomebody = -2;

}  // namespace

// ---- what ranks tell each other ----

void MpiCommunicator::abort(const std::string& reason) noexcept {
  std::lock_guard lock(mpi_mutex());
  (void)fail_world(StatusCode::kCancelled, reason);
}

/// The first failure counts; the others are told.
Status MpiCommunicator::fail_world(StatusCode code, const std::string& reason) {
  if (!failure_.is_ok()) return failure_;
  failure_ = Status(code, reason);
  note_failure();
  for (int peer = 0; peer < world_size(); ++peer)
    if (peer != rank_) messages_.tell(peer, FrameKind::kAbort, fmt::format("{}:{}", static_cast<int>(code), reason));
  messages_.flush(kTellLimit);
  return failure_;
}

Status MpiCommunicator::take_notes() {
  while (auto note = messages_.next_note()) {
    if (note->kind == FrameKind::kBye) left_.insert(note->from);
    if (note->kind == FrameKind::kAsk) answer(*note);
    if (note->kind == FrameKind::kAnswer) {
      const auto words = split(note->text, ' ');
      answers_[note->from] = {words.at(0) == "1", static_cast<int>(parse_int(words.at(1)).value_or(-1))};
    }
    if (note->kind != FrameKind::kAbort || !failure_.is_ok()) continue;
    const size_t colon = note->text.find(':');
    const auto code = static_cast<StatusCode>(parse_int(note->text.substr(0, colon)).value_or(0));
    const std::string reason = note->text.substr(colon + 1);
    note_failure();
    failure_ =
        Status(code == StatusCode::kOk ? StatusCode::kCancelled : code,
               code == StatusCode::kCancelled ? fmt::format("{} failed first: {}", who(note->from), reason) : reason);
  }
  return failure_;
}

/// "1 3": this rank has started that collective and waits for rank 3.
void MpiCommunicator::answer(const Note& question) {
  const auto words = split(question.text, ' ');  // context, lane, sequence
  const auto context = static_cast<uint64_t>(parse_int(words.at(0)).value_or(0));
  const auto lane = static_cast<size_t>(parse_int(words.at(1)).value_or(0));
  const auto sequence = static_cast<uint64_t>(parse_int(words.at(2)).value_or(0));
  bool has_started = false;
  for (const auto& group : groups_)
    if (group->context >> 5 == context && lane < kLanes) has_started = group->started_on_lane[lane] >= sequence;
  int waits_for = kNobody;
  if (const Operation* waited_for = find(waits_for_event_)) {
    const Operation& operation = blocking(*waited_for);
    if (operation.native != MPI_REQUEST_NULL) waits_for = kSomebody;
    for (const Transfer& transfer : operation.transfers)
      if (!transfer.is_done && transfer.peer != question.from && waits_for == kNobody) waits_for = transfer.peer;
  }
  messages_.tell(question.from, FrameKind::kAnswer, fmt::format("{} {}", has_started ? 1 : 0, waits_for));
}

std::optional<MpiCommunicator::Answer> MpiCommunicator::ask(int peer, const Operation& operation) {
  const Group* group = operation.group;
  answers_.erase(peer);
  messages_.tell(peer, FrameKind::kAsk,
                 fmt::format("{} {} {}", group == nullptr ? 0 : group->context >> 5, operation.lane(),
                             operation.sequence_on_lane));
  listen(kAnswerLimit, [&] { return answers_.contains(peer); });
  const auto found = answers_.find(peer);
  return found == answers_.end() ? std::nullopt : std::optional(found->second);
}

void MpiCommunicator::listen(std::chrono::milliseconds limit, const std::function<bool()>& is_enough) {
  for (const auto until = Clock::now() + limit; Clock::now() < until && !is_enough();) {
    bool moved = false;
    if (!messages_.advance(moved).is_ok() || !take_notes().is_ok()) return;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// ---- who is missing ----

const Operation& MpiCommunicator::blocking(const Operation& operation) const {
  if (operation.phase != Phase::kWaiting) return operation;
  for (uint64_t id : operation.after)
    if (const Operation* before = find(id)) return blocking(*before);
  if (operation.kind == OperationKind::kCollective) {
    const Operation& first = *lanes_[operation.lane()].front();
    return &first == &operation ? operation : blocking(first);
  }
  for (const Operation* earlier : waiting_messages_) {
    if (earlier == &operation) break;
    const Transfer &a = earlier->transfers.front(), &b = operation.transfers.front();
    if (earlier->kind == operation.kind && a.peer == b.peer && a.tag == b.tag) return blocking(*earlier);
  }
  return operation;
}

/// Of MPI's own collectives members have to be asked.
std::vector<int> MpiCommunicator::missing_peers(const Operation& operation) {
  std::vector<int> peers;
  for (const Transfer& transfer : operation.transfers)
    if (!transfer.is_done && std::ranges::find(peers, transfer.peer) == peers.end()) peers.push_back(transfer.peer);
  if (operation.native == MPI_REQUEST_NULL) return peers;
  for (int member : operation.group->ranks) {
    if (member == rank_) continue;
    const auto said = ask(member, operation);
    if (!said || !said->has_started) peers.push_back(member);
  }
  return peers;
}

/// Follows ranks that wait for others to one that does not answer, or waits for nobody.
int MpiCommunicator::root_of_wait(int peer, const Operation& operation) {
  int at = peer;
  for (int hops = 0; hops < world_size(); ++hops) {
    const auto said = ask(at, operation);
    if (said && said->waits_for == kSomebody) listen(kOthersLimit, [] { return false; });
    if (!said || said->waits_for < 0 || said->waits_for == rank_) return at;
    at = said->waits_for;
  }
  return peer;
}

Status MpiCommunicator::peer_stuck(const Operation& operation, Clock::duration silence) {
  std::vector<int> roots;
  for (int peer : missing_peers(operation)) {
    const int root = root_of_wait(peer, operation);
    if (!failure_.is_ok()) return failure_;
    if (std::ranges::find(roots, root) == roots.end()) roots.push_back(root);
  }
  std::ranges::sort(roots);
  std::vector<std::string> names;
  for (int root : roots) names.push_back(who(root));
  return fail_world(StatusCode::kPeerStuck,
                    fmt::format("{} stopped answering at step {} in {}, {:.1f} s ago; noticed by {}",
                                names.empty() ? std::string("some rank") : join(names, " and "), operation.step,
                                describe(operation), std::chrono::duration<double>(silence).count(), who(rank_)));
}

Status MpiCommunicator::check_peers_that_left(const Operation& operation) {
  for (const Transfer& transfer : operation.transfers)
    if (!transfer.is_done && !transfer.is_send && !transfer.is_matched && left_.contains(transfer.peer))
      return fail_world(StatusCode::kRuntimeFailure,
                        fmt::format("{} closed its communicator while {} needs it at step {} in {}", who(transfer.peer),
                                    who(rank_), operation.step, describe(operation)));
  return Status::ok();
}

// ---- calls that do not suit each other ----

Status MpiCommunicator::size_mismatch(const SizeMismatch& mismatch) {
  const Transfer& receive = *mismatch.receive;
  std::string what = fmt::format("recv tag {}", receive.tag);
  for (const auto& [id, operation] : operations_)
    if (operation->kind == OperationKind::kCollective && receive.open == &operation->open) what = describe(*operation);
  return fail_world(StatusCode::kRuntimeFailure,
                    fmt::format("sizes differ in {}: {} sends {} B, {} expects {} B, at step {}", what,
                                who(receive.peer), mismatch.sent_bytes, who(rank_), receive.bytes, step_));
}

Status MpiCommunicator::calls_differ(const Operation& operation, size_t member) {
  const Group& group = *operation.group;
  const auto& theirs = operation.records[member];
  const auto& mine = operation.records[static_cast<size_t>(group.index)];
  return fail_world(StatusCode::kRuntimeFailure,
                    fmt::format("call #{} of group {} differs: {} calls {}, {} calls {}, at step {}",
                                operation.sequence, group.name, who(rank_), altiplano::describe(mine),
                                who(group.ranks[member]), altiplano::describe(theirs), operation.step));
}

}  // namespace altiplano::mpi
