#include <algorithm>
#include <thread>

#include "framework/api/network/network_communicator.hpp"
#include "framework/base/text.hpp"

namespace altiplano::network {
namespace {

constexpr auto kTellLimit = std::chrono::seconds(1);
constexpr auto kAnswerLimit = std::chrono::milliseconds(300);
constexpr auto kGoodbyeLimit = std::chrono::milliseconds(500);  // by which a goodbye follows its broken connection
constexpr int kNobody = -1;

}  // namespace

// ---- what ranks tell each other ----

void NetworkCommunicator::abort(const std::string& reason) noexcept {
  const auto held = lock();
  (void)fail_world(StatusCode::kCancelled, reason);
}

/// The first failure counts; the others are told.
Status NetworkCommunicator::fail_world(StatusCode code, const std::string& reason) {
  if (!failure_.is_ok()) return failure_;
  failure_ = Status(code, reason);
  transport_->note_failure();
  for (int peer = 0; peer < world_size(); ++peer)
    if (peer != rank_) messages_.tell(peer, FrameKind::kAbort, fmt::format("{}:{}", static_cast<int>(code), reason));
  messages_.flush(kTellLimit);
  stop();
  return failure_;
}

void NetworkCommunicator::take_notes() {
  while (auto note = messages_.next_note()) {
    if (note->kind == FrameKind::kBye) left_.insert(note->from);
    if (note->kind == FrameKind::kAsk) answer(*note);
    if (note->kind == FrameKind::kAnswer)
      answers_[note->from] = static_cast<int>(parse_int(note->text).value_or(kNobody));
    if (note->kind != FrameKind::kAbort || !failure_.is_ok()) continue;
    const size_t colon = note->text.find(':');
    const auto code = static_cast<StatusCode>(parse_int(note->text.substr(0, colon)).value_or(0));
    const std::string reason = note->text.substr(colon + 1);
    transport_->note_failure();
    failure_ =
        Status(code == StatusCode::kOk ? StatusCode::kCancelled : code,
               code == StatusCode::kCancelled ? fmt::format("{} failed first: {}", who(note->from), reason) : reason);
    stop();
  }
}

/// The callers get their memory back.
void NetworkCommunicator::stop() {
  messages_.stop();
  transport_->stop();
}

/// Whom this rank waits for. One that computes answers when it calls next.
void NetworkCommunicator::answer(const Note& question) {
  int waits_for = kNobody;
  if (const CommOperation* waited_for = operations_.find(waits_for_event_))
    for_each_missing_peer(blocking(*waited_for), [&](int peer) {
      if (peer != question.from && waits_for == kNobody) waits_for = peer;
    });
  messages_.tell(question.from, FrameKind::kAnswer, fmt::format("{}", waits_for));
}

std::optional<int> NetworkCommunicator::ask(int peer) {
  answers_.erase(peer);
  messages_.tell(peer, FrameKind::kAsk, "");
  listen(kAnswerLimit, [&] { return answers_.contains(peer); });
  const auto found = answers_.find(peer);
  return found == answers_.end() ? std::nullopt : std::optional(found->second);
}

void NetworkCommunicator::listen(std::chrono::milliseconds limit, const std::function<bool()>& is_enough) {
  for (const auto until = Clock::now() + limit; Clock::now() < until && !is_enough();) {
    bool moved = false;
    if (!messages_.advance(moved).is_ok()) return;
    take_notes();
    if (!failure_.is_ok()) return;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// ---- who is missing ----

/// Follows ranks that wait for others to one that does not answer, or waits for nobody.
int NetworkCommunicator::root_of_wait(int peer) {
  int at = peer;
  for (int hops = 0; hops < world_size(); ++hops) {
    if (at == rank_) break;
    const auto next = ask(at);
    if (!next || *next == kNobody || *next == rank_) return at;
    at = *next;
  }
  return peer;
}

Status NetworkCommunicator::peer_stuck(const CommOperation& operation, Clock::duration silence) {
  std::vector<int> roots;
  for (int peer : missing_peers(operation)) {
    const int root = root_of_wait(peer);
    ALTIPLANO_RETURN_IF_ERROR(failure_);
    if (std::ranges::find(roots, root) == roots.end()) roots.push_back(root);
  }
  if (roots.empty()) return Status::ok();  // what was missing came while others were asked
  return fail_world(StatusCode::kPeerStuck,
                    fmt::format("{}; noticed by {}", stuck_text(roots, operation, silence), who(rank_)));
}

void NetworkCommunicator::take_losses() {
  while (auto loss = transport_->next_loss()) lost_.try_emplace(loss->peer, LostPeer{loss->why, Clock::now()});
  if (!segment_) return;
  for (int peer : segment_->ranks())
    if (peer != rank_ && watch_.has_ended(peer)) lost_.try_emplace(peer, LostPeer{"its process is gone", Clock::now()});
}

Status NetworkCommunicator::check_lost_peers(std::chrono::milliseconds after) {
  take_losses();
  for (const auto& [peer, lost] : lost_)
    if (!left_.contains(peer) && Clock::now() - lost.when >= after)
      return fail_world(StatusCode::kRuntimeFailure,
                        fmt::format("{} died: {}; noticed by {} at step {}", who(peer), lost.why, who(rank_), step_));
  return Status::ok();
}

/// A message cannot be carried: by the peer's end, where that is known.
Status NetworkCommunicator::broken(const Status& status) {
  take_notes();
  ALTIPLANO_RETURN_IF_ERROR(failure_);
  ALTIPLANO_RETURN_IF_ERROR(check_lost_peers(std::chrono::milliseconds(0)));
  return fail_world(status.code(), fmt::format("{}; noticed by {} at step {}", status.message(), who(rank_), step_));
}

Status NetworkCommunicator::check_peers(Event event) {
  ALTIPLANO_RETURN_IF_ERROR(check_lost_peers(kGoodbyeLimit));
  const auto gone_of = [&]() -> int {
    int gone = kNobody;
    const CommOperation* waited_for = operations_.find(event.id);
    if (waited_for == nullptr) return gone;
    const CommOperation& operation = blocking(*waited_for);
    for_each_missing_peer(operation, [&](int peer) {
      if (left_.contains(peer)) gone = peer;
    });
    for (const Transfer& transfer : operation.transfers)  // the data of these is on its way
      if (transfer.peer == gone && (transfer.is_send || transfer.is_matched)) return kNobody;
    return gone;
  };
  if (gone_of() == kNobody) return Status::ok();
  bool moved = false;  // what it wrote before it left is still there
  ALTIPLANO_RETURN_IF_ERROR(advance(moved));
  const int gone = moved ? kNobody : gone_of();
  return gone == kNobody ? Status::ok() : left_too_early(gone, blocking(*operations_.find(event.id)));
}

}  // namespace altiplano::network
