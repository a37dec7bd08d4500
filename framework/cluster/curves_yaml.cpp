#include "framework/cluster/curves_yaml.hpp"

namespace altiplano {

namespace {

using Kind = QuantityKind;

void read_products(YamlSection& section, std::vector<ProductCurve>& products) {
  section.for_each_item("products", [&](YamlSection& item) {
    ProductCurve curve;
    item.read_type("type", curve.type, true);
    if (item.child("smallest_dim").IsDefined()) item.read_int("smallest_dim", curve.smallest_dim);
    item.read_curve("points", Kind::kFlops, Kind::kFlopsPerSecond, curve.points);
    products.push_back(std::move(curve));
  });
}

/// The unit of the first point's rate says whether a curve goes by FLOPs or by bytes.
bool goes_by_flops(const YAML::Node& points) {
  if (!points.IsSequence() || points.size() == 0) return false;
  const YAML::Node first = points[0];
  if (!first.IsSequence() || first.size() != 2 || !first[1].IsScalar()) return false;
  return first[1].Scalar().ends_with("FLOP/s");
}

void read_ops(YamlSection& section, std::vector<OpCurve>& ops) {
  section.for_each_item("ops", [&](YamlSection& item) {
    OpCurve curve;
    item.read_text("kind", curve.kind);
    item.read_type("type", curve.type, false);
    curve.by_flops = goes_by_flops(item.child("points"));
    item.read_curve("points", curve.by_flops ? Kind::kFlops : Kind::kBytes,
                    curve.by_flops ? Kind::kFlopsPerSecond : Kind::kBytesPerSecond, curve.points);
    item.read_number("inner_passes", curve.inner_passes);
    ops.push_back(std::move(curve));
  });
}

void read_alignment(YamlSection& section, Alignment& alignment) {
  if (!section.child("alignment").IsDefined()) return;
  YamlSection of_alignment = section.sub("alignment");
  of_alignment.read_int("multiple_of", alignment.multiple_of);
  of_alignment.read_number("times_longer", alignment.times_longer);
  of_alignment.finish();
}

void read_sharing(YamlSection& section, Sharing& sharing) {
  if (!section.child("sharing").IsDefined()) return;
  YamlSection of_sharing = section.sub("sharing");
  int64_t processors = 0;
  if (of_sharing.child("processors").IsDefined()) of_sharing.read_int("processors", processors);
  sharing.processors = static_cast<int>(processors);
  of_sharing.read_curve("compute", {}, {}, sharing.compute);
  of_sharing.read_curve("memory", {}, {}, sharing.memory);
  of_sharing.finish();
}

/// "message", or the name of a collective.
void read_exchange_kind(YamlSection& item, std::optional<CollectiveKind>& out) {
  const auto text = item.scalar("kind", true);
  if (!text || *text == "message") return;
  std::vector<std::string> valid = {"message"};
  for (CollectiveKind kind : kAllCollectives) {
    valid.emplace_back(to_string(kind));
    if (*text == valid.back()) out = kind;
  }
  if (!out)
    item.fail(item.child("kind").Mark(), item.dotted("kind"),
              fmt::format("\"{}\" is no exchange; valid: {}", *text, join(valid, ", ")));
}

std::string points_text(const Curve& points, std::optional<Kind> sizes, std::optional<Kind> values) {
  const auto side = [](std::optional<Kind> kind, double value) {
    return kind ? print_quantity(*kind, value) : fmt::format("{}", value);
  };
  std::vector<std::string> pairs;
  for (const CurvePoint& point : points)
    pairs.push_back(fmt::format("[{}, {}]", side(sizes, point.size), side(values, point.value)));
  return "[" + join(pairs, ", ") + "]";
}

std::string yaml_word(const std::string& text) {
  YAML::Emitter out;
  out << YAML::Flow << YAML::DoubleQuoted << text;
  return out.c_str();
}

std::string sharing_text(const Sharing& sharing) {
  std::vector<std::string> parts;
  if (sharing.processors > 0) parts.push_back(fmt::format("processors: {}", sharing.processors));
  if (!sharing.compute.empty()) parts.push_back("compute: " + points_text(sharing.compute, {}, {}));
  if (!sharing.memory.empty()) parts.push_back("memory: " + points_text(sharing.memory, {}, {}));
  return parts.empty() ? "" : fmt::format("    sharing: {{{}}}\n", join(parts, ", "));
}

}  // namespace

void read_curves(YamlSection& device, DeviceCurves& curves) {
  YamlSection section = device.sub("curves");
  read_products(section, curves.products);
  section.read_curve("memory", Kind::kBytes, Kind::kBytesPerSecond, curves.memory);
  read_ops(section, curves.ops);
  read_alignment(section, curves.alignment);
  read_sharing(section, curves.sharing);
  section.finish();
}

void read_curves(YamlSection& level, LevelCurves& curves) {
  YamlSection section = level.sub("curves");
  section.read_curve("bandwidth", Kind::kBytes, Kind::kBytesPerSecond, curves.bandwidth);
  section.for_each_item("measured", [&](YamlSection& item) {
    ExchangeCurve curve;
    read_exchange_kind(item, curve.kind);
    int64_t ranks = curve.ranks;
    if (curve.kind || item.child("ranks").IsDefined()) item.read_int("ranks", ranks);
    curve.ranks = static_cast<int>(ranks);
    item.read_curve("points", Kind::kBytes, Kind::kSeconds, curve.points);
    curves.measured.push_back(std::move(curve));
  });
  section.finish();
}

std::string curves_text(const DeviceCurves& curves) {
  std::string out = "  curves:\n";
  if (!curves.products.empty()) out += "    products:\n";
  for (const ProductCurve& curve : curves.products)
    out += fmt::format("      - {{type: {}, {}points: {}}}\n", to_string(curve.type),
                       curve.smallest_dim > 0 ? fmt::format("smallest_dim: {}, ", curve.smallest_dim) : "",
                       points_text(curve.points, Kind::kFlops, Kind::kFlopsPerSecond));
  if (!curves.memory.empty())
    out += fmt::format("    memory: {}\n", points_text(curves.memory, Kind::kBytes, Kind::kBytesPerSecond));
  if (!curves.ops.empty()) out += "    ops:\n";
  for (const OpCurve& curve : curves.ops)
    out += fmt::format("      - {{kind: {}, type: {}, {}points: {}}}\n", yaml_word(curve.kind), to_string(curve.type),
                       curve.inner_passes > 0 ? fmt::format("inner_passes: {}, ", curve.inner_passes) : "",
                       points_text(curve.points, curve.by_flops ? Kind::kFlops : Kind::kBytes,
                                   curve.by_flops ? Kind::kFlopsPerSecond : Kind::kBytesPerSecond));
  if (curves.alignment.multiple_of > 0)
    out += fmt::format("    alignment: {{multiple_of: {}, times_longer: {}}}\n", curves.alignment.multiple_of,
                       curves.alignment.times_longer);
  return out + sharing_text(curves.sharing);
}

std::string curves_text(const LevelCurves& curves) {
  std::string out = "    curves:\n";
  if (!curves.bandwidth.empty())
    out += fmt::format("      bandwidth: {}\n", points_text(curves.bandwidth, Kind::kBytes, Kind::kBytesPerSecond));
  if (!curves.measured.empty()) out += "      measured:\n";
  for (const ExchangeCurve& curve : curves.measured)
    out +=
        fmt::format("        - {{kind: {}, ranks: {}, points: {}}}\n", curve.kind ? to_string(*curve.kind) : "message",
                    curve.ranks, points_text(curve.points, Kind::kBytes, Kind::kSeconds));
  return out;
}

}  // namespace altiplano
