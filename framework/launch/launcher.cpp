#include "framework/launch/launcher.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>

#include "framework/launch/inproc_rendezvous.hpp"
#include "framework/launch/local_rendezvous.hpp"
#include "framework/launch/rank_environment.hpp"
#include "framework/launch/rank_process.hpp"
#include "framework/launch/socket_message.hpp"

namespace altiplano {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSavedAndStopped = 75;
constexpr auto kOutputGrace = std::chrono::seconds(2);  // for output of ranks that have ended

/// Signals arrive as data while this lives.
class SignalInbox {
 public:
  SignalInbox() {
    sigset_t set;
    sigemptyset(&set);
    for (int number : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGCHLD}) sigaddset(&set, number);
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

std::vector<std::string> environment_of(int rank, const LaunchRequest& request, const std::string& address,
                                        const std::string& job_id) {
  std::vector<std::string> result;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (std::string_view text = *variable;
        !text.starts_with("ALTIPLANO_RANK=") && !text.starts_with("ALTIPLANO_WORLD_SIZE=") &&
        !text.starts_with("ALTIPLANO_RENDEZVOUS=") && !text.starts_with("ALTIPLANO_JOB_ID=") &&
        !text.starts_with("ALTIPLANO_THREADS=") && !text.starts_with("ALTIPLANO_TERMINAL_COLUMNS="))
      result.emplace_back(text);
  result.push_back(fmt::format("ALTIPLANO_RANK={}", rank));
  result.push_back(fmt::format("ALTIPLANO_WORLD_SIZE={}", request.ranks));
  result.push_back("ALTIPLANO_RENDEZVOUS=" + address);
  result.push_back("ALTIPLANO_JOB_ID=" + job_id);
  result.push_back(fmt::format("ALTIPLANO_THREADS={}", threads_per_rank(num_usable_cpus(), request.ranks)));
  winsize size{};
  if (isatty(request.console_out) != 0 && ioctl(request.console_out, TIOCGWINSZ, &size) == 0)
    result.push_back(fmt::format("ALTIPLANO_TERMINAL_COLUMNS={}", size.ws_col));
  return result;
}

class Supervisor {
 public:
  explicit Supervisor(const LaunchRequest& request) : request_(request) {}

  Status start() {
    ALTIPLANO_ASSIGN(server_, RendezvousServer::listen(request_.ranks));
    const std::string job_id =
        request_.job_id.empty() ? fmt::format("local-{}-{}", getpid(), random_hex(4)) : request_.job_id;
    for (int rank = 0; rank < request_.ranks; ++rank) {
      RankStart start;
      start.command = request_.command;
      start.environment = environment_of(rank, request_, server_->address(), job_id);
      start.log_file = fmt::format("{}/rank-{}.log", request_.log_directory, rank);
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
      take_note_of_ends();
      if (kill_at_ && Clock::now() >= *kill_at_) signal_all(SIGKILL);
    }
    return outcome();
  }

 private:
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
      if (polls[2 * i + 1].revents != 0) ranks_[i].forward_output(request_.console_out);
      if (polls[2 * i + 2].revents != 0) ranks_[i].forward_errors(request_.console_err);
    }
  }

  void signal_all(int number) {
    for (const RankProcess& rank : ranks_) rank.signal(number);
  }

  void pass_on(int number) {
    interrupts_ += number == SIGINT ? 1 : 0;
    signal_all(interrupts_ > 1 ? SIGKILL : number);
  }

  void take_note_of_ends() {
    for (RankProcess& rank : ranks_) {
      if (rank.has_ended()) continue;
      rank.reap();
      if (!rank.has_ended()) continue;
      last_end_ = Clock::now();
      const int code = rank.exit_code();
      if (code == kSavedAndStopped) stopped_early_ = true;
      if (code == 0 || code == kSavedAndStopped) continue;
      const bool we_ended_it = kill_at_ && (rank.ending_signal() == SIGTERM || rank.ending_signal() == SIGKILL);
      if (!we_ended_it) failed_.push_back(rank.rank());
    }
    if (failed_.empty() || kill_at_) return;
    kill_at_ = Clock::now() + request_.kill_grace;
    signal_all(SIGTERM);
  }

  /// The first to fail on its own; those that only report another's failure come last.
  const RankProcess& first_failed() const {
    for (int rank : failed_)
      if (ranks_[static_cast<size_t>(rank)].last_error().find(" failed first: ") == std::string::npos)
        return ranks_[static_cast<size_t>(rank)];
    return ranks_[static_cast<size_t>(failed_.front())];
  }

  LaunchOutcome outcome() const {
    LaunchOutcome result;
    result.exit_code = stopped_early_ ? kSavedAndStopped : 0;
    if (failed_.empty()) return result;
    const RankProcess& rank = first_failed();
    result.exit_code = rank.exit_code();
    result.failed_rank = rank.rank();
    const std::string how =
        rank.ending_signal() != 0
            ? fmt::format("was killed by signal {} ({})", rank.ending_signal(), strsignal(rank.ending_signal()))
            : fmt::format("failed with exit code {}", rank.exit_code());
    result.message = fmt::format("rank {} ({}, local {}) {}", rank.rank(), short_host_name(), rank.rank(), how);
    if (!rank.last_error().empty()) result.message += ": " + rank.last_error();
    return result;
  }

  const LaunchRequest& request_;
  SignalInbox signals_;  // before the server's thread, which inherits the mask
  std::unique_ptr<RendezvousServer> server_;
  std::vector<RankProcess> ranks_;
  std::vector<int> failed_;  // in the order of their ends
  std::optional<Clock::time_point> kill_at_;
  Clock::time_point last_end_ = Clock::now();
  bool stopped_early_ = false;
  int interrupts_ = 0;
};

}  // namespace

Result<LaunchOutcome> launch_ranks(const LaunchRequest& request) {
  if (request.ranks < 1) return invalid_argument("{} ranks; at least 1", request.ranks);
  if (request.command.empty()) return invalid_argument("no command to launch");
  std::error_code error;
  std::filesystem::create_directories(request.log_directory, error);
  if (error) return runtime_failure("cannot make the log folder {}: {}", request.log_directory, error.message());
  Supervisor supervisor(request);
  ALTIPLANO_RETURN_IF_ERROR(supervisor.start());
  return supervisor.watch();
}

}  // namespace altiplano
