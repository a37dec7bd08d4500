#include "framework/runtime/resume_settings.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "framework/base/text.hpp"
#include "framework/runtime/job_data.hpp"
#include "framework/runtime/step_decision.hpp"
#include "framework/storage/checksum.hpp"

namespace altiplano {
namespace {

constexpr const char* kContents = "data.train contents";
constexpr const char* kTokenizer = "data.train tokenizer";

enum class Change : uint8_t { kRefused, kNoticed, kIgnored };

/// What a change of a key means, or of all keys of a section ("data.validation."). The first that matches counts.
struct Rule {
  const char* key;
  Change change;
  const char* why;
};
constexpr Rule kRules[] = {
    {"optimizer.name", Change::kRefused, "the saved state is that of the other update rule"},
    {"train.precision", Change::kRefused, "parameters, master weights and states are saved in the other's types"},
    {"model.frozen", Change::kRefused, "only parameters that were trained have saved states"},
    {kTokenizer, Change::kRefused, "its ids mean other text than those the model has learned"},
    {kContents, Change::kNoticed, "the count of samples consumed goes on in the new text"},
    {"train.global_batch_size", Change::kNoticed,
     "the samples consumed go on as they are; the learning rate counts steps, not samples"},
    {"train.seq_length", Change::kNoticed, "samples are cut anew, so that some text comes twice or not in this epoch"},
    {"train.seed", Change::kNoticed, "dropout draws other numbers; the weights are the checkpoint's"},
    {"data.seed", Change::kNoticed, "the order is another one, so that some samples come twice or not in this epoch"},
    {"data.validation.", Change::kNoticed, "losses of validation compare with the earlier ones only for the same data"},
    {"data.train", Change::kIgnored, ""},  // the name; what counts is in it
    {"train.max_steps", Change::kIgnored, ""},
    {"train.micro_batch_size", Change::kIgnored, ""},
    {"train.gradient_accumulation_steps", Change::kIgnored, ""},
    {"train.log_every", Change::kIgnored, ""},
    {"train.validate_every", Change::kIgnored, ""},
    {"train.validation_batches", Change::kIgnored, ""},
    {"train.resume", Change::kIgnored, ""},
    {"model.initializer_range", Change::kIgnored, ""},
    {"", Change::kNoticed, "it counts from here on"},
};

const Rule& rule_of(const std::string& key) {
  return *std::ranges::find_if(kRules, [&](const Rule& rule) {
    const std::string_view known = rule.key;
    const bool is_section = known.empty() || known.back() == '.';
    return is_section ? key.starts_with(known) : key == known;
  });
}

bool is_remembered(const std::string& key) {
  return std::ranges::any_of(std::array{"train.", "data.", "optimizer.", "lr_scheduler.", "model."},
                             [&](const char* section) { return key.starts_with(section); });
}

/// A sum over the first, the middle and the last tokens: cheap, and other text has another.
Result<std::string> contents_of(const TokenFile& file) {
  constexpr int64_t kSample = 4096;
  const int64_t tokens = file.info().num_tokens;
  std::string sums;
  for (int64_t at : {int64_t{0}, (tokens - kSample) / 2, tokens - kSample}) {
    const int64_t begin = std::max<int64_t>(0, at);
    std::vector<int32_t> ids(static_cast<size_t>(std::min(kSample, tokens - begin)));
    ALTIPLANO_RETURN_IF_ERROR(file.read(begin, ids));
    sums += checksum_text(checksum(ids.data(), ids.size() * sizeof(int32_t)));
  }
  return fmt::format("{} tokens, sum {}", with_thousands(tokens), checksum_text(checksum(sums.data(), sums.size())));
}

Result<std::string> tokenizer_of(const TokenFile& file) {
  ALTIPLANO_ASSIGN(const uint64_t vocabulary, file.tokenizer_fingerprint());
  return fmt::format("{} of {} ids, sum {}", file.info().tokenizer, with_thousands(file.info().vocab_size),
                     checksum_text(vocabulary));
}

/// The files' contents; with their weights when there are several.
Result<std::string> mix_of(const std::vector<WeightedFile>& files, const BatchSource& source) {
  std::vector<std::string> parts;
  for (const TokenFile* file : source.training_files()) {
    ALTIPLANO_ASSIGN(const std::string contents, contents_of(*file));
    const double weight = files[parts.size()].weight;
    parts.push_back(files.size() == 1 ? contents : fmt::format("{} x ({})", weight, contents));
  }
  return join(parts, " + ");
}

std::string value_in(const Settings& settings, const std::string& key) {
  auto found = settings.find(key);
  return found == settings.end() ? "nothing" : found->second;
}

double number_in(const Settings& settings, const char* key, double otherwise) {
  const std::string text = value_in(settings, key);
  double number = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

LearningRate rate_of(const Settings& settings) {
  return {value_in(settings, "lr_scheduler.name"), number_in(settings, "optimizer.lr", 0),
          number_in(settings, "lr_scheduler.min_lr", 0),
          static_cast<int64_t>(number_in(settings, "lr_scheduler.warmup_steps", 0)),
          static_cast<int64_t>(number_in(settings, "lr_scheduler.decay_steps", 0))};
}

/// "job.yaml:9:3: optimizer.lr: now 0.001, was 0.002"
std::string change_text(const std::string& key, const Settings& saved, const Settings& now, const Options& options) {
  const bool is_option = options.find_record(key) != nullptr;
  return fmt::format("{}: now {}, was {}", is_option ? options.where(key) : key, value_in(now, key),
                     value_in(saved, key));
}

/// The rate goes on smoothly or jumps: in numbers.
std::string rate_text(const Settings& saved, const Settings& now, int64_t step) {
  return fmt::format("the learning rate of step {} is {:.3e} instead of {:.3e}", step + 1,
                     learning_rate_at(rate_of(now), step + 1), learning_rate_at(rate_of(saved), step + 1));
}

bool shapes_rate(const std::string& key) {
  return key == "optimizer.lr" || key.starts_with("lr_scheduler.");
}

std::vector<std::string> changed_keys(const Settings& saved, const Settings& now) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : saved)
    if (value_in(now, key) != value) keys.push_back(key);
  for (const auto& [key, value] : now)
    if (!saved.contains(key)) keys.push_back(key);
  return keys;
}

}  // namespace

