#include "framework/cli/job_start.hpp"

#include "framework/base/text.hpp"
#include "framework/cli/job_arguments.hpp"
#include "framework/runtime/comm_choice.hpp"
#include "framework/runtime/job_placement.hpp"
#include "framework/runtime/kernel_choice.hpp"
#include "framework/runtime/output_folders.hpp"
#include "framework/runtime/time_budget.hpp"
#include "framework/runtime/trainer.hpp"

namespace altiplano {

Result<Job> prepare_for_ranks(JobConfig config, const JobRequest& request, int num_hosts, RunFolder folder) {
  ALTIPLANO_ASSIGN(Job job, prepare_job(std::move(config), request));
  print_notices(job.notices);
  const Options& options = job.config.options;
  ALTIPLANO_RETURN_IF_ERROR(check_can_start(job));
  ALTIPLANO_ASSIGN(const std::string comm, choose_comm_backend(options, {request.num_ranks, num_hosts}));
  ALTIPLANO_RETURN_IF_ERROR(PluginRegistry::instance().comm(comm).status());
  ALTIPLANO_RETURN_IF_ERROR(check_can_write(options, request.num_ranks, folder));
  ALTIPLANO_RETURN_IF_ERROR(place_ranks(job, request.places));
  ALTIPLANO_RETURN_IF_ERROR(verify_programs(job.programs));
  job.is_proved = true;
  ALTIPLANO_ASSIGN(const KernelChoice kernels, choose_job_kernels(job, KernelStart::kResume));
  print_notices(kernels.notices);
  return job;
}

Result<int64_t> end_of_run(const Options& options, const JobAllocation& job, double started) {
  ALTIPLANO_ASSIGN(const TimeLimit limit, time_limit(options));
  std::vector<std::string> notices;
  const int64_t end = limit.is_none ? 0 : end_of_job(job, notices);
  print_notices(notices);
  return run_end(options, end, started);
}

Result<FirstRanksWord> hear_first_rank(Rendezvous& rendezvous, const std::function<Result<std::string>()>& make) {
  constexpr auto kPlanningLimit = std::chrono::minutes(10);  // planning and measuring kernels
  constexpr const char* kKey = "launch/word";
  FirstRanksWord word;
  if (rendezvous.rank().value == 0) {
    auto made = make();
    word.status = made.status();
    if (made.is_ok()) word.text = std::move(made).value();
    const std::string told = word.status.is_ok() ? word.text : word.status.to_string();
    ALTIPLANO_RETURN_IF_ERROR(rendezvous.put(kKey, fmt::format("{}:{}", static_cast<int>(word.status.code()), told)));
  }
  ALTIPLANO_RETURN_IF_ERROR(rendezvous.fence(kPlanningLimit));
  if (rendezvous.rank().value == 0) return word;
  ALTIPLANO_ASSIGN(const std::string told, rendezvous.get(RankId(0), kKey));
  const size_t colon = told.find(':');
  const auto code = static_cast<StatusCode>(parse_int(told.substr(0, colon)).value_or(0));
  word.text = told.substr(colon + 1);
  if (code != StatusCode::kOk) word.status = Status(code, word.text);
  return word;
}

}  // namespace altiplano
