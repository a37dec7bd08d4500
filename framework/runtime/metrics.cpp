#include "framework/runtime/metrics.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "framework/base/plural.hpp"
#include "framework/storage/atomic_file.hpp"

namespace altiplano {

namespace {

nlohmann::ordered_json json_of(const NotFinite& where) {
  if (where.kind == NotFinite::Kind::kNone) return {{"passed", true}};
  nlohmann::ordered_json json = {{"rank", where.rank}, {"host", where.host}, {"operation", where.operation}};
  if (where.microbatch < 0) return json;
  json["microbatch"] = where.microbatch;
  json["samples"] = {where.first_sample, where.first_sample + where.num_samples - 1};
  return json;
}

}  // namespace

MetricsFile::~MetricsFile() {
  if (file_) std::fclose(file_);
}

namespace {

/// "runs/a/metrics-1.jsonl": the first such name that is free.
std::string aside_name(const std::filesystem::path& path) {
  for (int number = 1;; ++number) {
    auto aside = path.parent_path() / fmt::format("{}-{}{}", path.stem().string(), number, path.extension().string());
    if (!std::filesystem::exists(aside)) return aside.string();
  }
}

}  // namespace

Result<OpenedMetrics> MetricsFile::open(const std::string& path, int64_t last_step) {
  path_ = path;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  std::string kept;
  OpenedMetrics opened;
  if (std::ifstream old(path); old) {
    for (std::string line; std::getline(old, line);) {
      auto json = nlohmann::json::parse(line, nullptr, false);
      const bool stays = json.is_object() && json.contains("step") && json["step"].is_number_integer() &&
                         json["step"].get<int64_t>() <= last_step;
      if (stays) kept += line + "\n";
      opened.num_abandoned += !stays;
    }
  }
  if (last_step == 0 && opened.num_abandoned > 0) {  // another beginning, not a step back: what was measured is kept
    opened.aside = aside_name(path);
    std::filesystem::rename(path, opened.aside, error);
    if (error) return runtime_failure("{}: cannot be set aside: {}", path, error.message());
  }
  // In one piece, so that a job killed here loses no earlier step; always another file, so that a start that was given
  // up and does not know it yet writes nothing into this one.
  if (std::filesystem::exists(path, error)) ALTIPLANO_RETURN_IF_ERROR(write_file_atomically(path, kept));
  file_ = std::fopen(path.c_str(), "a");
  if (!file_) return runtime_failure("{}: cannot be written: {}", path, std::strerror(errno));
  return opened;
}

std::string MetricsFile::write_step(const StepMetrics& m) {
  nlohmann::ordered_json json = {
      {"step", m.step},     {"loss", m.loss},       {"grad_norm", m.gradient_norm}, {"lr", m.learning_rate},
      {"tokens", m.tokens}, {"seconds", m.seconds}, {"tps", m.tokens_per_second}};
  if (m.skipped) json["skipped"] = true;
  if (m.not_finite) json["not_finite"] = json_of(*m.not_finite);
  return write_line(json.dump());
}

std::string MetricsFile::write_validation(int64_t step, double loss, int64_t tokens) {
  nlohmann::ordered_json json = {{"step", step}, {"validation_loss", loss}, {"validation_tokens", tokens}};
  return write_line(json.dump());
}

/// All of it or nothing: half a line would spoil the next one.
bool MetricsFile::append(const std::string& text) {
  const int file = fileno(file_);
  struct stat before {};
  if (std::fflush(file_) != 0 || ::fstat(file, &before) != 0) return false;
  const ssize_t written = ::write(file, text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size())) return true;
  const int why = written < 0 ? errno : ENOSPC;
  if (written > 0 && ::ftruncate(file, before.st_size) == 0) ::lseek(file, before.st_size, SEEK_SET);
  errno = why;
  return false;
}

std::string MetricsFile::write_line(const std::string& line) {
  if (append(line + "\n")) {
    const int64_t lost = std::exchange(num_lost_, 0);
    return lost == 0 ? ""
                     : fmt::format("{} is written again; {} {} lost", path_, counted(lost, "line"),
                                   plural(lost, "is", "are"));
  }
  const char* why = std::strerror(errno);
  return num_lost_++ > 0 ? "" : fmt::format("{} cannot be written: {}; the run goes on without its lines", path_, why);
}

}  // namespace altiplano
