#include "framework/cli/node_watch.hpp"

#include <algorithm>
#include <filesystem>
#include <thread>

#include "framework/base/console.hpp"
#include "framework/base/text.hpp"
#include "framework/launch/inproc_rendezvous.hpp"
#include "framework/launch/rank_beats.hpp"
#include "framework/launch/socket_message.hpp"
#include "framework/launch/stop_signal.hpp"

namespace altiplano {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr auto kAgentsLimit = std::chrono::seconds(60);  // for all agents to be there at the start

std::string limit_text(std::chrono::milliseconds time) {
  return fmt::format("{:.0f} s", std::chrono::duration<double>(time).count());
}

/// " (the workload manager calls it mixed)": what the workload manager believes of a host, often for minutes; empty
/// when it says nothing.
std::string word_of_scheduler(const Scheduler& scheduler, const std::string& host) {
  const auto states = scheduler.node_states({host}, std::chrono::seconds(5));
  if (!states.is_ok() || states->empty()) return {};
  return fmt::format(" (the workload manager calls it {})", states->front().state);
}

}  // namespace

std::string own_program() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

Result<ChildProcess> start_step(const Scheduler& scheduler, const StepRequest& request,
                                const std::vector<std::string>& environment) {
  ALTIPLANO_ASSIGN(const std::vector<std::string> command, scheduler.step_command(request));
  return ChildProcess::start({.command = command, .environment = environment});
}

Result<std::unique_ptr<NodeWatch>> NodeWatch::start(const SupervisedJob& job, const Story& story) {
  std::unique_ptr<NodeWatch> watch(new NodeWatch(job, story));
  watch->secret_ = random_hex(32);
  ALTIPLANO_ASSIGN(watch->server_, HeartbeatServer::listen(watch->secret_, job.allocation.hosts));
  watch->agents_.emplace([nodes = watch.get()](const auto& hosts) { return nodes->start_agents(hosts); });
  ALTIPLANO_RETURN_IF_ERROR(watch->agents_->start(job.allocation.hosts));
  return watch;
}

Result<ChildProcess> NodeWatch::start_agents(const std::vector<std::string>& hosts) const {
  StepRequest request;
  request.hosts = hosts;
  request.are_ranks = false;
  request.command = {own_program(),  "agent",
                     "--run",        job_.run_directory,
                     "--job",        job_.allocation.job_id,
                     "--supervisor", short_host_name(),
                     "--restarts",   fmt::to_string(job_.allocation.restart_count),
                     "--deadline",   fmt::format("{:.1f}", std::chrono::duration<double>(job_.deadline).count())};
  return start_step(*job_.scheduler.scheduler, request, environment());
}

std::vector<std::string> NodeWatch::environment() const {
  return {"ALTIPLANO_SECRET=" + secret_, "ALTIPLANO_HEARTBEATS=" + server_->address()};
}

void NodeWatch::tend() {
  constexpr auto kSignEvery = std::chrono::seconds(1);
  if (Clock::now() - last_sign_ >= kSignEvery) {
    last_sign_ = Clock::now();
    const Allocation& job = job_.allocation;
    const std::string sign = fmt::format("{}.{} {}", job.job_id, job.restart_count, ++signs_);
    const Status written = write_sign_of_life(job_.run_directory, sign);
    if (!written) print_err("note: {}\n", written.to_string());
  }
  for (const std::string& refusal : server_->take_refusals()) story_.tell(refusal);
  agents_->tend(lost_);
  std::this_thread::sleep_for(kTick);
}

void NodeWatch::give_up(const std::string& host, const std::string& why) {
  lost_.insert(host);
  story_.tell(fmt::format("{}: it is given up{}", why, word_of_scheduler(*job_.scheduler.scheduler, host)));
}

void NodeWatch::await_agents() {
  const auto& hosts = job_.allocation.hosts;
  const auto until = Clock::now() + kAgentsLimit;
  while (!unheard_hosts(hosts, server_->last_heard()).empty() && Clock::now() < until && stop_signal() == 0) tend();
  if (stop_signal() != 0) return;
  for (const std::string& host : unheard_hosts(hosts, server_->last_heard()))
    give_up(host, fmt::format("{} did not answer within {}", host, limit_text(kAgentsLimit)));
}

bool NodeWatch::note_silent(const std::vector<std::string>& hosts) {
  for (const std::string& host :
       silent_hosts(job_.allocation.hosts, server_->last_heard(), lost_, Clock::now(), job_.deadline))
    give_up(host, fmt::format("nothing is heard from {} for {}", host, limit_text(job_.deadline)));
  return std::ranges::any_of(hosts, [&](const std::string& host) { return lost_.contains(host); });
}

void NodeWatch::await_news_of(const std::vector<std::string>& hosts) {
  const auto since = Clock::now();
  for (const auto until = since + 2 * job_.deadline; Clock::now() < until; tend()) {
    (void)note_silent(hosts);
    if (is_known_of_all(hosts, server_->last_heard(), lost_, since)) return;
  }
}

std::string NodeWatch::who_stands_still(const std::string& start, std::chrono::milliseconds limit) const {
  return standing_still(news_of_ranks(*server_, start), Clock::now(), limit);
}

void NodeWatch::end_ranks(const std::string& start) {
  constexpr auto kEndLimit = std::chrono::seconds(60);
  server_->end_ranks(start);
  for (const auto until = Clock::now() + kEndLimit; Clock::now() < until; tend())
    if (still_there(news_of_ranks(*server_, start), lost_).empty()) return;
  story_.tell(fmt::format("start {} is over, and after {} there is still {}", start, limit_text(kEndLimit),
                          still_there(news_of_ranks(*server_, start), lost_)));
}

}  // namespace altiplano
