// Sharding specs: text that parses back, boxes that tile the tensor.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <set>

#include "framework/sharding/reshard.hpp"
#include "tests/support/specs.hpp"

namespace altiplano::test {

BOOST_AUTO_TEST_SUITE(specs)

BOOST_AUTO_TEST_CASE(every_spec_prints_and_parses_back) {
  MeshShape mesh{{{Axis::kData, 2}, {Axis::kTensor, 2}, {Axis::kExpert, 2}, {Axis::kContext, 2}}};
  std::set<std::string> texts;
  size_t count = 0;
  for (size_t rank = 0; rank <= 3; ++rank) {
    for (PartialKind kind : {PartialKind::kSum, PartialKind::kMax}) {
      for (const ShardingSpec& spec : all_specs(rank, mesh, true, kind)) {
        if (kind == PartialKind::kMax && spec.partial.is_empty()) continue;
        auto parsed = ShardingSpec::parse(spec.to_string());
        BOOST_REQUIRE_MESSAGE(parsed.is_ok(), parsed.status().to_string());
        BOOST_TEST((*parsed == spec), spec.to_string());
        texts.insert(spec.to_string());
        ++count;
      }
    }
  }
  BOOST_TEST(texts.size() == count);
}

BOOST_AUTO_TEST_CASE(text_that_is_no_spec_is_refused) {
  for (const char* text : {"", "[", "[-", "[{data}", "[{data},]", "[{dat}]", "[data]", "[-] sum", "[-] sum{}",
                           "[-] avg{data}", "[-] sum{data} x", "[{}]"})
    BOOST_TEST(!ShardingSpec::parse(text).is_ok(), "'" << text << "' was taken");
}

BOOST_AUTO_TEST_CASE(local_boxes_tile_the_tensor_for_every_spec) {
  for (const MeshShape& mesh : test_meshes()) {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{5}, Shape{3, 4}, Shape{1, 7}, Shape{2, 1, 5}}) {
      for (const ShardingSpec& spec : all_specs(shape.size(), mesh)) {
        Shape largest(shape.size(), 0);
        int64_t held = 0, copies = 1;
        std::set<Box> distinct;
        for (const auto& [axis, degree] : mesh.axes)
          if (!spec.split_axes().contains(axis)) copies *= degree;
        for (int i = 0; i < mesh.num_devices(); ++i) {
          Box box = local_box(spec, shape, mesh, i);
          BOOST_TEST((box.is_empty() || Box::whole(shape).contains(box)));
          for (size_t d = 0; d < shape.size(); ++d) largest[d] = std::max(largest[d], box.extents[d]);
          held += box.num_elements();
          if (!box.is_empty()) distinct.insert(box);
        }
        BOOST_TEST(held == copies * num_elements(shape), spec.to_string() << " on " << mesh.to_string());
        for (const Box& a : distinct)
          for (const Box& b : distinct) BOOST_TEST((a == b || !intersect(a, b)));
        BOOST_TEST((largest == padded_extents(spec, shape, mesh)), spec.to_string());
        BOOST_TEST((normalized(normalized(spec, mesh), mesh) == normalized(spec, mesh)));
      }
    }
  }
}

namespace {

/// The devices in the order of the tiles that they hold, row-major; those with equal tiles by number.
std::vector<int> devices_by_tile(const char* spec, const Shape& shape, const MeshShape& mesh) {
  std::vector<std::pair<std::vector<int64_t>, int>> held;
  for (int i = 0; i < mesh.num_devices(); ++i)
    held.emplace_back(local_box(*ShardingSpec::parse(spec), shape, mesh, i).origin, i);
  std::sort(held.begin(), held.end());
  std::vector<int> devices;
  for (const auto& [origin, device] : held) devices.push_back(device);
  return devices;
}

/// Alpa's convention: what moves costs its bytes, slicing is free.
std::string path_text(const char* from, const char* to, const MeshShape& mesh) {
  std::string text;
  const auto path = *reshard_path(*ShardingSpec::parse(from), *ShardingSpec::parse(to), {128, 128}, mesh);
  for (const ReshardStep& step : path)
    text += fmt::format("{} along {}, {} elements;", to_string(step.kind), to_string(step.axis), step.wire_elements);
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(tiles_lie_on_devices_as_in_alpas_golden_results) {
  const MeshShape mesh{{{Axis::kData, 2}, {Axis::kTensor, 3}}};  // [[0, 1, 2], [3, 4, 5]]
  const Shape shape{12, 12};
  using List = std::vector<int>;
  auto extents = [&](const char* spec) { return local_box(*ShardingSpec::parse(spec), shape, mesh, 0).extents; };
  BOOST_TEST((devices_by_tile("[{data}, {tensor}]", shape, mesh) == List{0, 1, 2, 3, 4, 5}));
  BOOST_TEST((extents("[{data}, {tensor}]") == Shape{6, 4}));
  BOOST_TEST((devices_by_tile("[{tensor}, {data}]", shape, mesh) == List{0, 3, 1, 4, 2, 5}));
  BOOST_TEST((extents("[{tensor}, {data}]") == Shape{4, 6}));
  BOOST_TEST((devices_by_tile("[{data}, -]", shape, mesh) == List{0, 1, 2, 3, 4, 5}));
  BOOST_TEST((extents("[{data}, -]") == Shape{6, 12}));
  BOOST_TEST((devices_by_tile("[{tensor}, -]", shape, mesh) == List{0, 3, 1, 4, 2, 5}));
  BOOST_TEST((extents("[{tensor}, -]") == Shape{4, 12}));
}

BOOST_AUTO_TEST_CASE(resharding_costs_what_alpas_golden_results_say) {
  const MeshShape mesh{{{Axis::kData, 2}, {Axis::kTensor, 3}}};
  BOOST_TEST(path_text("[{data}, -]", "[{data}, -]", mesh) == "");
  BOOST_TEST(path_text("[{data}, -]", "[{data}, {tensor}]", mesh) == "slice along tensor, 0 elements;");
  // Blocks of 64 x 32, three of which a rank lacks.
  const MeshShape even{{{Axis::kData, 2}, {Axis::kTensor, 4}}};
  BOOST_TEST(path_text("[{data}, {tensor}]", "[{data}, -]", even) == "all_gather along tensor, 6144 elements;");
  // An axis of one device splits nothing.
  const MeshShape flat{{{Axis::kData, 4}, {Axis::kTensor, 1}}};
  BOOST_TEST(path_text("[{data}, {tensor}]", "[{data}, -]", flat) == "");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
