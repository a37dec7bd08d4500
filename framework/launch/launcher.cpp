#include "framework/launch/launcher.hpp"

#include <fmt/chrono.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <set>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/launch/inproc_rendezvous.hpp"
#include "framework/launch/local_rendezvous.hpp"
#include "framework/launch/memory_file.hpp"
#include "framework/launch/rank_board.hpp"
#include "framework/launch/rank_environment.hpp"
#include "framework/launch/rank_process.hpp"
#include "framework/launch/socket_message.hpp"
#include "framework/launch/stop_signal.hpp"

namespace altiplano {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSavedAndStopped = 75;
constexpr auto kOutputGrace = std::chrono::seconds(2);  // for output of ranks that have ended

/// Signals arrive as data while this lives.
class SignalInbox {
 public:
  SignalInbox() {
    sigset_t set = stop_signals();
    sigaddset(&set, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &set, &before_);
    descriptor_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~SignalInbox() {
    while (next()) {
    }
    close(descriptor_);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalInbox(const SignalInbox&) = delete;
  SignalInbox& operator=(const SignalInbox&) = delete;

  int descriptor() const { return descriptor_; }
  std::optional<int> next() const {
    signalfd_siginfo info{};
    if (read(descriptor_, &info, sizeof(info)) != sizeof(info)) return std::nullopt;
    return static_cast<int>(info.ssi_signo);
  }

 private:
  sigset_t before_{};
  int descriptor_ = -1;
};

/// Rank r's share of the mask: equal runs of processors, or one each in turn when there are fewer than ranks.
cpu_set_t share_of_cpus(int rank, int ranks) {
  cpu_set_t mask, share;
  CPU_ZERO(&share);
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0) CPU_ZERO(&mask);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &mask)) cpus.push_back(cpu);
  const int each = threads_per_rank(static_cast<int>(cpus.size()), ranks);
  for (int k = 0; k < each && !cpus.empty(); ++k)
    CPU_SET(cpus[static_cast<size_t>(rank * each + k) % cpus.size()], &share);
  return share;
}

/// What all ranks are told alike.
struct JobPlaces {
  std::string job_id, rendezvous, board;
  std::string plan;  ///< empty: none
};

std::vector<std::string> environment_of(int rank, const LaunchRequest& request, const JobPlaces& places) {
  constexpr std::string_view kOwn[] = {"ALTIPLANO_RANK=",     "ALTIPLANO_WORLD_SIZE=",       "ALTIPLANO_RENDEZVOUS=",
                                       "ALTIPLANO_JOB_ID=",   "ALTIPLANO_THREADS=",          "ALTIPLANO_BOARD=",
                                       "ALTIPLANO_END_TIME=", "ALTIPLANO_TERMINAL_COLUMNS=", "ALTIPLANO_PLAN="};
  std::vector<std::string> result;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (std::ranges::none_of(kOwn, [&](std::string_view name) { return text.starts_with(name); }))
      result.emplace_back(text);
  }
  result.push_back(fmt::format("ALTIPLANO_RANK={}", rank));
  result.push_back(fmt::format("ALTIPLANO_WORLD_SIZE={}", request.ranks));
  result.push_back("ALTIPLANO_RENDEZVOUS=" + places.rendezvous);
  result.push_back("ALTIPLANO_JOB_ID=" + places.job_id);
  if (request.ranks_report) result.push_back("ALTIPLANO_BOARD=" + places.board);
  if (!places.plan.empty()) result.push_back("ALTIPLANO_PLAN=" + places.plan);
  result.push_back(fmt::format("ALTIPLANO_THREADS={}", threads_of_rank(request)));
  result.push_back(fmt::format("ALTIPLANO_END_TIME={}", request.end_time));
  winsize size{};
  if (isatty(request.console_out) != 0 && ioctl(request.console_out, TIOCGWINSZ, &size) == 0)
    result.push_back(fmt::format("ALTIPLANO_TERMINAL_COLUMNS={}", size.ws_col));
  return result;
}

/// The line that parts the runs of a log.
std::string log_header(const std::string& job_id, int rank, int ranks) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return fmt::format("== job {}, rank {} of {} on {}, {:%Y-%m-%d %H:%M:%S}, altiplano {}\n", job_id, rank, ranks,
                     short_host_name(), local, ALTIPLANO_VERSION);
}

