#pragma once
// What the launcher tells a rank, in environment variables. Without any of them a process is all of its job, unless
// another launcher started it (task_ranks.hpp).
//
//   ALTIPLANO_RANK, ALTIPLANO_WORLD_SIZE   place among the ranks
//   ALTIPLANO_RENDEZVOUS                   where they meet: unix:NAME:TOKEN
//   ALTIPLANO_JOB_ID                       unique per attempt, safe in file names
//   ALTIPLANO_BOARD                        where a rank says what it is doing: a path to memory of the launcher
//   ALTIPLANO_PLAN                         the plan, which the launcher has proved: a path to memory of the launcher
//   ALTIPLANO_THREADS                      this rank's share of the processors (OMP_NUM_THREADS wins)
//   ALTIPLANO_END_TIME                     when the run has to be over, in seconds since 1970; 0: no limit
//   ALTIPLANO_START                        how the supervisor (altiplano supervise) calls this start; absent: there is
//   none ALTIPLANO_HEARTBEATS, ALTIPLANO_SECRET where it listens, and what it wants to hear first
//   ALTIPLANO_BEAT_MILLISECONDS            how often a rank says what it does
//   ALTIPLANO_TERMINAL_COLUMNS             of the terminal that shows rank 0's output; absent: no terminal
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/api/comm.hpp"
#include "framework/cluster/rank_places.hpp"

namespace altiplano {

struct RankEnvironment {
  RankId rank{0};
  int world_size = 1;
  std::string rendezvous;  ///< empty: alone; "pmix": see task_ranks.hpp
  std::string job_id;
  std::string board;            ///< empty: nobody reads it
  std::string plan;             ///< path of the launcher's plan; empty: the rank makes its own
  int threads = 1;              ///< for computing
  int64_t end_time = 0;         ///< of a launched rank, in seconds since 1970; 0: no limit
  int terminal_columns = 0;     ///< 0: plain lines
  std::string start_name = {};  ///< "14.0.2": given by a supervisor, which knows that no other start lives; empty: none
  std::string heartbeats = {}, secret = {};  ///< of the supervisor; empty: there is none
  std::chrono::milliseconds beat_interval{1000};
  std::vector<std::string> hosts = {};  ///< of all ranks, by rank; empty: they share one
  RankPlaces places = {};               ///< of all ranks; empty: they share one host
};

using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> process_environment(const std::string& name);

/// Some variables but not all, or values that make no sense: names variable and value.
Result<RankEnvironment> rank_environment(const EnvironmentLookup& lookup = process_environment);

/// Meets the other ranks.
Result<std::unique_ptr<Rendezvous>> join_job(const RankEnvironment& environment);

/// Processors this process may run on.
int num_usable_cpus();
/// max(1, cpus / ranks).
int threads_per_rank(int cpus, int ranks);

}  // namespace altiplano
