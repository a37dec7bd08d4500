// altiplano generate: text from a checkpoint, on one rank, whatever plan saved it.
#include <fmt/format.h>

#include <charconv>
#include <memory>

#include "framework/base/console.hpp"
#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/cli/commands.hpp"
#include "framework/cli/job_arguments.hpp"
#include "framework/launch/inproc_rendezvous.hpp"
#include "framework/runtime/data/token_file.hpp"
#include "framework/runtime/data/utf8.hpp"
#include "framework/runtime/generate.hpp"
#include "framework/runtime/rank_model.hpp"

namespace altiplano {
namespace {

struct GenerateArguments {
  JobArguments job;
  std::string checkpoint, prompt = "\n", temperature = "0", seed = "1";
  int64_t max_new_tokens = 200, top_k = 0;
  bool seed_is_given = false;
};

/// Numbers are read here, so that nan, infinity and what does not fit are refused and not rounded.
Result<SamplingOptions> sampling_options(const GenerateArguments& arguments) {
  SamplingOptions options;
  auto temperature = parse_double(arguments.temperature);
  if (!temperature || !(*temperature >= 0 && *temperature <= 100))
    return invalid_argument("--temperature: got {}, expected a number from 0 (always the most likely token) to 100",
                            arguments.temperature);
  options.temperature = *temperature;
  const char *begin = arguments.seed.data(), *end = begin + arguments.seed.size();
  auto [at, error] = std::from_chars(begin, end, options.seed);
  if (error != std::errc() || at != end)
    return invalid_argument("--seed: got {}, expected an integer from 0 to {}", arguments.seed, UINT64_MAX);
  options.top_k = arguments.top_k;
  if (options.temperature == 0 && (options.top_k > 0 || arguments.seed_is_given))
    return invalid_argument(
        "{}: at temperature 0 the most likely token is always taken, nothing is drawn; add --temperature 1",
        options.top_k > 0 ? "--top-k" : "--seed");
  return options;
}

/// The window of tokens the model sees; labels are all ignored, and all is one document.
class PromptInput : public InputSource {
 public:
  PromptInput(const TrainingGraph& graph, const std::vector<int32_t>& window) : graph_(graph), window_(window) {}
  Status fill(ValueId input, const Box& box, void* destination) override {
    auto* out = static_cast<int32_t*>(destination);
    const std::string& name = graph_.graph.value(input).name;
    for (int64_t i = 0; i < box.num_elements(); ++i) {
      if (input == graph_.inputs[0]) out[i] = window_[static_cast<size_t>(i)];
      if (input == graph_.inputs[1]) out[i] = -1;
      if (name == kDocumentStartInput) out[i] = 0;
      if (name == kPositionsInput) out[i] = static_cast<int32_t>(i);
    }
    return Status::ok();
  }

 private:
  const TrainingGraph& graph_;
  const std::vector<int32_t>& window_;
};

/// The job's model on one rank, with one sample, forward only.
class Generator {
 public:
  Status open(const GenerateArguments& arguments) {
    ALTIPLANO_ASSIGN(sampling_, sampling_options(arguments));
    ALTIPLANO_ASSIGN(JobConfig config, load_job(arguments.job));
    ALTIPLANO_RETURN_IF_ERROR(require_keys(config, {"data.train"}, "generate"));
    ALTIPLANO_RETURN_IF_ERROR(plan_for_one_rank(config));
    const std::string path = config.options.get_files("data.train").front().path;
    auto file = TokenFile::open(path);
    if (!file) return invalid_argument("{}: {}", config.options.where("data.train"), file.status().message());
    ALTIPLANO_ASSIGN(tokenizer_, file->tokenizer());
    JobRequest request;
    request.batch = 1;
    request.threads = threads_per_rank(num_usable_cpus(), 1);
    ALTIPLANO_ASSIGN(Job job, prepare_job(std::move(config), request));
    job_ = std::make_unique<Job>(std::move(job));
    ALTIPLANO_RETURN_IF_ERROR(take_prompt(arguments.prompt));
    environment_.threads = threads_per_rank(num_usable_cpus(), 1);
    ALTIPLANO_ASSIGN(model_, RankModel::open(*job_, environment_, rendezvous_, true));
    ALTIPLANO_ASSIGN(const Checkpoint checkpoint, find_model_checkpoint(job_->config.options, arguments.checkpoint));
    print_err("note: checkpoint of step {} from {}\n", checkpoint.manifest().info.step, checkpoint.path());
    return model_->load(checkpoint);
  }

