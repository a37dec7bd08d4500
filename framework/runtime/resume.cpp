#include "framework/runtime/resume.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "framework/base/text.hpp"
#include "framework/checkpoint/layout.hpp"
#include "framework/checkpoint/shard_check.hpp"

namespace altiplano {
namespace {

constexpr std::chrono::minutes kDeadline{30};  // reading every byte of a checkpoint

// The first rank's word of a round: one of these, the path or the message behind it.
constexpr char kAfresh = '.', kAccepted = '=', kProposed = '@', kFailed = '!';

/// One rank's part of the agreement.
class ResumeAgreement {
 public:
  ResumeAgreement(Rendezvous& rendezvous, const ResumeRequest& request) : rendezvous_(rendezvous), request_(request) {}

  Result<FoundCheckpoint> run() {
    for (int round = 0;; ++round) {
      ALTIPLANO_ASSIGN(const std::string word, exchange_word(round));
      if (word[0] == kFailed) return failure_.is_ok() ? cancelled(word.substr(1)) : failure_;
      if (word[0] == kAfresh || word[0] == kAccepted) return std::move(found_);
      tell_result(round, try_restore(word.substr(1)));
      ALTIPLANO_RETURN_IF_ERROR(rendezvous_.fence(kDeadline));
    }
  }

 private:
  bool is_first() const { return rendezvous_.rank().value == 0; }
  static std::string word_key(int round) { return fmt::format("checkpoint/{}", round); }
  static std::string result_key(int round) { return fmt::format("restored/{}", round); }
  static Status cancelled(const std::string& message) {
    return {StatusCode::kCancelled, "rank 0 failed first: " + message};
  }

  Result<std::string> exchange_word(int round) {
    Status told;
    if (is_first()) {
      auto word = decide(round);
      failure_ = word.status();
      told = rendezvous_.put(word_key(round), word.is_ok() ? *word : kFailed + failure_.to_string());
    }
    if (told) told = rendezvous_.fence(kDeadline);
    // Ranks that heard of it may have ended by now, which is no failure that came first.
    if (!failure_.is_ok()) return failure_;
    ALTIPLANO_RETURN_IF_ERROR(told);
    return rendezvous_.get(RankId(0), word_key(round));
  }

  /// First rank: accept what all have restored, else leave it out and propose the next.
  Result<std::string> decide(int round) {
    ALTIPLANO_RETURN_IF_ERROR(request_.ready);
    if (round > 0) {
      ALTIPLANO_ASSIGN(const std::string damage, damage_found(round - 1));
      if (damage.empty()) return std::string(1, kAccepted);
      excluded_.push_back({found_.checkpoint->path(), found_.checkpoint->manifest().info.step, damage});
    }
    ALTIPLANO_ASSIGN(found_, find_checkpoint(request_.directory, request_.resume, CheckLevel::kSizes, excluded_));
    if (!found_.checkpoint) return std::string(1, kAfresh);
    ALTIPLANO_RETURN_IF_ERROR(request_.check(*found_.checkpoint));
    return kProposed + found_.checkpoint->path();
  }

  Status try_restore(const std::string& path) {
    if (!is_first()) {
      ALTIPLANO_ASSIGN(found_.checkpoint, Checkpoint::open(path, CheckLevel::kSizes));
    }
    ALTIPLANO_RETURN_IF_ERROR(found_.checkpoint->verify_share(rendezvous_.rank().value, rendezvous_.world_size()));
    return request_.restore(*found_.checkpoint).with_context("while restoring " + path);
  }

  void tell_result(int round, const Status& status) {
    // A rank that cannot tell fails at the fence that follows.
    std::string text = status.is_ok() ? "" : fmt::format("{}:{}", static_cast<int>(status.code()), status.to_string());
    if (Status told = rendezvous_.put(result_key(round), text); !told) failure_ = told;
  }

  /// Empty: every rank has restored. What is no damage ends the job.
  Result<std::string> damage_found(int round) {
    std::vector<std::string> reasons;
    for (int rank = 0; rank < rendezvous_.world_size(); ++rank) {
      ALTIPLANO_ASSIGN(const std::string text, rendezvous_.get(RankId(rank), result_key(round)));
      if (text.empty()) continue;
      const size_t colon = text.find(':');
      const std::string message = text.substr(colon + 1);
      if (parse_int(text.substr(0, colon)) == static_cast<int>(StatusCode::kInvalidArgument))
        return Status(StatusCode::kInvalidArgument, message);
      if (std::ranges::find(reasons, message) == reasons.end()) reasons.push_back(message);
    }
    return join(reasons, "; ");
  }

  Rendezvous& rendezvous_;
  const ResumeRequest& request_;
  FoundCheckpoint found_;
  std::vector<SkippedCheckpoint> excluded_;
  Status failure_;  ///< this rank's own
};

}  // namespace

Result<FoundCheckpoint> restore_together(Rendezvous& rendezvous, const ResumeRequest& request) {
  return ResumeAgreement(rendezvous, request).run();
}

Result<std::vector<std::string>> check_resume(const Job& job, const BatchSource& source, const Checkpoint& checkpoint) {
  const Options& options = job.config.options;
  const CheckpointInfo& info = checkpoint.manifest().info;
  auto place = [&](const std::string& field) {
    const std::string key = "model." + field;
    return options.find_record(key) ? options.where(key) : key;
  };
  ALTIPLANO_RETURN_IF_ERROR(check_architecture(info, model_fingerprint(options), model_architecture(options), place)
                                .with_context("while resuming from " + checkpoint.path()));
  ALTIPLANO_RETURN_IF_ERROR(check_no_other_run(options.get_string("checkpoint.dir"), info.run_id, false));
  ALTIPLANO_ASSIGN(const Settings now, training_settings(job, source));
  auto notices = compare_settings(settings_of(info.state), now, options, info.step);
  if (!notices) return Status(notices.status()).with_context("while resuming from " + checkpoint.path());
  return notices;
}

int64_t next_attempt(const std::string& directory, const CheckpointInfo& resumed) {
  int64_t newest = resumed.attempt;
  for (const StepFolder& folder : list_step_folders(directory)) {
    auto manifest = read_manifest(folder.path);
    if (manifest && manifest->info.run_id == resumed.run_id) newest = std::max(newest, manifest->info.attempt);
  }
  return newest + 1;
}

}  // namespace altiplano
