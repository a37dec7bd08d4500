// The YAML form of a Cluster: reading (strict, errors with file:line:column and key) and writing.
#include "framework/cluster/cluster.hpp"
#include "framework/cluster/curves_yaml.hpp"

namespace altiplano {
namespace {

constexpr int64_t kFormatVersion = 1;

void read_device(YamlSection& root, DeviceModel& device) {
  if (!root.child("device").IsDefined()) return root.fail({}, "device", "missing");
  YamlSection section = root.sub("device");
  section.read_text("name", device.name);
  double memory = 0;
  section.read_quantity("memory", QuantityKind::kBytes, memory);
  device.memory = Bytes(static_cast<int64_t>(std::min(memory, 4611686018427387904.0)));
  section.read_quantity("memory_bandwidth", QuantityKind::kBytesPerSecond, device.memory_bandwidth);
  section.read_number("matmul_efficiency", device.matmul_efficiency);
  section.read_quantity("op_overhead", QuantityKind::kSeconds, device.op_overhead, false);
  section.read_quantity("dispatch", QuantityKind::kSeconds, device.dispatch, false);
  section.read_text("source", device.source);
  YAML::Node peaks = section.child("peak_flops");
  if (!peaks.IsDefined()) return section.fail({}, "device.peak_flops", "missing");
  YamlSection flops = section.sub("peak_flops");
  for (DType dtype : {DType::kF64, DType::kF32, DType::kBF16}) {
    double value = 0;
    flops.read_quantity(to_string(dtype), QuantityKind::kFlopsPerSecond, value, false);
    if (peaks.IsMap() && peaks[to_string(dtype)].IsDefined()) device.peak_flops[dtype] = value;
  }
  flops.finish();
  section.read_bool("overlaps_communication", device.overlaps_communication);
  section.read_quantity("eager_messages", QuantityKind::kBytes, device.eager_messages, false);
  if (section.child("curves").IsDefined()) {
    DeviceCurves curves;
    read_curves(section, curves);
    device.curves = std::make_shared<const DeviceCurves>(std::move(curves));
  }
  section.finish();
}

void read_levels(YamlSection& root, std::vector<Level>& levels) {
  YAML::Node list = root.child("levels");
  if (!list.IsDefined() || !list.IsSequence())
    return root.fail(list.IsDefined() ? list.Mark() : YAML::Mark(), "levels", "must be a list, innermost level first");
  for (size_t i = 0; i < list.size(); ++i) {
    YamlSection section = root.item(list[i], fmt::format("levels[{}]", i));
    Level level;
    int64_t fanout = 1;
    section.read_text("name", level.name);
    section.read_int("fanout", fanout);
    level.fanout = static_cast<int>(fanout);
    section.read_quantity("latency", QuantityKind::kSeconds, level.latency);
    section.read_quantity("bandwidth", QuantityKind::kBytesPerSecond, level.bandwidth);
    section.read_number("oversubscription", level.oversubscription);
    if (section.child("curves").IsDefined()) {
      LevelCurves curves;
      read_curves(section, curves);
      level.curves = std::make_shared<const LevelCurves>(std::move(curves));
    }
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
  YamlSection root(document, "", file, marks, status);
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
  if (device.dispatch > 0)
    out += fmt::format("  dispatch: {}\n", print_quantity(QuantityKind::kSeconds, device.dispatch));
  if (!device.overlaps_communication) out += "  overlaps_communication: false\n";
  if (device.eager_messages > 0)
    out += fmt::format("  eager_messages: {}\n", print_quantity(QuantityKind::kBytes, device.eager_messages));
  if (device.curves) out += curves_text(*device.curves);
  out += fmt::format("  source: {}\nlevels:  # innermost first; bandwidth per device and direction\n",
                     quoted(device.source));
  for (const Level& level : levels) {
    const std::vector<std::string> keys = {
        "name: " + quoted(level.name), fmt::format("fanout: {}", level.fanout),
        "latency: " + print_quantity(QuantityKind::kSeconds, level.latency),
        "bandwidth: " + print_quantity(QuantityKind::kBytesPerSecond, level.bandwidth),
        fmt::format("oversubscription: {}", level.oversubscription)};
    if (level.curves)
      out += fmt::format("  - {}\n{}", join(keys, "\n    "), curves_text(*level.curves));
    else
      out += fmt::format("  - {{{}}}\n", join(keys, ", "));
  }
  return out;
}

}  // namespace altiplano
