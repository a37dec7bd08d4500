// Plan invariance for the models of the Alpa suites, on device/reference: experts that tokens reach by all_to_all, and
// statistics over the samples of several replicas, train as on one rank.
#include "framework/base/random.hpp"
#include "framework/sharding/reshard.hpp"
#include "tests/support/invariance.hpp"
#include "tests/support/planner_request.hpp"
#include "tests/support/plans.hpp"

namespace altiplano::test {

namespace {

TrainingGraph graph_of_model(const std::string& kind, const std::vector<std::pair<std::string, OptionValue>>& changes,
                             const ModelRequest& request) {
  gpt_plugin();  // puts the plugins on the search path
  auto model = PluginRegistry::instance().model(kind);
  BOOST_REQUIRE_MESSAGE(model.is_ok(), model.status().to_string());
  Options options((*model)->option_records());
  for (const auto& [key, value] : changes) BOOST_REQUIRE(options.set(key, value, {}).is_ok());
  auto built = (*model)->build(options, request);
  BOOST_REQUIRE_MESSAGE(built.is_ok(), built.status().to_string());
  auto training = make_training_graph(std::move(built).value(), DType::kF64, {}, 7);
  BOOST_REQUIRE_MESSAGE(training.is_ok(), training.status().to_string());
  return std::move(training).value();
}

TrainingGraph moe_graph() {
  return graph_of_model("moe",
                        {{"num_hidden_layers", int64_t{2}},
                         {"hidden_size", int64_t{8}},
                         {"num_attention_heads", int64_t{4}},
                         {"max_position_embeddings", int64_t{6}},
                         {"vocab_size", int64_t{12}},
                         {"num_local_experts", int64_t{4}}},
                        {8, 6});
}

TrainingGraph wide_resnet_graph() {
  return graph_of_model("wide_resnet",
                        {{"image_size", int64_t{12}},
                         {"embedding_size", int64_t{4}},
                         {"depths", std::vector<int64_t>{1, 2}},
                         {"num_labels", int64_t{8}},
                         {"batch_norm_samples", int64_t{4}}},
                        {8, 1});
}

constexpr int64_t kImages = 8, kTogether = 4;

/// Images and labels as a pure function of (step, sample, pixel). A replica's microbatches are of its own share of the
/// samples: one rank gets those that `replicas` have together at once in their order.
class SyntheticImages : public InputSource {
 public:
  SyntheticImages(const TrainingGraph& graph, int64_t step, int64_t replicas)
      : graph_(graph), step_(static_cast<uint64_t>(step)), replicas_(replicas) {}
  Status fill(ValueId input, const Box& box, void* destination) override {
    const int64_t per_sample = box.num_elements() / std::max<int64_t>(1, box.extents[0]);
    const bool is_image = is_floating(graph_.graph.value(input).dtype);
    const uint64_t stream = random_stream(4, is_image ? "images" : "labels");
    for (int64_t i = 0; i < box.num_elements(); ++i) {
      const auto element = static_cast<uint64_t>(sample(box.origin[0] + i / per_sample) * 100'000 + i % per_sample);
      if (is_image)
        static_cast<double*>(destination)[i] = random_normal(stream, step_, element);
      else
        static_cast<int32_t*>(destination)[i] = static_cast<int32_t>(random_word(stream, step_, element) % 8);
    }
    return Status::ok();
  }

 private:
  int64_t sample(int64_t place) const {
    const int64_t own = kTogether / replicas_, microbatch = place / kTogether, within = place % kTogether;
    return within / own * (kImages / replicas_) + microbatch * own + within % own;
  }

  const TrainingGraph& graph_;
  uint64_t step_;
  int64_t replicas_;
};

/// The degrees with a sharding by planner/ilp; `at_once`: samples of all replicas.
Plan searched_plan(const TrainingGraph& graph, const Degrees& degrees, int64_t at_once, int zero) {
  DegreePlanOptions options;
  options.degrees = degrees;
  options.microbatch = at_once / degrees.data;
  options.zero = zero;
  Plan plan = make_plan(graph, options);
  plan.sharding.clear();
  PlannerBench bench(graph, degrees.num_ranks());
  const Status status = planner_plugin("ilp").sharding()->plan_sharding(bench.request(), plan);
  BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
  return plan;
}

using Inputs = std::function<std::unique_ptr<InputSource>(int64_t step)>;

/// `inputs_of_one`: what one rank is given to compare with so many replicas; may be null.
void check_plans(const TrainingGraph& graph, int64_t at_once, TrainOptions options,
                 const std::function<Inputs(int64_t replicas)>& inputs_of_one) {
  options.steps = 2;
  const Plan one_rank = searched_plan(graph, {1, 1, 1}, at_once, 0);
  int zero = 0;
  for (const Degrees& degrees : {Degrees{2, 1, 1}, {4, 1, 1}, {1, 2, 1}, {1, 4, 1}, {2, 2, 1}, {1, 1, 2}, {2, 2, 2}}) {
    TrainOptions of_one = options;
    if (inputs_of_one) of_one.input = inputs_of_one(degrees.data);
    const TrainResult one = train(graph, one_rank, of_one);
    const Plan by_rule = [&] {
      DegreePlanOptions rule;
      rule.degrees = degrees;
      rule.microbatch = at_once / degrees.data;
      return make_plan(graph, rule);
    }();
    for (const Plan& plan : {by_rule, searched_plan(graph, degrees, at_once, zero++ % 4)}) {
      const std::string off = difference(train(graph, plan, options), one);
      BOOST_TEST(off.empty(), plan.to_yaml() << off);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(suite_models)

BOOST_AUTO_TEST_CASE(a_mixture_of_experts_trains_as_one_rank_under_any_plan) {
  check_plans(moe_graph(), 8, {}, nullptr);
}

BOOST_AUTO_TEST_CASE(experts_on_an_axis_that_splits_samples_before_are_reached_by_all_to_all_and_train_as_one_rank) {
  const TrainingGraph graph = moe_graph();
  TrainOptions options;
  options.steps = 2;
  const TrainResult one = train(graph, searched_plan(graph, {1, 1, 1}, 8, 0), options);
  DegreePlanOptions two_ranks;
  two_ranks.degrees = {1, 2, 1};
  two_ranks.microbatch = 8;
  Plan plan = make_plan(graph, two_ranks);
  plan.sharding.clear();
  // Everything works on its own samples, the experts on their own experts.
  for (const char* name : {"up", "down"})
    plan.sharding.emplace_back(fmt::format("block.*.experts.{}.weight", name),
                               *ShardingSpec::parse("[{tensor}, -, -]"));
  for (const char* name : {"up", "down", "relu"})
    plan.strategies.emplace_back(fmt::format("block.*.experts.{}", name),
                                 name == std::string("relu") ? "tensor:d0" : "tensor:e");
  plan.strategies.emplace_back("block.*.experts.dispatch", "tensor:b");
  plan.strategies.emplace_back("block.*.experts.combine", "tensor:b");
  for (const char* name : {"scores", "gates", "routes"})
    plan.strategies.emplace_back(fmt::format("block.*.experts.{}", name),
                                 name == std::string("gates") ? "tensor:d0" : "tensor:b");
  const Status status = verify_plan(plan, graph);
  BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
  int exchanges = 0;
  const std::vector<Program> programs = lower_plan(graph, plan);
  for (const Block& block : programs[0].blocks)
    for (const Instruction& instruction : block.instructions)
      if (const auto* collective = std::get_if<CollectiveInstruction>(&instruction.what))
        exchanges += collective->kind == CollectiveKind::kAllToAll;
  BOOST_TEST(exchanges >= 2);
  const std::string off = difference(train(graph, plan, options), one);
  BOOST_TEST(off.empty(), plan.to_yaml() << off);
}

BOOST_AUTO_TEST_CASE(batch_norm_over_the_samples_of_replicas_trains_as_one_rank) {
  const TrainingGraph graph = wide_resnet_graph();
  const auto inputs = [&graph](int64_t replicas) -> Inputs {
    return [&graph, replicas](int64_t step) { return std::make_unique<SyntheticImages>(graph, step, replicas); };
  };
  TrainOptions options;
  options.input = inputs(1);  // the identity
  check_plans(graph, kTogether, options, inputs);
}

BOOST_AUTO_TEST_CASE(a_plan_that_computes_another_number_of_samples_at_once_is_refused) {
  const TrainingGraph graph = wide_resnet_graph();
  DegreePlanOptions replicas;
  replicas.degrees = {2, 1, 1};
  replicas.microbatch = 4;
  auto plan = plan_from_degrees(graph, test_cluster(2), replicas);
  BOOST_REQUIRE(plan.is_ok());
  BOOST_TEST(verify_plan(*plan, graph).message() ==
             "plan computes 4 x data 2 = 8 samples at once, the model's statistics are over 4; valid: 2 microbatches");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
