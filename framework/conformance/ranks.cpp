#include "framework/conformance/ranks.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <mutex>
#include <thread>

#include "framework/launch/inproc_rendezvous.hpp"
#include "framework/launch/local_rendezvous.hpp"

namespace altiplano::conformance {
namespace {

Status run_guarded(const RankFunction& function, Rendezvous& rendezvous) try {
  return function(rendezvous);
} catch (const std::exception& e) {
  return runtime_failure("exception: {}", e.what());
}

void write_status(int pipe, const Status& status) {
  const std::string text = std::string(1, static_cast<char>('0' + static_cast<int>(status.code()))) + status.message();
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t n = write(pipe, text.data() + sent, text.size() - sent);
    if (n <= 0) return;
    sent += static_cast<size_t>(n);
  }
}

[[noreturn]] void run_child(const RankFunction& function, const std::string& address, int rank, int ranks, int pipe) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto rendezvous = connect_local_rendezvous(address, RankId(rank), ranks, "test");
  write_status(pipe, rendezvous.is_ok() ? run_guarded(function, **rendezvous) : rendezvous.status());
  _exit(0);
}

Status read_status(int pipe, pid_t child) {
  std::string text;
  char chunk[512];
  for (ssize_t n = 0; (n = read(pipe, chunk, sizeof(chunk))) > 0;) text.append(chunk, static_cast<size_t>(n));
  close(pipe);
  int how = 0;
  waitpid(child, &how, 0);
  if (WIFSIGNALED(how)) return runtime_failure("killed by signal {}", WTERMSIG(how));
  if (text.empty()) return runtime_failure("exit code {} without a status", WEXITSTATUS(how));
  const auto code = static_cast<StatusCode>(text[0] - '0');
  return code == StatusCode::kOk ? Status::ok() : Status(code, text.substr(1));
}

}  // namespace

namespace {

Rendezvous* the_launched_ranks = nullptr;

/// Every process learns how all of them fared, so that they go on alike.
Result<std::vector<Status>> exchange_statuses(Rendezvous& world, const Status& mine) {
  constexpr auto kDeadline = std::chrono::minutes(2);
  ALTIPLANO_RETURN_IF_ERROR(
      world.put("status", std::string(1, static_cast<char>('0' + static_cast<int>(mine.code()))) + mine.message()));
  ALTIPLANO_RETURN_IF_ERROR(world.fence(kDeadline));
  std::vector<Status> statuses;
  for (int rank = 0; rank < world.world_size(); ++rank) {
    ALTIPLANO_ASSIGN(const std::string text, world.get(RankId(rank), "status"));
    const auto code = static_cast<StatusCode>(text[0] - '0');
    statuses.push_back(code == StatusCode::kOk ? Status::ok() : Status(code, text.substr(1)));
  }
  return statuses;
}

std::vector<Status> run_launched_all(int ranks, const RankFunction& function) {
  Rendezvous& world = *the_launched_ranks;
  if (ranks != world.world_size()) {
    ++launched_runs().left_out;
    return std::vector<Status>(static_cast<size_t>(ranks));
  }
  ++launched_runs().run;
  auto statuses = exchange_statuses(world, run_guarded(function, world));
  return statuses.is_ok() ? *statuses : std::vector<Status>(static_cast<size_t>(ranks), statuses.status());
}

}  // namespace

void use_launched_ranks(Rendezvous& world) {
  the_launched_ranks = &world;
}

LaunchedRuns& launched_runs() {
  static LaunchedRuns runs;
  return runs;
}

Rendezvous* launched_ranks() {
  return the_launched_ranks;
}

std::vector<Status> run_ranks_all(int ranks, const RankFunction& function) {
  auto world = std::make_shared<InprocWorld>(ranks);
  std::vector<Status> statuses(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      InprocRendezvous rendezvous(world, RankId(rank));
      statuses[static_cast<size_t>(rank)] = run_guarded(function, rendezvous);
    });
  for (auto& thread : threads) thread.join();
  return statuses;
}

Status run_ranks(int ranks, const RankFunction& function) {
  std::mutex mutex;
  Status first;
  run_ranks_all(ranks, [&](Rendezvous& rendezvous) {
    Status status = run_guarded(function, rendezvous);
    std::lock_guard lock(mutex);
    if (!status.is_ok() && first.is_ok()) (first = status).with_context(fmt::format("on rank {}", rendezvous.rank()));
    return status;
  });
  return first;
}

std::vector<Status> run_processes_all(int ranks, const RankFunction& function) {
  auto server = RendezvousServer::listen(ranks);
  if (!server.is_ok()) return {server.status()};
  std::vector<std::pair<pid_t, int>> children;
  for (int rank = 0; rank < ranks; ++rank) {
    int pipes[2];
    if (pipe(pipes) != 0) return {runtime_failure("pipe: {}", std::strerror(errno))};
    const pid_t child = fork();
    if (child == 0) {
      close(pipes[0]);
      run_child(function, (*server)->address(), rank, ranks, pipes[1]);
    }
    close(pipes[1]);
    children.emplace_back(child, pipes[0]);
  }
  (*server)->serve();
  std::vector<Status> statuses;
  for (const auto& [child, pipe] : children) statuses.push_back(read_status(pipe, child));
  return statuses;
}

std::vector<Status> run_ranks_all(int ranks, const RankFunction& function, RanksAre ranks_are) {
  switch (ranks_are) {
    case RanksAre::kThreads:
      return run_ranks_all(ranks, function);
    case RanksAre::kProcesses:
      return run_processes_all(ranks, function);
    case RanksAre::kHosts:
      return run_processes_all(ranks, [&](Rendezvous& rendezvous) {
        RanksOnHosts hosts(rendezvous, 1);
        return function(hosts);
      });
    case RanksAre::kLaunched:
      return run_launched_all(ranks, function);
  }
  return {};
}

std::vector<Status> run_backend_all(int ranks, CommBackend& backend, const CommOptions& options,
                                    const CommunicatorFunction& function, RanksAre ranks_are) {
  const auto connected = [&](Rendezvous& rendezvous) -> Status {
    ALTIPLANO_ASSIGN(auto communicator, backend.connect(rendezvous, options));
    return function(*communicator);
  };
  return run_ranks_all(ranks, connected, ranks_are);
}

Status first_failure(const std::vector<Status>& statuses) {
  for (size_t rank = 0; rank < statuses.size(); ++rank) {
    Status status = statuses[rank];
    if (!status.is_ok()) return status.with_context(fmt::format("on rank {}", rank));
  }
  return Status::ok();
}

}  // namespace altiplano::conformance
