// altiplano submit: a job file's section slurm as a batch script, and the script into the queue.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "framework/base/console.hpp"
#include "framework/base/text.hpp"
#include "framework/cli/commands.hpp"
#include "framework/cli/job_arguments.hpp"
#include "framework/cli/local_ranks.hpp"
#include "framework/plugin/registry.hpp"
#include "framework/storage/atomic_file.hpp"

namespace altiplano {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScheduler = "slurm";  // the one whose section the job file has

struct SubmitArguments {
  JobArguments job;
  TrainStart start;
  bool dry_run = false;
  std::vector<std::string> options;  ///< behind --
};

/// What the script is for, on the first node.
std::vector<std::string> command_of(const SubmitArguments& arguments, const Options& options) {
  const bool is_supervised = options.get_bool("slurm.supervise");
  std::vector<std::string> command = job_command(is_supervised ? "supervise" : "train", arguments.job);
  add_start_options(command, arguments.start);
  const bool requeues = options.get_bool("slurm.requeue") && options.get_int("slurm.chain") == 1;
  if (is_supervised && !requeues) command.emplace_back("--no-requeue");
  return command;
}

Result<BatchRequest> request_of(const SubmitArguments& arguments, const Options& options) {
  BatchRequest request;
  std::error_code error;
  request.folder = fs::current_path(error).string();
  if (error) return runtime_failure("the folder where this is called cannot be told: {}", error.message());
  request.log_folder = fs::absolute(options.get_string("run.dir")).lexically_normal().string() + "/logs";
  request.run_name = options.get_string("run.name");
  request.command = command_of(arguments, options);
  request.section = options.section(kScheduler);
  return request;
}

/// Each job of a chain waits for the one before it; what goes wrong says which were submitted.
Status submit_chain(const Scheduler& scheduler, Submission submission, int64_t links) {
  std::vector<std::string> jobs;
  for (int64_t link = 0; link < links; ++link) {
    auto job = scheduler.submit(submission);
    if (!job.is_ok())
      return Status(job.status())
          .with_context(jobs.empty() ? "while submitting " + submission.script
                                     : fmt::format("after jobs {} were submitted", join(jobs, ", ")));
    submission.after_job = *job;
    jobs.push_back(*job);
    print_out("submitted {}{}\n", *job, link == 0 ? "" : fmt::format(", to start after {}", jobs[jobs.size() - 2]));
  }
  return Status::ok();
}

Status submit(const SubmitArguments& arguments) {
  ALTIPLANO_ASSIGN(const JobConfig config, load_training_job(arguments.job, arguments.start));
  const Options& options = config.options;
  ALTIPLANO_ASSIGN(const Scheduler* scheduler,
                   PluginRegistry::instance().scheduler(std::string("scheduler/") + kScheduler));
  ALTIPLANO_ASSIGN(const BatchRequest request, request_of(arguments, options));
  ALTIPLANO_ASSIGN(const std::string text, scheduler->batch_script(request));
  if (arguments.dry_run) {
    print_out_text(text);
    return Status::ok();
  }
  std::error_code error;
  fs::create_directories(request.log_folder, error);
  if (error) return invalid_argument("{}: cannot be made: {}", request.log_folder, error.message());
  Submission submission;
  submission.script = options.get_string("run.dir") + "/job.sbatch";
  submission.options = arguments.options;
  ALTIPLANO_RETURN_IF_ERROR(write_named_file(submission.script, text));
  ALTIPLANO_RETURN_IF_ERROR(submit_chain(*scheduler, submission, options.get_int("slurm.chain")));
  const std::string run = shell_word(options.get_string("run.dir"));
  print_out("script    {}\nnext      altiplano status {}        altiplano logs {}\n", submission.script, run, run);
  return Status::ok();
}

}  // namespace

void add_submit_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<SubmitArguments>();
  CLI::App* command = add_command(app, "submit", "Send a job to Slurm, by the section slurm of its file", R"(
    altiplano submit job.yaml --dry-run
    altiplano submit job.yaml --set slurm.nodes=4 --set slurm.time=12:00:00
    altiplano submit job.yaml -- --partition=long --mail-type=END)");
  add_job_arguments(*command, arguments->job, JobFile::kPositionalToo);
  add_train_start(*command, arguments->start);
  command->add_flag("--dry-run", arguments->dry_run, "Print the script and submit nothing");
  command->add_option("options", arguments->options, "Behind --: options of sbatch, which go before the script's own")
      ->type_name("SBATCH-OPTION...");
  on_run(command, exit_code, [arguments] { return submit(*arguments); });
}

}  // namespace altiplano
