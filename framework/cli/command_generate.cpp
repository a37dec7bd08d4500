// altiplano generate: text from a checkpoint, on one rank, whatever plan saved it.
#include <fmt/format.h>

#include <memory>

#include "framework/cli/commands.hpp"
#include "framework/cli/job_arguments.hpp"
#include "framework/config/job_values.hpp"
#include "framework/launch/inproc_rendezvous.hpp"
#include "framework/launch/rank_environment.hpp"
#include "framework/plugin/registry.hpp"
#include "framework/program/lowering.hpp"
#include "framework/runtime/data/token_file.hpp"
#include "framework/runtime/generate.hpp"
#include "framework/runtime/job.hpp"
#include "framework/runtime/rank_state.hpp"

namespace altiplano {
namespace {

struct GenerateArguments {
  JobArguments job;
  std::string checkpoint, prompt = "\n";
  int64_t max_new_tokens = 200;
  SamplingOptions sampling;
};

/// The window of tokens the model sees; labels are all ignored.
class PromptInput : public InputSource {
 public:
  PromptInput(ValueId tokens, const std::vector<int32_t>& window) : tokens_(tokens), window_(window) {}
  Status fill(ValueId input, const Box& box, void* destination) override {
    auto* out = static_cast<int32_t*>(destination);
    for (int64_t i = 0; i < box.num_elements(); ++i) out[i] = input == tokens_ ? window_[static_cast<size_t>(i)] : -1;
    return Status::ok();
  }

 private:
  ValueId tokens_;
  const std::vector<int32_t>& window_;
};

/// The job's model on one rank, with one sample, forward only.
class Generator {
 public:
  Status open(const GenerateArguments& arguments) {
    ALTIPLANO_ASSIGN(JobConfig config, load_job(arguments.job));
    ALTIPLANO_RETURN_IF_ERROR(require_keys(config, {"data.train"}, "generate"));
    for (const char* key :
         {"parallel.data_parallel_size", "parallel.tensor_parallel_size", "parallel.pipeline_parallel_size"})
      ALTIPLANO_RETURN_IF_ERROR(config.options.set(key, int64_t{1}, {}));
    ALTIPLANO_RETURN_IF_ERROR(config.options.set("parallel.pipeline.split", std::vector<int64_t>{}, {}));
    ALTIPLANO_ASSIGN(TokenFile file, TokenFile::open(config.options.get_string("data.train")));
    ALTIPLANO_ASSIGN(tokenizer_, file.tokenizer());
    JobRequest request;
    request.batch = 1;
    ALTIPLANO_ASSIGN(Job job, prepare_job(std::move(config), request));
    job_ = std::make_unique<Job>(std::move(job));
    ALTIPLANO_RETURN_IF_ERROR(prepare());
    return load(arguments.checkpoint);
  }

  Result<std::string> run(const GenerateArguments& arguments) {
    std::vector<int32_t> ids = tokenizer_->encode(arguments.prompt);
    if (ids.empty()) ids.push_back(tokenizer_->end_of_text());
    const int64_t vocab_size = job_->graph->graph.value(job_->graph->logits).shape.back();
    for (int32_t id : ids)
      if (id >= vocab_size)
        return invalid_argument("--prompt: token id {} ('{}') is not below the model's vocab_size {}", id,
                                tokenizer_->decode({&id, 1}), vocab_size);
    const Shape& logits_shape = job_->graph->graph.value(job_->graph->logits).shape;
    auto length = static_cast<size_t>(logits_shape[1]), vocabulary = static_cast<size_t>(logits_shape[2]);
    for (int64_t i = 0; i < arguments.max_new_tokens; ++i) {
      size_t used = std::min(ids.size(), length);
      std::vector<int32_t> window(ids.end() - static_cast<int64_t>(used), ids.end());
      window.resize(length, 0);  // what comes later is not seen: attention is causal
      PromptInput input(job_->graph->inputs[0], window);
      ALTIPLANO_ASSIGN(StepTotals totals, executor_->run_validation(input));
      (void)totals;
      std::span<const float> last(executor_->logits().data() + (used - 1) * vocabulary, vocabulary);
      int32_t next = choose_token(last, arguments.sampling, static_cast<uint64_t>(i));
      if (next == tokenizer_->end_of_text()) break;
      ids.push_back(next);
    }
    return tokenizer_->decode(ids);
  }

