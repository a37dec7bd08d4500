#pragma once
// What squeue, sinfo, scontrol and sbatch answer. Reading an answer is a pure function; asking runs the program, with a
// limit, and names it when it does not answer.
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "framework/api/scheduler.hpp"

namespace altiplano::slurm {

/// One job's line of `squeue --Format` as ask_job() asks for it: fields by columns, times in seconds since 1970.
Result<JobState> parse_job_state(std::string_view line);
/// Lines "host|state" of sinfo, some of them more than once (a node in several partitions).
std::vector<NodeState> parse_node_states(std::string_view text);

Result<JobState> ask_job(const std::string& job_id, std::chrono::milliseconds limit);
Result<std::vector<NodeState>> ask_nodes(const std::vector<std::string>& hosts, std::chrono::milliseconds limit);
Status ask_requeue(const std::string& job_id, std::chrono::milliseconds limit);
Result<std::string> ask_submit(const Submission& submission);

}  // namespace altiplano::slurm
