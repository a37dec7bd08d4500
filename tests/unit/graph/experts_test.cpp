// Routing of tokens to experts: what it computes on a small case worked out by hand, and how its products split.
#include <boost/test/unit_test.hpp>

#include "framework/graph/builder.hpp"
#include "framework/sharding/reshard.hpp"
#include "framework/sharding/rule.hpp"
#include "tests/support/interpreter.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

/// Weights and dispatch of one sample's gates, on device/reference.
std::pair<std::vector<double>, std::vector<double>> routed(const std::vector<double>& gates, int64_t tokens,
                                                           int64_t experts, int64_t capacity) {
  GraphBuilder b("routes");
  b.layer("all");
  const ValueId input = b.input("gates", {1, tokens, experts}, DType::kF64);
  const auto routes = b.op("top2_gating", "routes", {input}, {{"capacity", capacity}});
  BOOST_REQUIRE_MESSAGE(b.status().is_ok(), b.status().to_string());
  const auto device = open_device();
  const Values values = run_graph(*device, b.graph(), {{input, gates}});
  return {values.at(routes[0]), values.at(routes[1])};
}

}  // namespace

BOOST_AUTO_TEST_CASE(first_choices_find_their_place_before_second_ones_and_who_finds_none_is_passed_by) {
  // Three experts with one place each. Tokens choose (0,1), (0,2), (1,0).
  const std::vector<double> gates = {0.6, 0.3, 0.1, 0.5, 0.1, 0.4, 0.2, 0.7, 0.1};
  const auto [weights, dispatch] = routed(gates, 3, 3, 1);
  // Token 0 has expert 0; expert 1 is taken by token 2's first choice. Token 1 finds expert 0 full and has expert 2.
  const std::vector<double> expected = {1, 0, 0, 0, 0, 1, 0, 1, 0};
  BOOST_TEST(weights == expected, boost::test_tools::per_element());
  BOOST_TEST(dispatch == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(weights_are_the_shares_of_the_two_gates) {
  const auto [weights, dispatch] = routed({0.6, 0.3, 0.1, 0.5, 0.1, 0.4}, 2, 3, 2);
  // [token, expert, place]: token 0 at places 0 of experts 0 and 1; token 1 at place 1 of expert 0, 0 of expert 2.
  const std::vector<double> expected = {0.6 / 0.9, 0, 0.3 / 0.9, 0, 0, 0, 0, 0.5 / 0.9, 0, 0, 0.4 / 0.9, 0};
  BOOST_REQUIRE_EQUAL(weights.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    BOOST_TEST(weights[i] == expected[i], boost::test_tools::tolerance(1e-12));
    BOOST_TEST(dispatch[i] == (expected[i] > 0 ? 1.0 : 0.0));
  }
}

BOOST_AUTO_TEST_CASE(wrong_gates_are_refused_with_the_numbers) {
  const auto& infer = OpTable::instance().get("top2_gating").infer;
  const std::vector<ValueType> one = {{{2, 3, 1}, DType::kF32}}, four = {{{2, 3, 4}, DType::kF32}};
  BOOST_TEST(infer(one, {{"capacity", int64_t{2}}}).status().message() ==
             "1 expert; two are chosen, so there must be at least 2");
  BOOST_TEST(infer(four, {}).status().message() == "capacity is 0; an expert takes at least one token of a sample");
  const auto routes = infer(four, {{"capacity", int64_t{2}}});
  BOOST_REQUIRE(routes.is_ok());
  BOOST_TEST(to_string((*routes)[0].shape) == "[2,3,4,2]");
  BOOST_TEST(OpTable::instance().get("top2_gating").rule(four, *routes, {}) ==
             "[b,s,e] -> [b,s,e,c] [b,s,e,c]  whole: s,e,c");
}

BOOST_AUTO_TEST_CASE(from_samples_split_to_experts_split_is_one_all_to_all) {
  const MeshShape mesh{{{Axis::kData, 2}, {Axis::kTensor, 4}}};
  const Shape taken{8, 16, 32, 64};  // [e,b,c,d]
  const auto samples = ShardingSpec::parse("[-, {data,tensor}, -, -]"),
             experts = ShardingSpec::parse("[{tensor}, {data}, -, -]");
  BOOST_REQUIRE(samples.is_ok() && experts.is_ok());
  const auto path = reshard_path(*samples, *experts, taken, mesh);
  BOOST_REQUIRE(path.is_ok());
  BOOST_REQUIRE_EQUAL(path->size(), 1u);
  BOOST_TEST(((*path)[0].kind == ReshardKind::kAllToAll));
  // Of an eighth of the tensor each rank keeps its quarter.
  BOOST_TEST((*path)[0].wire_elements == 8.0 * 16 * 32 * 64 / 8 * 3 / 4);
}
