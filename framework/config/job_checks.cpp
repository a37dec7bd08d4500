// Rules across keys. Each is a small function that returns a refusal with the numbers and the alternatives, or nothing.
#include <algorithm>
#include <array>

#include "framework/base/plural.hpp"
#include "framework/base/quantity.hpp"
#include "framework/base/text.hpp"
#include "framework/base/time_limit.hpp"
#include "framework/config/job_config.hpp"

namespace altiplano {
namespace {

int64_t value_or_zero(const Options& options, const std::string& key) {
  return options.has(key) ? options.get_int(key) : 0;
}

/// "nearest: 8, 16"
std::string nearest_multiples(int64_t number, int64_t unit) {
  int64_t below = number / unit * unit;
  return below > 0 ? fmt::format("nearest: {}, {}", below, below + unit) : fmt::format("nearest: {}", unit);
}

struct Factor {
  const char* name;
  int64_t value;
};

/// Refuses a global batch that is no multiple of the product of the known factors.
Status check_multiple(const Options& options, int64_t global, const std::vector<Factor>& factors) {
  int64_t product = 1;
  std::vector<std::string> words;
  for (const auto& [name, value] : factors) {
    if (value == 0) continue;
    product *= value;
    words.push_back(fmt::format("{} {}", name, value));
  }
  if (global % product == 0) return Status::ok();
  std::string text = join(words, " x ") + (words.size() > 1 ? fmt::format(" = {}", product) : "");
  return invalid_argument("{}: {} is not a multiple of {}; {}", options.where("train.global_batch_size"), global, text,
                          nearest_multiples(global, product));
}

Status check_batch(const Options& options) {
  int64_t data = value_or_zero(options, "parallel.data_parallel_size");
  if (data > 0) return resolve_batch(options, data).status();
  int64_t global = value_or_zero(options, "train.global_batch_size");
  int64_t micro = value_or_zero(options, "train.micro_batch_size");
  int64_t accumulation = value_or_zero(options, "train.gradient_accumulation_steps");
  if (global == 0) return resolve_batch(options, 1).status();
  return check_multiple(options, global, {{"micro_batch_size", micro}, {"gradient_accumulation_steps", accumulation}});
}

Status check_validation(const Options& options) {
  bool file = options.has("data.validation.file"), fraction = options.get_float("data.validation.fraction") > 0;
  if (file && fraction) {
    return invalid_argument("{}: given together with data.validation.file; keep one of them",
                            options.where("data.validation.fraction"));
  }
  int64_t every = options.get_int("train.validate_every");
  if (every > 0 && !file && !fraction) {
    return invalid_argument(
        "{}: {}, but there is no validation data; set data.validation.fraction (e.g. 0.02) or "
        "data.validation.file, or validate_every 0",
        options.where("train.validate_every"), every);
  }
  return Status::ok();
}

/// Keys that the chosen name does not use are mistakes, not decoration.
Status check_unused(const Options& options, const std::string& chooser, const std::string& choice,
                    const std::vector<std::string>& unused) {
  if (options.get_string(chooser) != choice) return Status::ok();
  for (const auto& key : unused) {
    if (!options.has(key) || options.value(key) == options.default_value(key)) continue;
    return invalid_argument("{}: {} {} does not use it; remove the key", options.where(key), chooser, choice);
  }
  return Status::ok();
}

Status check_documents(const Options& options) {
  return check_unused(options, "data.documents", "concatenate", {"data.positions"});
}

Status check_optimizer(const Options& options) {
  ALTIPLANO_RETURN_IF_ERROR(check_unused(options, "optimizer.name", "adamw", {"optimizer.momentum"}));
  return check_unused(options, "optimizer.name", "sgd", {"optimizer.betas", "optimizer.eps"});
}

Status check_learning_rate(const Options& options) {
  ALTIPLANO_RETURN_IF_ERROR(
      check_unused(options, "lr_scheduler.name", "constant", {"lr_scheduler.min_lr", "lr_scheduler.decay_steps"}));
  double lr = options.get_float("optimizer.lr"), min_lr = options.get_float("lr_scheduler.min_lr");
  if (min_lr > lr) {
    return invalid_argument("{}: {} is above optimizer.lr {}; expected at most that",
                            options.where("lr_scheduler.min_lr"), min_lr, lr);
  }
  int64_t warmup = options.get_int("lr_scheduler.warmup_steps"),
          decay = value_or_zero(options, "lr_scheduler.decay_steps");
  if (decay > 0 && decay < warmup) {
    return invalid_argument("{}: {} is before the end of the {}; expected at least {}",
                            options.where("lr_scheduler.decay_steps"), decay, counted(warmup, "warm-up step"), warmup);
  }
  return Status::ok();
}

Status check_split(const Options& options) {
  if (!options.has("parallel.pipeline.split") || !options.has("parallel.pipeline_parallel_size")) return Status::ok();
  auto stages = options.get_int("parallel.pipeline_parallel_size");
  const auto& split = options.get_ints("parallel.pipeline.split");
  if (static_cast<int64_t>(split.size()) == stages) return Status::ok();
  return invalid_argument("{}: {} for pipeline_parallel_size {}; expected one number of layers per stage",
                          options.where("parallel.pipeline.split"),
                          counted(static_cast<int64_t>(split.size()), "number"), stages);
}

Status check_resume(const Options& options) {
  static const std::vector<std::string> kWords = {"auto", "must", "none"};
  const std::string& resume = options.get_string("train.resume");
  if (std::ranges::find(kWords, resume) != kWords.end() || resume.find('/') != std::string::npos) return Status::ok();
  auto near = did_you_mean(resume, kWords);
  return invalid_argument("{}: got {}, expected auto, must, none or a path with a / in it{}",
                          options.where("train.resume"), resume, near ? fmt::format("; did you mean {}?", *near) : "");
}

/// keep_every picks among the steps that are saved, and keep_last 0 keeps them all anyway.
Status check_keep_every(const Options& options) {
  int64_t keep = options.get_int("checkpoint.keep_every"), save = options.get_int("checkpoint.every_steps");
  if (keep == 0) return Status::ok();
  const std::string where = options.where("checkpoint.keep_every");
  if (options.get_int("checkpoint.keep_last") == 0)
    return invalid_argument("{}: {} has no effect with checkpoint.keep_last 0, which keeps all; remove one of them",
                            where, keep);
  if (save == 0)
    return invalid_argument("{}: {} has no effect without checkpoint.every_steps; set that, e.g. to {}", where, keep,
                            keep);
  if (keep % save == 0) return Status::ok();
  return invalid_argument("{}: {} is not a multiple of checkpoint.every_steps {}; {}", where, keep, save,
                          nearest_multiples(keep, save));
}

/// What keeps a text from being a folder's name that logs and scripts can hold; empty: nothing.
std::string no_name_because(const std::string& name) {
  constexpr size_t kMostBytes = 200;  // file systems take 255; suffixes need some
  if (name.size() > kMostBytes) return fmt::format("{} bytes are too long, at most {}", name.size(), kMostBytes);
  if (std::ranges::any_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7F; }))
    return "a name may not hold control characters";
  if (name.find_first_of("'\"`") != std::string::npos) return fmt::format("{} holds a quotation mark", name);
  if (name.find('/') != std::string::npos || name == "." || name == "..")
    return fmt::format("'{}' is no name of a folder; use run.dir for a path", name);
  return {};
}

