#include "framework/runtime/end_record.hpp"

#include <nlohmann/json.hpp>

#include "framework/storage/atomic_file.hpp"

namespace altiplano {
namespace {

std::string path_in(const std::string& run_directory) {
  return run_directory + "/end.json";
}

}  // namespace

Status write_end_record(const std::string& run_directory, const EndRecord& record) {
  const nlohmann::ordered_json json = {{"start", record.start},
                                       {"end", record.is_done ? "done" : "stopped"},
                                       {"step", record.step},
                                       {"ranks", record.ranks}};
  return write_file_atomically(path_in(run_directory), json.dump() + "\n");
}

std::optional<EndRecord> read_end_record(const std::string& run_directory) try {
  constexpr int64_t kMostBytes = 1 << 16;
  const auto text = read_file(path_in(run_directory), kMostBytes);
  if (!text.is_ok()) return std::nullopt;
  const auto json = nlohmann::json::parse(*text);
  return EndRecord{json.at("start"), json.at("end") == "done", json.at("step"), json.at("ranks")};
} catch (const std::exception&) {
  return std::nullopt;
}

}  // namespace altiplano