 private:
  Status prepare() {
    auto& registry = PluginRegistry::instance();
    std::string kind = job_->config.options.get_string("device.kind");
    ALTIPLANO_ASSIGN(DeviceBackend * backend, registry.device(kind));
    ALTIPLANO_ASSIGN(device_, backend->open(job_device_options(job_->config.options, 1)));
    ALTIPLANO_ASSIGN(auto extensions, registry.ops());
    kernels_ = std::make_unique<KernelCache>(*device_, kind, extensions, job_->graph->seed);
    LoweringOptions options;
    options.fetch_logits = true;
    options.workspace = [this](const Program& program, const ComputeInstruction& instruction) -> Result<int64_t> {
      ALTIPLANO_ASSIGN(Kernel * kernel, kernels_->get(program, instruction));
      return kernel->workspace_bytes();
    };
    ALTIPLANO_ASSIGN(auto programs, lower(*job_->graph, job_->plan, job_->timetable, Binding::identity(1), options));
    program_ = std::move(programs[0]);
    ALTIPLANO_ASSIGN(CommBackend * comm, registry.comm("inproc"));
    InprocRendezvous rendezvous(std::make_shared<InprocWorld>(1), RankId(0));
    ALTIPLANO_ASSIGN(communicator_, comm->connect(rendezvous, job_comm_options(job_->config.options)));
    ALTIPLANO_ASSIGN(executor_, Executor::create(program_, *device_, *communicator_, *kernels_));
    return Status::ok();
  }

  Status load(const std::string& path) {
    const Options& options = job_->config.options;
    ALTIPLANO_ASSIGN(FoundCheckpoint found, find_checkpoint(options.get_string("checkpoint.dir"),
                                                            path.empty() ? "must" : path, CheckLevel::kChecksums));
    ALTIPLANO_RETURN_IF_ERROR(
        check_architecture(found.checkpoint->manifest().info, model_fingerprint(options), model_architecture(options)));
    fmt::print(stderr, "note: checkpoint of step {} from {}\n", found.checkpoint->manifest().info.step,
               found.checkpoint->path());
    return restore_parameters(*executor_, *found.checkpoint);
  }

  std::unique_ptr<Job> job_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<KernelCache> kernels_;
  Program program_;
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace

void add_generate_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<GenerateArguments>();
  CLI::App* command = add_command(app, "generate", "Sample text from a checkpoint", R"(
    altiplano generate -c configs/jobs/quickstart.yaml --prompt "In the beginning"
    altiplano generate -c configs/jobs/quickstart.yaml --prompt "And God said" --temperature 0.8 --top-k 40 --seed 3
    altiplano generate -c job.yaml --checkpoint runs/job/checkpoints/step-00000400)");
  add_job_arguments(*command, arguments->job);
  command
      ->add_option("--checkpoint", arguments->checkpoint,
                   "A checkpoint, or a directory of them (default: the newest of the job)")
      ->type_name("PATH");
  command->add_option("--prompt", arguments->prompt, "Text to continue");
  command->add_option("--max-new-tokens", arguments->max_new_tokens, "Tokens to add (default 200)")
      ->check(CLI::Range(1, 1000000));
  command->add_option("--temperature", arguments->sampling.temperature, "0: the most likely token each time (default)")
      ->check(CLI::Range(0.0, 100.0));
  command->add_option("--top-k", arguments->sampling.top_k, "Draw among the k most likely tokens; 0: all")
      ->check(CLI::Range(0, 10000000));
  command->add_option("--seed", arguments->sampling.seed, "Of the draws");
  on_run(command, exit_code, [arguments]() -> Status {
    Generator generator;
    ALTIPLANO_RETURN_IF_ERROR(generator.open(*arguments));
    ALTIPLANO_ASSIGN(std::string text, generator.run(*arguments));
    fmt::print("{}\n", text);
    return Status::ok();
  });
}

}  // namespace altiplano