/// A name becomes a folder's name. One that was not given is that of the file.
Status check_run_name(const Options& options) {
  if (!options.has("run.name")) return Status::ok();
  const std::string why = no_name_because(options.get_string("run.name"));
  if (why.empty()) return Status::ok();
  return invalid_argument("{}: {}{}", options.where("run.name"), why,
                          options.is_set("run.name") ? "" : "; it was made from the file's name, give one");
}

Status check_time_limit(const Options& options) {
  return time_limit(options).status();
}

Status check_slurm(const Options& options) {
  const int64_t nodes = options.get_int("slurm.nodes"), least = options.get_int("slurm.min_nodes");
  if (least > nodes)
    return invalid_argument("{}: {} is more than slurm.nodes {}; at most {}", options.where("slurm.min_nodes"), least,
                            nodes, nodes);
  if (options.get_int("slurm.spare_nodes") > 0 && !options.get_bool("slurm.supervise"))
    return invalid_argument("{}: nobody takes them in without slurm.supervise; set that to true or this to 0",
                            options.where("slurm.spare_nodes"));
  const double heartbeat = options.get_float("slurm.heartbeat_seconds"),
               stall = options.get_float("slurm.stall_seconds");
  if (options.is_set("slurm.stall_seconds") && stall <= heartbeat)
    return invalid_argument(
        "{}: {} is no more than slurm.heartbeat_seconds {}, and a node that died would be taken for "
        "ranks that stand still; more than {}",
        options.where("slurm.stall_seconds"), stall, heartbeat, heartbeat);
  if (!options.has("slurm.time")) return Status::ok();
  const std::string& text = options.get_string("slurm.time");
  if (parse_time_limit(text)) return Status::ok();
  return invalid_argument("{}: got {}, expected a time such as {}", options.where("slurm.time"), text,
                          time_limit_example());
}

Status check_memory(const Options& options) {
  return memory_per_rank(options).status();
}

void note_long_warmup(const Options& options, std::vector<std::string>& notices) {
  int64_t warmup = options.get_int("lr_scheduler.warmup_steps"), steps = options.get_int("train.max_steps");
  if (warmup < steps) return;
  notices.push_back(fmt::format("{}: {} of {} {} warm-up: the learning rate never decays",
                                options.where("lr_scheduler.warmup_steps"), std::min(warmup, steps),
                                counted(steps, "step"), plural(steps, "is", "are")));
}