  /// Prints the prompt and each token as it comes; a character is printed when all its bytes are there.
  Status run(int64_t max_new_tokens) {
    if (ids_[0] != tokenizer_->end_of_text()) show(ids_);
    for (int64_t i = 0; i < max_new_tokens && output_error() == 0; ++i) {
      ALTIPLANO_ASSIGN(const int32_t next, next_token(static_cast<uint64_t>(i)));
      if (next == tokenizer_->end_of_text()) break;
      ids_.push_back(next);
      show({&next, 1});
    }
    print_out("\n");
    return Status::ok();
  }

 private:
  const Shape& logits_shape() const { return job_->graph->graph.value(job_->graph->logits).shape; }

  /// No prompt: the text starts after an end of text, as documents do.
  Status take_prompt(const std::string& prompt) {
    const int64_t vocab_size = logits_shape().back();
    if (sampling_.top_k > vocab_size)
      return invalid_argument("--top-k: got {}, the model's vocabulary has {}; give 1 to {}, or 0 for all",
                              sampling_.top_k, counted(vocab_size, "token"), vocab_size);
    ids_ = tokenizer_->encode(prompt);
    if (ids_.empty()) {
      ids_.push_back(tokenizer_->end_of_text());
      if (ids_[0] < vocab_size) return Status::ok();
      return invalid_argument(
          "--prompt: an empty prompt is the end of text, id {}, and model.vocab_size is {}; give a prompt", ids_[0],
          vocab_size);
    }
    for (int32_t id : ids_)
      if (id >= vocab_size)
        return invalid_argument("--prompt: token id {} ('{}') is not below the model's vocab_size {}", id,
                                tokenizer_->decode({&id, 1}), vocab_size);
    return Status::ok();
  }

  Result<int32_t> next_token(uint64_t index) {
    const auto length = static_cast<size_t>(logits_shape()[1]), vocabulary = static_cast<size_t>(logits_shape()[2]);
    const size_t used = std::min(ids_.size(), length);
    std::vector<int32_t> window(ids_.end() - static_cast<int64_t>(used), ids_.end());
    window.resize(length, 0);  // what comes later is not seen: attention is causal
    PromptInput input(*job_->graph, window);
    ALTIPLANO_RETURN_IF_ERROR(model_->executor().run_validation(input).status());
    std::span<const float> last(model_->executor().logits().data() + (used - 1) * vocabulary, vocabulary);
    return choose_token(last, sampling_, index);
  }

  void show(std::span<const int32_t> ids) {
    print_out("{}", text_.take(tokenizer_->decode(ids)));
    flush_out();
  }

  std::unique_ptr<Job> job_;
  std::unique_ptr<Tokenizer> tokenizer_;
  SamplingOptions sampling_;
  RankEnvironment environment_;
  InprocRendezvous rendezvous_{std::make_shared<InprocWorld>(1), RankId(0)};
  std::unique_ptr<RankModel> model_;
  std::vector<int32_t> ids_;
  Utf8Stream text_;
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
  command->add_option("--prompt", arguments->prompt, "Text to continue; empty: from the start of a document");
  command->add_option("--max-new-tokens", arguments->max_new_tokens, "Tokens to add (default 200)")
      ->check(CLI::Range(1, 1000000));
  command
      ->add_option("--temperature", arguments->temperature, "0: the most likely token each time (default); up to 100")
      ->type_name("NUMBER");
  command->add_option("--top-k", arguments->top_k, "Draw among the k most likely tokens; 0: all")
      ->check(CLI::Range(int64_t{0}, INT64_MAX));
  CLI::Option* seed = command->add_option("--seed", arguments->seed, "Of the draws (default 1)")->type_name("INTEGER");
  on_run(command, exit_code, [arguments, seed]() -> Status {
    arguments->seed_is_given = seed->count() > 0;
    Generator generator;
    ALTIPLANO_RETURN_IF_ERROR(generator.open(*arguments));
    return generator.run(arguments->max_new_tokens);
  });
}

}  // namespace altiplano
