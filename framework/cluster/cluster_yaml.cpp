// The YAML form of a Cluster: reading (strict, errors with file:line:column and key) and writing.
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>

#include "framework/base/quantity.hpp"
#include "framework/base/text.hpp"
#include "framework/cluster/cluster.hpp"

namespace altiplano {
namespace {

constexpr int64_t kFormatVersion = 1;

/// A mapping of the file. Every read* remembers the key as known; finish() refuses the others. Errors are kept: the
/// first one wins.
class Section {
 public:
  Section(const YAML::Node& node, std::string prefix, const std::string& file, std::map<std::string, YAML::Mark>& marks,
          Status& status)
      : node_(node), prefix_(std::move(prefix)), file_(file), marks_(marks), status_(status) {
    if (!node_.IsMap()) {
      fail(node_.Mark(), prefix_.empty() ? "the file" : prefix_, "must be a mapping of keys to values");
      return;
    }
    std::set<std::string> seen;
    for (const auto& entry : node_) {
      std::string key = entry.first.Scalar();
      marks_[dotted(key)] = entry.second.Mark();
      if (!seen.insert(key).second) fail(entry.first.Mark(), dotted(key), "stands twice");
    }
  }

  YAML::Node child(const std::string& key) {
    known_.push_back(key);
    return node_.IsMap() ? node_[key] : YAML::Node(YAML::NodeType::Undefined);
  }

  /// A missing required key is an error; the result is then empty.
  std::optional<std::string> scalar(const std::string& key, bool required) {
    YAML::Node node = child(key);
    if (!node.IsDefined()) {
      if (required) fail(node_.Mark(), dotted(key), "missing");
      return std::nullopt;
    }
    if (node.IsScalar()) return node.Scalar();
    fail(node.Mark(), dotted(key), "must be a single value");
    return std::nullopt;
  }

  void read_text(const std::string& key, std::string& out) {
    if (auto text = scalar(key, true)) out = *text;
  }

  void read_int(const std::string& key, int64_t& out) {
    auto text = scalar(key, true);
    if (!text) return;
    auto value = parse_int(*text);
    if (!value || *value > 1'000'000)
      return fail(node_[key].Mark(), dotted(key), fmt::format("\"{}\" is no whole number up to 1000000", *text));
    out = *value;
  }

  void read_number(const std::string& key, double& out) {
    auto text = scalar(key, false);
    if (!text) return;
    auto value = parse_double(*text);
    if (!value) return fail(node_[key].Mark(), dotted(key), fmt::format("\"{}\" is no number", *text));
    out = *value;
  }

  void read_quantity(const std::string& key, QuantityKind kind, double& out, bool required = true) {
    auto text = scalar(key, required);
    if (!text) return;
    auto value = parse_quantity(kind, *text);
    if (!value)
      return fail(node_[key].Mark(), dotted(key), fmt::format("\"{}\" is not {}", *text, quantity_example(kind)));
    out = *value;
  }

  void finish() {
    if (!node_.IsMap()) return;
    for (const auto& entry : node_) {
      std::string key = entry.first.Scalar();
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      auto near = did_you_mean(key, known_);
      fail(entry.first.Mark(), dotted(key),
           "unknown key; " + (near ? "did you mean " + *near + "?" : "known: " + join(known_, ", ")));
    }
  }

  std::string dotted(const std::string& key) const { return prefix_.empty() ? key : prefix_ + "." + key; }

  void fail(const YAML::Mark& mark, const std::string& key, const std::string& message) {
    if (status_.is_ok())
      status_ = invalid_argument("{}:{}:{}: {}: {}", file_, mark.line + 1, mark.column + 1, key, message);
  }

  Section sub(const std::string& key) { return {child(key), dotted(key), file_, marks_, status_}; }
  Section item(const YAML::Node& node, const std::string& key) { return {node, key, file_, marks_, status_}; }