/// "rank 5 (n3, local 5)"
std::string who(int rank) {
  return names_of_ranks({rank}, short_host_name());
}

/// "killed by signal 9 (Killed)"
std::string signal_text(int number) {
  return fmt::format("signal {} ({})", number, strsignal(number));
}

/// The rank that an error is about when it begins with its name, "rank 5 (n3, local 1) died: ..."; else `own`.
int blamed_rank(const std::string& error, int own) {
  constexpr std::string_view kWord = "rank ";
  const size_t space = error.find(" (", kWord.size());
  if (!error.starts_with(kWord) || space == std::string::npos) return own;
  const auto number = parse_int(error.substr(kWord.size(), space - kWord.size()));
  return number ? static_cast<int>(*number) : own;
}

/// Whether an error of rank `own` only says that another rank failed.
bool reports_another(const std::string& error, int own) {
  return blamed_rank(error, own) != own || error.find(" failed first: ") != std::string::npos;
}

class Supervisor {
 public:
  explicit Supervisor(const LaunchRequest& request) : request_(request) {}

  Status start() {
    ALTIPLANO_ASSIGN(server_, RendezvousServer::listen(request_.ranks));
    ALTIPLANO_ASSIGN(RankBoard board, RankBoard::create(request_.ranks));
    board_.emplace(std::move(board));
    const std::string job_id =
        request_.job_id.empty() ? fmt::format("local-{}-{}", getpid(), random_hex(4)) : request_.job_id;
    JobPlaces places{job_id, server_->address(), board_->address(), {}};
    if (!request_.plan.empty()) {
      ALTIPLANO_ASSIGN(MemoryFile file, MemoryFile::create("altiplano-plan", request_.plan));
      plan_.emplace(std::move(file));
      places.plan = plan_->address();
    }
    for (int rank = 0; rank < request_.ranks; ++rank) {
      RankStart start;
      start.command = request_.command;
      start.environment = environment_of(rank, request_, places);
      start.log_file = fmt::format("{}/rank-{}.log", request_.log_directory, rank);
      start.log_header = log_header(job_id, rank, request_.ranks);
      start.stop_signals_blocked = request_.ranks_report;
      if (request_.pin_cpus) start.cpus = share_of_cpus(rank, request_.ranks);
      ALTIPLANO_ASSIGN(RankProcess process, RankProcess::start(rank, start));
      ranks_.push_back(std::move(process));
    }
    server_->serve();
    return Status::ok();
  }

  LaunchOutcome watch() {
    while (!is_over()) {
      wait_for_news();
      while (const auto number = signals_.next())
        if (*number != SIGCHLD) pass_on(*number);
      take_note_of_requests();
      take_note_of_ends();
      take_note_of_stops();
      if (kill_at_ && Clock::now() >= *kill_at_) signal_all(SIGKILL);
    }
    LaunchOutcome result = outcome();
    show_other_errors(result);
    result.output_error = ranks_.front().console_error();
    return result;
  }

 private:
  struct Failure {
    int rank = 0, exit_code = 1;
    std::string how;  ///< "was killed by signal 9 (Killed) in step 12"
  };

  bool is_over() const {
    const bool all_ended =
        std::all_of(ranks_.begin(), ranks_.end(), [](const RankProcess& r) { return r.has_ended(); });
    const bool all_closed =
        std::all_of(ranks_.begin(), ranks_.end(), [](const RankProcess& r) { return r.has_closed(); });
    return all_ended && (all_closed || Clock::now() - last_end_ > kOutputGrace);
  }

