#include "framework/graph/pass.hpp"

#include <chrono>
#include <cstdlib>
#include <fstream>

namespace altiplano {
namespace {

std::function<bool()>& stop_check() {
  static std::function<bool()> check;
  return check;
}

std::vector<PassRecord>& records() {
  static thread_local std::vector<PassRecord> list;
  return list;
}

Status dump(const std::string& name, const Graph& graph) {
  const char* folder = std::getenv("ALTIPLANO_DUMP_GRAPH");
  if (!folder || !*folder) return Status::ok();
  std::string path = fmt::format("{}/{}.{}.txt", folder, graph.name, name);
  std::ofstream file(path);
  file << graph.to_string();
  if (!file) return runtime_failure("ALTIPLANO_DUMP_GRAPH: {} cannot be written", path);
  return Status::ok();
}

}  // namespace

void set_pass_stop_check(std::function<bool()> stop) {
  stop_check() = std::move(stop);
}

std::vector<PassRecord> take_pass_records() {
  return std::exchange(records(), {});
}

Status run_pass(const std::string& name, Graph& graph, const std::function<Status(Graph&)>& pass) {
  if (stop_check() && stop_check()())
    return Status(StatusCode::kStoppedEarly, fmt::format("stopped before graph pass {}", name));
  auto start = std::chrono::steady_clock::now();
  Status status = pass(graph);
  if (status.is_ok()) status = graph.verify();
  if (status.is_ok()) status = dump(name, graph);
  records().push_back({name, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()});
  return status.with_context(fmt::format("while running graph pass {}", name));
}

}  // namespace altiplano
