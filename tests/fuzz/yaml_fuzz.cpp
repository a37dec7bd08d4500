// Job files: whatever the text, a document or problems with positions inside the text.
#include <algorithm>

#include "framework/config/job_config.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace altiplano;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text = fuzz::text_of(data, size);
  const auto no_environment = [](const std::string&) -> std::optional<std::string> { return std::nullopt; };
  const auto no_model = [](const std::string&, const std::vector<std::string>&) -> Result<std::vector<OptionRecord>> {
    return std::vector<OptionRecord>{};
  };
  const auto job = load_job_config({.file = "job.yaml", .text = text, .lookup = no_environment}, no_model);
  if (!job.is_ok())
    fuzz::require(job.status().message().find("job.yaml") != std::string::npos, "an error names the file");
  return 0;
}