  void wait_for_news() {
    std::vector<pollfd> polls = {{signals_.descriptor(), POLLIN, 0}};
    for (const RankProcess& rank : ranks_) {
      polls.push_back({rank.output(), POLLIN, 0});
      polls.push_back({rank.errors(), POLLIN, 0});
    }
    constexpr int kTick = 100;  // milliseconds; bounds how late a kill is
    if (poll(polls.data(), polls.size(), kTick) <= 0) return;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (polls[2 * i + 1].revents != 0) ranks_[i].forward_output(request_.console_out, request_.console_err);
      if (polls[2 * i + 2].revents != 0) ranks_[i].forward_errors(request_.console_err);
    }
  }

  void signal_all(int number) {
    for (const RankProcess& rank : ranks_) rank.signal(number);
  }

  void pass_on(int number) {
    interrupts_ += number == SIGINT ? 1 : 0;
    was_interrupted_ = interrupts_ > 1;
    if (!was_interrupted_) note_request(number, "");
    signal_all(was_interrupted_ ? SIGKILL : number);
  }

  /// A signal that came to a rank and not to the launcher.
  void take_note_of_requests() {
    if (!request_.ranks_report || request_was_noted_) return;
    for (const RankProcess& rank : ranks_)
      if (const int number = board_->stop_signal_of(rank.rank()); number != 0)
        return note_request(number, " by " + who(rank.rank()));
  }

  /// Steps may be long: that the wish was heard is said at once, and once for all ranks.
  void note_request(int number, const std::string& by) {
    if (!request_.ranks_report || request_was_noted_ || kill_at_) return;
    request_was_noted_ = true;
    const RankActivity activity = board_->of(0);
    if (activity.phase == RankPhase::kDone) return;
    const bool in_step = activity.phase == RankPhase::kTraining;
    tell(fmt::format("note: {} heard{}{}; {}, saved, and the run stops{}\n", signal_name(number), by, when(0),
                     in_step ? "this step is finished" : "at most one more step is made",
                     number == SIGINT ? " (once more: at once, without saving)" : ""));
  }

  /// On the console's stderr; one that is closed must not stop the job.
  void tell(const std::string& text) const {
    const std::string line_break = isatty(request_.console_err) != 0 ? "\n" : "";  // behind ^C, or a progress bar
    const std::string all = line_break + text;
    const ssize_t written = write(request_.console_err, all.data(), all.size());
    (void)written;
  }

  /// "in step 12", after a blank; nothing when the ranks do not report.
  std::string when(int rank) const {
    if (!request_.ranks_report) return {};
    const std::string text = to_string(board_->of(rank));
    return text.empty() ? " while starting" : " " + text;
  }

  /// What went wrong with a rank that has ended; nothing when all is well, or when we ended it.
  std::optional<Failure> failure_of(const RankProcess& rank) const {
    const int code = rank.exit_code();
    const bool we_ended_it =
        (kill_at_ || was_interrupted_) && (rank.ending_signal() == SIGTERM || rank.ending_signal() == SIGKILL);
    if (we_ended_it) return std::nullopt;
    if (rank.ending_signal() != 0)
      return Failure{rank.rank(), code, "was killed by " + signal_text(rank.ending_signal()) + when(rank.rank())};
    const bool is_good = code == 0 || code == kSavedAndStopped;
    if (!is_good) return Failure{rank.rank(), code, fmt::format("failed with exit code {}{}", code, when(rank.rank()))};
    if (!request_.ranks_report || board_->of(rank.rank()).phase == RankPhase::kDone) return std::nullopt;
    return Failure{rank.rank(), exit_code_of(StatusCode::kRuntimeFailure),
                   fmt::format("ended with exit code {} before the run was done{}", code, when(rank.rank()))};
  }

  void take_note_of_ends() {
    for (RankProcess& rank : ranks_) {
      if (rank.has_ended()) continue;
      rank.reap();
      if (!rank.has_ended()) continue;
      last_end_ = Clock::now();
      if (auto failure = failure_of(rank))
        failed_.push_back(std::move(*failure));
      else if (rank.exit_code() == kSavedAndStopped)
        stopped_early_ = true;
    }
    if (!failed_.empty()) end_all();
  }

  void end_all() {
    if (kill_at_) return;
    kill_at_ = Clock::now() + request_.kill_grace;
    server_->fail(fmt::format("{} failed first: it {}", who(failed_.front().rank), failed_.front().how));
    for (const RankProcess& rank : ranks_) rank.signal(rank.stopped() ? SIGKILL : SIGTERM);
  }

  void take_note_of_stops() {
    for (const RankProcess& rank : ranks_) {
      if (rank.has_ended()) continue;
      if (!rank.stopped()) {
        noted_stops_.erase(rank.rank());
        continue;
      }
      const auto& stopped = *rank.stopped();
      if (noted_stops_.insert(rank.rank()).second) note_stop(rank.rank(), stopped.signal);
      if (request_.stopped_limit.count() == 0 || kill_at_ || Clock::now() - stopped.since < request_.stopped_limit)
        continue;
      failed_.push_back(
          {rank.rank(), exit_code_of(StatusCode::kPeerStuck),
           fmt::format("was stopped by {} and did not go on for {:.1f} s{}", signal_text(stopped.signal),
                       std::chrono::duration<double>(request_.stopped_limit).count(), when(rank.rank()))});
      end_all();
    }
  }

  void note_stop(int rank, int signal) const {
    const std::string text = fmt::format("note: {} was stopped by {}{}; the others wait for it\n", who(rank),
                                         signal_text(signal), when(rank));
    const ssize_t written = write(request_.console_err, text.data(), text.size());
    (void)written;  // a closed terminal must not stop the job
  }

  /// Of a failure the message says once what the first rank said; that others heard of it is no news.
  void show_other_errors(const LaunchOutcome& result) const {
    for (const RankProcess& rank : ranks_)
      for (const std::string& error : rank.held_errors()) {
        const bool is_echo = !failed_.empty() && reports_another(error, rank.rank());
        if (is_echo || result.message.find(error) != std::string::npos) continue;
        const std::string text = fmt::format("{}error: {}\n", rank.console_prefix(), error);
        const ssize_t written = write(request_.console_err, text.data(), text.size());
        (void)written;  // it is in the log too
      }
  }

  /// The first to fail on its own; those that only report another's failure come last.
  const Failure& first_failure() const {
    for (const Failure& failure : failed_) {
      if (!reports_another(ranks_[static_cast<size_t>(failure.rank)].last_error(), failure.rank)) return failure;
    }
    return failed_.front();
  }

  LaunchOutcome outcome() const {
    LaunchOutcome result;
    if (failed_.empty() && was_interrupted_) {
      result.exit_code = 128 + SIGINT;
      result.message = "killed, as a second SIGINT asked; steps after the last checkpoint are lost";
      return result;
    }
    result.exit_code = stopped_early_ ? kSavedAndStopped : 0;
    if (failed_.empty()) return result;
    const Failure& first = first_failure();
    const std::string& error = ranks_[static_cast<size_t>(first.rank)].last_error();
    result.exit_code = first.exit_code;
    result.failed_rank = blamed_rank(error, first.rank);
    if (result.failed_rank != first.rank) {  // what it says of the other is all there is
      result.message = error;
      if (noted_stops_.contains(result.failed_rank)) result.message += "; its process is stopped (SIGSTOP)";
      return result;
    }
    result.message = who(first.rank) + " " + first.how;
    if (!error.empty()) result.message += ": " + error;
    return result;
  }

  const LaunchRequest& request_;
  SignalInbox signals_;  // before the server's thread, which inherits the mask
  std::unique_ptr<RendezvousServer> server_;
  std::optional<RankBoard> board_;
  std::optional<MemoryFile> plan_;
  std::vector<RankProcess> ranks_;
  std::vector<Failure> failed_;  // in the order of their ends
  std::set<int> noted_stops_;
  std::optional<Clock::time_point> kill_at_;
  Clock::time_point last_end_ = Clock::now();
  bool stopped_early_ = false, was_interrupted_ = false, request_was_noted_ = false;
  int interrupts_ = 0;
};

}  // namespace

int threads_of_rank(const LaunchRequest& request) {
  const int share = threads_per_rank(num_usable_cpus(), request.ranks);
  return request.cpus_per_rank > 0 ? std::min(request.cpus_per_rank, share) : share;
}

Result<LaunchOutcome> launch_ranks(const LaunchRequest& request) {
  if (request.ranks < 1) return invalid_argument("{}; at least 1", counted(request.ranks, "rank"));
  if (request.command.empty()) return invalid_argument("no command to launch");
  std::error_code error;
  std::filesystem::create_directories(request.log_directory, error);
  if (error) return runtime_failure("cannot make the log folder {}: {}", request.log_directory, error.message());
  Supervisor supervisor(request);
  ALTIPLANO_RETURN_IF_ERROR(supervisor.start());
  return supervisor.watch();
}

}  // namespace altiplano
