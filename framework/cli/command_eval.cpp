// altiplano eval: the loss of a checkpoint on a file, on one rank or several.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "framework/base/console.hpp"
#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/cli/commands.hpp"
#include "framework/cli/job_arguments.hpp"
#include "framework/cli/local_ranks.hpp"
#include "framework/runtime/evaluate.hpp"

namespace altiplano {
namespace {

struct EvalArguments {
  JobArguments job;
  std::string checkpoint, file, plan_file;
  int64_t batches = 0;
  int ranks = 1;
  bool json = false;
};

/// Of the degrees that the job names; the others are 1.
int ranks_of(const Options& options) {
  int64_t ranks = 1;
  for (const char* key :
       {"parallel.data_parallel_size", "parallel.tensor_parallel_size", "parallel.pipeline_parallel_size"})
    if (options.has(key)) ranks *= options.get_int(key);
  return static_cast<int>(ranks);
}

/// One rank evaluates any job; several need the degrees that the job names, or a plan.
Result<Job> prepare(const EvalArguments& arguments, int num_ranks, bool prints_notices) {
  JobArguments job = arguments.job;
  job.uses_validation = arguments.file.empty();
  ALTIPLANO_ASSIGN(JobConfig config, load_job(job, prints_notices));
  JobRequest request;
  request.num_ranks = num_ranks;
  if (num_ranks == 1 && arguments.plan_file.empty()) {
    ALTIPLANO_ASSIGN(const BatchSizes batch, job_batch(config.options, ranks_of(config.options)));
    request.batch = batch.global;
    ALTIPLANO_RETURN_IF_ERROR(plan_for_one_rank(config));
  }
  request.plan_file = arguments.plan_file;
  return prepare_job(std::move(config), request);
}

void print_result(const EvalArguments& arguments, const Checkpoint& checkpoint, const BatchSource& data,
                  const Evaluation& result) {
  const int64_t step = checkpoint.manifest().info.step;
  const std::string name = arguments.file.empty() ? "validation part of the job" : arguments.file;
  if (arguments.json) {
    nlohmann::json line = {{"checkpoint", checkpoint.path()},
                           {"step", step},
                           {"data", name},
                           {"loss", result.loss()},
                           {"perplexity", result.perplexity()},
                           {"tokens", result.tokens},
                           {"bits_per_byte", result.bits_per_byte()},
                           {"text_bytes", result.text_bytes}};
    print_out("{}\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  print_out("checkpoint  step {} in {}\n", step, checkpoint.path());
  print_out("data        {}, {} of {}\n", name, counted(data.num_validation_samples(), "sample"),
            counted(data.seq_length(), "token"));
  print_out("loss        {:.4f} nats per token over {}\n", result.loss(), counted(result.tokens, "token"));
  print_out("perplexity  {:.4g}\n", result.perplexity());
  if (result.text_bytes > 0)
    print_out("bits/byte   {:.4f} over {} of text\n", result.bits_per_byte(), counted(result.text_bytes, "byte"));
}

Status run_rank(const EvalArguments& arguments, const RankEnvironment& environment, Rendezvous& rendezvous) {
  const bool is_first = environment.rank.value == 0;
  ALTIPLANO_ASSIGN(const Job job, prepare(arguments, environment.world_size, environment.rendezvous.empty()));
  ALTIPLANO_ASSIGN(const BatchSource data, open_evaluation_data(job, arguments.file));
  // The launcher has checked every byte of the checkpoint it names.
  const bool is_named = !environment.rendezvous.empty() && !arguments.checkpoint.empty();
  auto found = is_named ? Checkpoint::open(arguments.checkpoint, CheckLevel::kSizes)
                        : find_model_checkpoint(job.config.options, arguments.checkpoint);
  ALTIPLANO_ASSIGN(const Checkpoint checkpoint, std::move(found));
  ALTIPLANO_ASSIGN(auto model, RankModel::open(job, environment, rendezvous, false));
  auto body = [&]() -> Status {
    ALTIPLANO_RETURN_IF_ERROR(model->load(checkpoint));
    ALTIPLANO_ASSIGN(Evaluation result, evaluate(*model, job, data, arguments.batches));
    if (!is_first) return Status::ok();
    ALTIPLANO_ASSIGN(result.text_bytes, count_text_bytes(data, job.plan.global_batch, arguments.batches));
    print_result(arguments, checkpoint, data, result);
    return Status::ok();
  };
  Status status = body();
  if (!status.is_ok()) model->abort(status);
  return status;
}

/// What can be refused is refused here, once, before a rank starts.
Result<LocalRanks> check(const EvalArguments& arguments) {
  ALTIPLANO_ASSIGN(const Job job, prepare(arguments, arguments.ranks, true));
  ALTIPLANO_RETURN_IF_ERROR(open_evaluation_data(job, arguments.file).status());
  ALTIPLANO_ASSIGN(const Checkpoint checkpoint, find_model_checkpoint(job.config.options, arguments.checkpoint));
  LocalRanks ranks{arguments.ranks, job_command("eval", arguments.job),
                   job.config.options.get_string("run.dir") + "/logs/eval"};
  auto add = [&](std::vector<std::string> words) {
    ranks.command.insert(ranks.command.end(), words.begin(), words.end());
  };
  add({"--checkpoint", checkpoint.path()});
  if (!arguments.file.empty()) add({"--file", arguments.file});
  if (!arguments.plan_file.empty()) add({"--plan", arguments.plan_file});
  if (arguments.batches > 0) add({"--batches", std::to_string(arguments.batches)});
  if (arguments.json) add({"--json"});
  return ranks;
}

}  // namespace

void add_eval_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<EvalArguments>();
  CLI::App* command = add_command(app, "eval", "Loss, perplexity and bits per byte of a checkpoint on a file", R"(
    altiplano eval -c configs/jobs/quickstart.yaml
    altiplano eval -n 2 -c job.yaml --file data/other.h5
    altiplano eval -c job.yaml --checkpoint runs/job/checkpoints/step-00000400 --json)");
  add_job_arguments(*command, arguments->job);
  command->add_option("--file", arguments->file, "Token file (default: the validation part of the job, all of it)")
      ->type_name("FILE");
  command
      ->add_option("--checkpoint", arguments->checkpoint,
                   "A checkpoint, or a directory of them (default: the newest of the job)")
      ->type_name("PATH");
  command->add_option("--batches", arguments->batches, "Only so many global batches, as train.validation_batches")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  command->add_option("-n,--ranks", arguments->ranks, "Ranks of this host (default 1)")
      ->check(CLI::Range(1, 4096))
      ->type_name("RANKS");
  command->add_option("--plan", arguments->plan_file, "Take this plan instead of planning")->type_name("FILE");
  command->add_flag("--json", arguments->json, "One line of JSON");
  on_local_ranks(
      command, exit_code, arguments->ranks, [arguments] { return check(*arguments); },
      [arguments](const RankEnvironment& environment, Rendezvous& rendezvous) {
        return run_rank(*arguments, environment, rendezvous);
      });
}

}  // namespace altiplano