 private:
  const YAML::Node node_;  // const: reading a missing key must not create it
  std::string prefix_;
  const std::string& file_;
  std::map<std::string, YAML::Mark>& marks_;
  Status& status_;
  std::vector<std::string> known_;
};

void read_device(Section& root, DeviceModel& device) {
  if (!root.child("device").IsDefined()) return root.fail({}, "device", "missing");
  Section section = root.sub("device");
  section.read_text("name", device.name);
  double memory = 0;
  section.read_quantity("memory", QuantityKind::kBytes, memory);
  device.memory = Bytes(static_cast<int64_t>(std::min(memory, 4611686018427387904.0)));
  section.read_quantity("memory_bandwidth", QuantityKind::kBytesPerSecond, device.memory_bandwidth);
  section.read_number("matmul_efficiency", device.matmul_efficiency);
  section.read_quantity("op_overhead", QuantityKind::kSeconds, device.op_overhead, false);
  section.read_text("source", device.source);
  YAML::Node peaks = section.child("peak_flops");
  if (!peaks.IsDefined()) return section.fail({}, "device.peak_flops", "missing");
  Section flops = section.sub("peak_flops");
  for (DType dtype : {DType::kF64, DType::kF32, DType::kBF16}) {
    double value = 0;
    flops.read_quantity(to_string(dtype), QuantityKind::kFlopsPerSecond, value, false);
    if (peaks.IsMap() && peaks[to_string(dtype)].IsDefined()) device.peak_flops[dtype] = value;
  }
  flops.finish();
  section.finish();
}

void read_levels(Section& root, std::vector<Level>& levels) {
  YAML::Node list = root.child("levels");
  if (!list.IsDefined() || !list.IsSequence())
    return root.fail(list.IsDefined() ? list.Mark() : YAML::Mark(), "levels", "must be a list, innermost level first");
  for (size_t i = 0; i < list.size(); ++i) {
    Section section = root.item(list[i], fmt::format("levels[{}]", i));
    Level level;
    int64_t fanout = 1;
    section.read_text("name", level.name);
    section.read_int("fanout", fanout);
    level.fanout = static_cast<int>(fanout);
    section.read_quantity("latency", QuantityKind::kSeconds, level.latency);
    section.read_quantity("bandwidth", QuantityKind::kBytesPerSecond, level.bandwidth);
    section.read_number("oversubscription", level.oversubscription);
    section.finish();
    levels.push_back(level);
  }
}

/// verify() names the key first; its place in the file goes before it.
Status locate(const Status& status, const std::string& file, const std::map<std::string, YAML::Mark>& marks) {
  auto found = marks.find(status.message().substr(0, status.message().find(':')));
  YAML::Mark mark = found == marks.end() ? YAML::Mark() : found->second;
  return {status.code(), fmt::format("{}:{}:{}: {}", file, mark.line + 1, mark.column + 1, status.message())};
}

Result<Cluster> read_cluster(const YAML::Node& document, const std::string& file) {
  Status status;
  std::map<std::string, YAML::Mark> marks;
  Section root(document, "", file, marks, status);
  Cluster cluster;
  int64_t version = kFormatVersion;
  root.read_int("altiplano_cluster", version);
  if (version != kFormatVersion)
    root.fail(marks["altiplano_cluster"], "altiplano_cluster",
              fmt::format("format {}; this version reads format {}", version, kFormatVersion));
  root.read_text("name", cluster.name);
  read_device(root, cluster.device);
  read_levels(root, cluster.levels);
  root.finish();
  if (!status.is_ok()) return status;
  status = cluster.verify();
  if (!status.is_ok()) return locate(status, file, marks);
  return cluster;
}

std::string quoted(const std::string& text) {
  YAML::Emitter out;
  out << YAML::DoubleQuoted << text;
  return out.c_str();
}

}  // namespace

Result<Cluster> Cluster::from_yaml(const std::string& text, const std::string& file_name) {
  try {
    return read_cluster(YAML::Load(text), file_name);
  } catch (const YAML::Exception& e) {
    return invalid_argument("{}:{}:{}: not YAML: {}", file_name, e.mark.line + 1, e.mark.column + 1, e.msg);
  }
}

std::string Cluster::to_yaml() const {
  std::string out = fmt::format("altiplano_cluster: {}\nname: {}\ndevice:\n  name: {}\n", kFormatVersion, quoted(name),
                                quoted(device.name));
  out += fmt::format("  memory: {}\n", print_quantity(QuantityKind::kBytes, static_cast<double>(device.memory.value)));
  out +=
      fmt::format("  memory_bandwidth: {}\n", print_quantity(QuantityKind::kBytesPerSecond, device.memory_bandwidth));
  std::vector<std::string> peaks;
  for (const auto& [dtype, flops] : device.peak_flops)
    peaks.push_back(fmt::format("{}: {}", to_string(dtype), print_quantity(QuantityKind::kFlopsPerSecond, flops)));
  out += fmt::format("  peak_flops: {{{}}}\n", join(peaks, ", "));
  out += fmt::format("  matmul_efficiency: {}\n", device.matmul_efficiency);
  out += fmt::format("  op_overhead: {}\n", print_quantity(QuantityKind::kSeconds, device.op_overhead));
  out += fmt::format("  source: {}\nlevels:  # innermost first; bandwidth per device and direction\n",
                     quoted(device.source));
  for (const Level& level : levels)
    out += fmt::format("  - {{name: {}, fanout: {}, latency: {}, bandwidth: {}, oversubscription: {}}}\n",
                       quoted(level.name), level.fanout, print_quantity(QuantityKind::kSeconds, level.latency),
                       print_quantity(QuantityKind::kBytesPerSecond, level.bandwidth), level.oversubscription);
  return out;
}

}  // namespace altiplano
