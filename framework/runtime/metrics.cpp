#include "framework/runtime/metrics.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

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

Status MetricsFile::open(const std::string& path, int64_t last_step) {
  path_ = path;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  std::string kept;
  if (std::ifstream old(path); old) {
    for (std::string line; std::getline(old, line);) {
      auto json = nlohmann::json::parse(line, nullptr, false);
      if (json.is_object() && json.value("step", int64_t{0}) <= last_step) kept += line + "\n";
    }
  }
  file_ = std::fopen(path.c_str(), "w");
  if (!file_) return runtime_failure("{}: cannot be written: {}", path, std::strerror(errno));
  return kept.empty() || std::fputs(kept.c_str(), file_) >= 0 ? Status::ok()
                                                              : runtime_failure("{}: {}", path, std::strerror(errno));
}

Status MetricsFile::write_step(const StepMetrics& m) {
  nlohmann::ordered_json json = {
      {"step", m.step},     {"loss", m.loss},       {"grad_norm", m.gradient_norm}, {"lr", m.learning_rate},
      {"tokens", m.tokens}, {"seconds", m.seconds}, {"tps", m.tokens_per_second}};
  if (m.skipped) json["skipped"] = true;
  if (m.not_finite) json["not_finite"] = json_of(*m.not_finite);
  return write_line(json.dump());
}

Status MetricsFile::write_validation(int64_t step, double loss, int64_t tokens) {
  nlohmann::ordered_json json = {{"step", step}, {"validation_loss", loss}, {"validation_tokens", tokens}};
  return write_line(json.dump());
}

Status MetricsFile::write_line(const std::string& line) {
  if (std::fputs((line + "\n").c_str(), file_) < 0 || std::fflush(file_) != 0)
    return runtime_failure("{}: {}", path_, std::strerror(errno));
  return Status::ok();
}

}  // namespace altiplano
