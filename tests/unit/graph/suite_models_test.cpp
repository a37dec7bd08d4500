// The models of the Alpa paper's suites: sizes as published, layers as they are said to be.
#include <boost/test/unit_test.hpp>
#include <set>

#include "framework/graph/samples_together.hpp"
#include "framework/plugin/registry.hpp"
#include "framework/runtime/job.hpp"
#include "framework/runtime/job_graph.hpp"
#include "framework/sharding/dims.hpp"
#include "tests/support/alpa_job.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

/// The model as it is written, of a small batch where nothing says how many samples it takes.
ModelGraph written(const AlpaMember& member, int64_t batch) {
  const Options options = alpa_job(member, "dp").value().options;
  auto model = PluginRegistry::instance().model(options.get_string("model.kind"));
  BOOST_REQUIRE_MESSAGE(model.is_ok(), model.status().to_string());
  auto built = (*model)->build(options.section("model"), {batch, member.sequence});
  BOOST_REQUIRE_MESSAGE(built.is_ok(), member.name() << ": " << built.status().to_string());
  return std::move(built).value();
}

const AlpaMember& member(const std::string& name) {
  for (const AlpaMember& member : alpa_suite())
    if (member.name() == name) return member;
  BOOST_REQUIRE_MESSAGE(false, "no " << name);
  return alpa_suite()[0];
}

int count_in_all_phases(const Graph& graph, const std::string& kind) {
  int count = 0;
  for (const Op& op : graph.ops()) count += op.kind == kind;
  return count;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_model_of_the_suites_has_as_many_parameters_as_published) {
  BOOST_TEST(alpa_suite().size() == 21u);
  for (const AlpaMember& member : alpa_suite()) {
    const auto count = static_cast<double>(num_parameters(written(member, member.batch).graph));
    // The published sizes have two figures.
    BOOST_TEST(count == member.parameters, boost::test_tools::tolerance(0.04));
  }
}

BOOST_AUTO_TEST_CASE(every_second_block_has_experts_and_equal_blocks_share_a_signature) {
  const ModelGraph moe = written(member("MoE 1.3B"), 4);
  BOOST_TEST(count_in_all_phases(moe.graph, "top2_gating") == 8);
  BOOST_TEST(count_in_all_phases(moe.graph, "gelu") == 8);
  const auto signatures = layer_signatures(moe.graph);
  BOOST_REQUIRE_EQUAL(signatures.size(), 18u);
  BOOST_TEST(std::set<uint64_t>(signatures.begin(), signatures.end()).size() == 4u);
  BOOST_TEST(signatures[1] == signatures[3]);
  BOOST_TEST(signatures[2] == signatures[4]);
  const ValueId routes = moe.graph.find_value("block.0.experts.routes.0");
  BOOST_REQUIRE(routes.is_valid());
  BOOST_TEST(to_string(moe.graph.value(routes).shape) == "[4,1024,16,128]");  // 2 x 1024 / 16 places
}

BOOST_AUTO_TEST_CASE(a_wide_resnet_has_the_convolutions_of_its_name_and_halves_its_images_four_times) {
  const ModelGraph fifty = written(member("Wide-ResNet 250M"), 64), hundred = written(member("Wide-ResNet 13B"), 40);
  BOOST_TEST(count_in_all_phases(fifty.graph, "conv2d") == 1 + 3 * 16 + 4);  // with the shortcuts
  BOOST_TEST(count_in_all_phases(hundred.graph, "conv2d") == 1 + 3 * 33 + 4);
  const Value& last = fifty.graph.value(fifty.graph.find_value("block.15.relu3"));
  BOOST_TEST(to_string(last.shape) == "[64,7,7,5120]");
  BOOST_TEST(samples_together(fifty.graph).value() == 64);
  const auto signatures = layer_signatures(fifty.graph);
  BOOST_TEST(std::set<uint64_t>(signatures.begin(), signatures.end()).size() == 2u + 2 * 4);
  // Samples are traced through every block, so that replicas know what they have.
  const auto rules = rules_of(fifty.graph);
  BOOST_REQUIRE(rules.is_ok());
  const std::vector<int> batch = trace_dim(fifty.graph, *rules, fifty.inputs, 0);
  for (const Op& op : fifty.graph.ops())
    if (op.kind == "conv2d") BOOST_TEST(batch[op.outputs[0].index()] == 0, op.name);
}

BOOST_AUTO_TEST_CASE(impossible_models_are_refused_with_the_numbers) {
  const auto refusal = [](const AlpaMember& of, const std::string& change) {
    AlpaMember changed = of;
    changed.model.insert(changed.model.size() - 1, ", " + change);
    auto job = alpa_job(changed, "dp");
    if (!job.is_ok()) return job.status().message();
    const Options& options = job->options;
    auto model = PluginRegistry::instance().model(options.get_string("model.kind"));
    return (*model)->build(options.section("model"), {changed.batch, changed.sequence}).status().message();
  };
  AlpaMember image = member("Wide-ResNet 250M");
  image.batch = 60;
  BOOST_TEST(refusal(image, "image_size: 32")
                     .find("batch_norm_samples: 64 samples do not divide the global batch of 60; "
                           "valid: 1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60") != std::string::npos,
             refusal(image, "image_size: 32"));
  AlpaMember moe = member("MoE 380M");
  moe.sequence = 2048;
  BOOST_TEST(refusal(moe, "capacity_factor: 2.0").find("1024 positions are too few for sequences of 2048 tokens") !=
                 std::string::npos,
             refusal(moe, "capacity_factor: 2.0"));
}
