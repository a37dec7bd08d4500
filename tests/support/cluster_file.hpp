#pragma once
// A valid cluster file as its lines, of which each refusal test changes one.
#include <string>
#include <vector>

#include "framework/cluster/cluster.hpp"

namespace altiplano::test {

struct ClusterFile {
  std::vector<std::string> lines;

  /// The file with its line `line`, from 1, as `text`; line 0: as it is.
  std::string with(size_t line, const std::string& text) const {
    std::string out;
    for (size_t i = 0; i < lines.size(); ++i) out += (i + 1 == line ? text : lines[i]) + "\n";
    return out;
  }

  /// What is said of that file under the name c.yaml, or "accepted".
  std::string refusal(size_t line, const std::string& text) const {
    const Result<Cluster> cluster = Cluster::from_yaml(with(line, text), "c.yaml");
    if (cluster.is_ok()) return "accepted";
    return cluster.status().code() == StatusCode::kInvalidArgument ? cluster.status().to_string() : "wrong code";
  }
};

}  // namespace altiplano::test