/// Beyond decay_steps the rate stays at min_lr; at 0 the steps that are left cost time and change nothing.
void note_rate_of_zero(const Options& options, std::vector<std::string>& notices) {
  if (options.get_string("lr_scheduler.name") == "constant" || options.get_float("lr_scheduler.min_lr") > 0) return;
  const int64_t decay = options.get_int("lr_scheduler.decay_steps"), steps = options.get_int("train.max_steps");
  const int64_t first = std::max(decay, options.get_int("lr_scheduler.warmup_steps") + 1);
  if (first >= steps) return;  // the very last step has it anyway
  notices.push_back(fmt::format(
      "{}: the learning rate is 0 from step {} on: {} of {} {} nothing; set it to {} or more, or lr_scheduler.min_lr",
      options.where("lr_scheduler.decay_steps"), first, steps - first + 1, counted(steps, "step"),
      plural(steps - first + 1, "trains", "train"), steps));
}

void derive_defaults(Options& options) {
  options.derive("run.dir", "runs/" + options.get_string("run.name"), "from run.name");
  options.derive("checkpoint.dir", options.get_string("run.dir") + "/checkpoints", "from run.dir");
  int64_t decay = std::max(options.get_int("train.max_steps"), options.get_int("lr_scheduler.warmup_steps"));
  options.derive("lr_scheduler.decay_steps", decay, "from train.max_steps");
}

}  // namespace

Result<BatchSizes> resolve_batch(const Options& options, int64_t data) {
  int64_t global = value_or_zero(options, "train.global_batch_size");
  int64_t micro = value_or_zero(options, "train.micro_batch_size");
  int64_t accumulation = value_or_zero(options, "train.gradient_accumulation_steps");
  if (global == 0 && (micro == 0 || accumulation == 0)) {
    return invalid_argument(
        "{}: missing; give it, or both train.micro_batch_size and train.gradient_accumulation_steps",
        options.where("train.global_batch_size"));
  }
  if (global == 0) return BatchSizes{micro * accumulation * data, micro, accumulation};
  if (micro > 0 && accumulation > 0 && micro * accumulation * data != global) {
    return invalid_argument(
        "{}: {} is not micro_batch_size {} x gradient_accumulation_steps {} x data_parallel_size {} = {}; leave out "
        "one of "
        "the three sizes or set this one to {}",
        options.where("train.global_batch_size"), global, micro, accumulation, data, micro * accumulation * data,
        micro * accumulation * data);
  }
  ALTIPLANO_RETURN_IF_ERROR(check_multiple(
      options, global,
      {{"micro_batch_size", micro}, {"gradient_accumulation_steps", accumulation}, {"data_parallel_size", data}}));
  if (micro > 0) return BatchSizes{global, micro, global / data / micro};
  if (accumulation > 0) return BatchSizes{global, global / data / accumulation, accumulation};
  return BatchSizes{global, 0, 0};
}

Result<std::optional<Bytes>> memory_per_rank(const Options& options) {
  if (!options.has("memory.per_rank")) return std::optional<Bytes>();
  const std::string& text = options.get_string("memory.per_rank");
  if (auto bytes = parse_bytes(text)) return std::optional<Bytes>(*bytes);
  return invalid_argument("{}: got {}, expected {} or auto", options.where("memory.per_rank"), text,
                          quantity_example(QuantityKind::kBytes));
}

Result<TimeLimit> time_limit(const Options& options) {
  if (!options.has("train.time_limit")) return TimeLimit{};
  const std::string& text = options.get_string("train.time_limit");
  if (text == "none") return TimeLimit{.is_none = true, .length = {}};
  const auto length = parse_time_limit(text);
  if (length && length->value > 0) return TimeLimit{.is_none = false, .length = length};
  if (length)
    return invalid_argument("{}: {} leaves no time to train; for no limit write none",
                            options.where("train.time_limit"), text);
  return invalid_argument("{}: got {}, expected a time such as {}, or none, or auto", options.where("train.time_limit"),
                          text, time_limit_example());
}

Status check_job(Options& options, std::vector<std::string>& notices, bool uses_validation) {
  using Rule = Status (*)(const Options&);
  constexpr std::array<Rule, 12> kRules = {check_batch,         check_documents,  check_validation, check_optimizer,
                                           check_learning_rate, check_split,      check_resume,     check_memory,
                                           check_run_name,      check_keep_every, check_time_limit, check_slurm};
  derive_defaults(options);
  std::vector<std::string> refusals;
  for (Rule rule : kRules) {
    if (rule == check_validation && !uses_validation) continue;
    if (Status status = rule(options); !status) refusals.push_back(status.message());
  }
  if (!refusals.empty()) return {StatusCode::kInvalidArgument, join(refusals, "\n")};
  note_long_warmup(options, notices);
  note_rate_of_zero(options, notices);
  return Status::ok();
}

}  // namespace altiplano
