#include "framework/launch/rank_environment.hpp"

#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "framework/base/text.hpp"
#include "framework/launch/local_rendezvous.hpp"
#include "framework/launch/socket_message.hpp"

namespace altiplano {
namespace {

/// A whole number in [minimum, maximum], or the refusal.
template <typename Integer = int>
Result<Integer> number(const std::string& name, const std::string& text, int64_t minimum, int64_t maximum) {
  const auto value = parse_int(text);
  if (!value || *value < minimum || *value > maximum)
    return invalid_argument("{}: '{}' is not a whole number in {}..{}", name, text, minimum, maximum);
  return static_cast<Integer>(*value);
}

constexpr int64_t kMostRanks = 1 << 20;
constexpr int64_t kMostThreads = 1 << 16;
constexpr int64_t kLastTime = int64_t{1} << 40;  // in 36,000 years

Result<int> threads(const EnvironmentLookup& lookup) {
  if (const auto text = lookup("OMP_NUM_THREADS"); text && !text->empty())
    return number("OMP_NUM_THREADS", trim(split(*text, ',').front()), 1, kMostThreads);
  if (const auto text = lookup("ALTIPLANO_THREADS")) return number("ALTIPLANO_THREADS", *text, 1, kMostThreads);
  return num_usable_cpus();
}

int columns_of_own_terminal() {
  winsize size{};
  return isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

Status hear_of_supervisor(const EnvironmentLookup& lookup, RankEnvironment& environment) {
  constexpr int64_t kSlowest = 3'600'000;
  environment.start_name = lookup("ALTIPLANO_START").value_or("");
  environment.heartbeats = lookup("ALTIPLANO_HEARTBEATS").value_or("");
  environment.secret = lookup("ALTIPLANO_SECRET").value_or("");
  const auto interval = lookup("ALTIPLANO_BEAT_MILLISECONDS");
  if (!interval) return Status::ok();
  ALTIPLANO_ASSIGN(const int milliseconds, number("ALTIPLANO_BEAT_MILLISECONDS", *interval, 1, kSlowest));
  environment.beat_interval = std::chrono::milliseconds(milliseconds);
  return Status::ok();
}

Result<RankEnvironment> alone(RankEnvironment environment) {
  environment.job_id = fmt::format("single-{}-{}", getpid(), random_hex(4));
  environment.terminal_columns = columns_of_own_terminal();
  return environment;
}

}  // namespace

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

int num_usable_cpus() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? std::max(CPU_COUNT(&set), 1) : 1;
}

int threads_per_rank(int cpus, int ranks) {
  return std::max(cpus / ranks, 1);
}

Result<RankEnvironment> rank_environment(const EnvironmentLookup& lookup) {
  RankEnvironment environment;
  ALTIPLANO_ASSIGN(environment.threads, threads(lookup));
  ALTIPLANO_RETURN_IF_ERROR(hear_of_supervisor(lookup, environment));
  std::vector<std::string> values, missing;
  for (const char* name : {"ALTIPLANO_RANK", "ALTIPLANO_WORLD_SIZE", "ALTIPLANO_RENDEZVOUS", "ALTIPLANO_JOB_ID"}) {
    const auto value = lookup(name);
    values.push_back(value.value_or(""));
    if (!value || value->empty()) missing.emplace_back(name);
  }
  if (missing.size() == values.size()) return alone(environment);
  if (!missing.empty())
    return invalid_argument(
        "{} not set while other variables of a launched rank are; start ranks with altiplano launch",
        join(missing, ", "));
  ALTIPLANO_ASSIGN(environment.world_size, number("ALTIPLANO_WORLD_SIZE", values[1], 1, kMostRanks));
  ALTIPLANO_ASSIGN(const int rank, number("ALTIPLANO_RANK", values[0], 0, environment.world_size - 1));
  environment.rank = RankId(rank);
  environment.rendezvous = values[2];
  environment.job_id = values[3];
  environment.board = lookup("ALTIPLANO_BOARD").value_or("");
  environment.plan = lookup("ALTIPLANO_PLAN").value_or("");
  if (const auto end = lookup("ALTIPLANO_END_TIME")) {
    ALTIPLANO_ASSIGN(environment.end_time, number<int64_t>("ALTIPLANO_END_TIME", *end, 0, kLastTime));
  }
  if (const auto columns = lookup("ALTIPLANO_TERMINAL_COLUMNS")) {
    ALTIPLANO_ASSIGN(environment.terminal_columns, number("ALTIPLANO_TERMINAL_COLUMNS", *columns, 0, 1 << 16));
  }
  return environment;
}

Result<std::unique_ptr<Rendezvous>> join_job(const RankEnvironment& environment) {
  if (environment.rendezvous.empty()) return single_rank_rendezvous(environment.job_id);
  return connect_local_rendezvous(environment.rendezvous, environment.rank, environment.world_size, environment.job_id);
}

}  // namespace altiplano