Result<Settings> training_settings(const Job& job, const BatchSource& source) {
  const Options& options = job.config.options;
  Settings settings;
  for (const OptionRecord& record : options.records())
    if (is_remembered(record.key) && options.has(record.key))
      settings[record.key] = to_string(options.value(record.key));
  for (const auto& [field, value] : model_architecture(options)) settings.erase("model." + field);
  if (options.get_string("lr_scheduler.name") == "constant")
    for (const char* unused : {"lr_scheduler.decay_steps", "lr_scheduler.min_lr"}) settings.erase(unused);
  settings["train.global_batch_size"] = std::to_string(job.plan.global_batch);
  ALTIPLANO_ASSIGN(settings[kTokenizer], tokenizer_of(source.first_file()));
  ALTIPLANO_ASSIGN(settings[kContents], mix_of(job_data_options(job).train, source));
  return settings;
}

std::string state_with(const Settings& settings) {
  return nlohmann::ordered_json{{"settings", settings}}.dump();
}

Settings settings_of(const std::string& state) {
  auto json = nlohmann::json::parse(state, nullptr, false);
  Settings settings;
  if (!json.is_object() || !json.contains("settings") || !json["settings"].is_object()) return settings;
  for (const auto& [key, value] : json["settings"].items())
    if (value.is_string()) settings[key] = value.get<std::string>();
  return settings;
}

Result<std::vector<std::string>> compare_settings(const Settings& saved, const Settings& now, const Options& options,
                                                  int64_t step) {
  std::vector<std::string> refusals, notices;
  if (saved.empty()) return notices;
  for (const std::string& key : changed_keys(saved, now)) {
    const Rule& rule = rule_of(key);
    const std::string text = change_text(key, saved, now, options);
    if (rule.change == Change::kRefused) refusals.push_back(fmt::format("\n  {}: {}", text, rule.why));
    if (rule.change != Change::kNoticed) continue;
    notices.push_back(fmt::format("{}; {}", text, shapes_rate(key) ? rate_text(saved, now, step) : rule.why));
  }
  if (refusals.empty()) return notices;
  return invalid_argument(
      "the checkpoint of step {} cannot go on with other settings; set them back, or train in a run.dir of its own:{}",
      step, join(refusals, ""));
}

}  // namespace altiplano
