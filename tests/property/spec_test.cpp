// Sharding specs: text that parses back, boxes that tile the tensor.
#include <boost/test/unit_test.hpp>
#include <set>

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

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
