// Random models under random legal plans train as on one rank: graphs no model plugin would write (skip connections
// across stages, parameters used on several stages, layout ops, lone scalars) and parameter specs no planner would
// choose.
#include <boost/test/unit_test.hpp>
#include <random>
#include <set>

#include "framework/graph/builder.hpp"
#include "tests/support/invariance.hpp"
#include "tests/support/plans.hpp"
#include "tests/support/specs.hpp"
#include "tests/support/train.hpp"

namespace altiplano::test {

namespace {

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  size_t below(size_t n) { return random_() % n; }
  bool chance(size_t one_in) { return below(one_in) == 0; }
  template <typename T>
  const T& pick(const std::vector<T>& list) {
    return list[below(list.size())];
  }

 private:
  std::mt19937 random_;
};

constexpr int64_t kBatch = 12, kSequence = 4, kHidden = 8, kVocabulary = 11;

/// Writes layers of random ops on activations [b,s,d].
class RandomModel {
 public:
  RandomModel(unsigned seed) : dice_(seed), b_("random") {}

  ModelGraph write() {
    b_.layer("first");
    tokens_ = b_.input("tokens", {kBatch, kSequence}, DType::kI32);
    table_ = parameter("table", {kVocabulary, kHidden});
    values_ = {b_.embedding("embed", table_, tokens_)};
    size_t layers = 2 + dice_.below(4);
    for (size_t l = 0; l < layers; ++l) {
      b_.layer(fmt::format("middle.{}", l));
      for (size_t ops = 1 + dice_.below(4); ops > 0; --ops) values_.push_back(add_op());
    }
    b_.layer("last");
    ValueId labels = b_.input("labels", {kBatch, kSequence}, DType::kI32);
    ValueId weight = dice_.chance(2) ? table_ : parameter("head", {kVocabulary, kHidden});
    ValueId logits = b_.matmul("logits", "[b,s,d] [v,d] -> [b,s,v]", norm("final", sum_of_leaves()), weight);
    auto [loss, count] = b_.cross_entropy("loss", logits, labels);
    for (const std::string& name : names_)
      if (dice_.chance(9)) b_.freeze(name);
    auto model = b_.finish({tokens_, labels}, loss, count, logits);
    BOOST_REQUIRE_MESSAGE(model.is_ok(), model.status().to_string());
    return std::move(model).value();
  }

 private:
  std::string name(const char* what) { return fmt::format("{}.{}", what, next_++); }

  ValueId parameter(const std::string& label, Shape shape) {
    names_.push_back(label);
    return b_.parameter(label, std::move(shape), {Initializer::Kind::kNormal, 0.1, 0.4}, dice_.chance(2));
  }

  ValueId norm(const std::string& label, ValueId x) {
    return b_.layer_norm(label, x, parameter(label + ".w", {kHidden}), parameter(label + ".b", {kHidden}));
  }

  /// The newest value most often, an old one (maybe of another stage) sometimes.
  ValueId any() {
    ValueId value = dice_.chance(3) ? dice_.pick(values_) : values_.back();
    used_.insert(value);
    return value;
  }

  /// Every parameter must reach the loss.
  ValueId sum_of_leaves() {
    ValueId sum = values_.back();
    for (ValueId value : values_)
      if (value != values_.back() && !used_.count(value)) sum = b_.add(name("sum"), sum, value);
    return sum;
  }

  ValueId add_op() {
    switch (dice_.below(13)) {
      case 0:
        return norm(name("norm"), any());
      case 1:
        return mlp(any());
      case 2:
        return b_.add(name("add"), any(), any());
      case 3:
        return b_.dropout(name("dropout"), any(), 0.2);
      case 4:
        return attention(any());
      case 5:
        return b_.op1("multiply", name("multiply"), {any(), any()});
      case 6:
        return b_.op1("scale", name("scale"), {any()}, {{"factor", 0.7}});
      case 7:
        return b_.op1("softmax", name("softmax"), {any()});
      case 8:
        return b_.add_bias(
            name("bias"), any(),
            parameter(name("bias.weight"), dice_.chance(2) ? Shape{kHidden} : Shape{kSequence, kHidden}));
      case 9:
        return again(any());
      case 10:
        return reordered(any());
      case 11:
        return halves(any());
      default:
        return b_.add(name("tokens.again"), any(), b_.embedding(name("embed"), table_, tokens_));
    }
  }

  ValueId mlp(ValueId x) {
    int64_t width = 5 + static_cast<int64_t>(dice_.below(12));
    std::string label = name("mlp");
    ValueId up = b_.matmul(label + ".up", "[b,s,d] [d,f] -> [b,s,f]", x, parameter(label + ".up.w", {kHidden, width}));
    ValueId active = b_.gelu(label + ".gelu", b_.add_bias(label + ".up.sum", up, parameter(label + ".up.b", {width})),
                             dice_.chance(2) ? "tanh" : "erf");
    return b_.add(
        label, x,
        b_.matmul(label + ".down", "[b,s,f] [f,d] -> [b,s,d]", active, parameter(label + ".down.w", {width, kHidden})));
  }

  ValueId attention(ValueId x) {
    std::string label = name("attention");
    std::vector<ValueId> qkv;
    for (const char* part : {".q", ".k", ".v"})
      qkv.push_back(
          b_.matmul(label + part, "[b,s,d] [d,h,k] -> [b,s,h,k]", x, parameter(label + part + ".w", {kHidden, 4, 2})));
    ValueId mixed = b_.attention(label + ".core", qkv[0], qkv[1], qkv[2], dice_.chance(2) ? 0.1 : 0.0);
    return b_.add(
        label, x,
        b_.matmul(label + ".out", "[b,s,h,k] [h,k,d] -> [b,s,d]", mixed, parameter(label + ".out.w", {4, 2, kHidden})));
  }

  /// A square weight that several layers may share.
  ValueId again(ValueId x) {
    if (!shared_.is_valid() || dice_.chance(3)) shared_ = parameter(name("shared"), {kHidden, kHidden});
    return b_.matmul(name("again"), "[b,s,d] [d,e] -> [b,s,e]", x, shared_);
  }

  ValueId reordered(ValueId x) {
    ValueId turned = b_.op1("transpose", name("transpose"), {x}, {{"permutation", std::vector<int64_t>{0, 2, 1}}});
    ValueId back = b_.op1("transpose", name("transpose"), {turned}, {{"permutation", std::vector<int64_t>{0, 2, 1}}});
    ValueId split = b_.reshape(name("split"), back, {kBatch, kSequence, 4, kHidden / 4});
    return b_.reshape(name("merge"), split, {kBatch, kSequence, kHidden});
  }

  ValueId halves(ValueId x) {
    ValueId left = b_.slice(name("slice"), x, 2, 0, kHidden / 2),
            right = b_.slice(name("slice"), x, 2, kHidden / 2, kHidden / 2);
    return b_.op1("concat", name("concat"), {right, left}, {{"dim", int64_t{2}}});
  }

  Dice dice_;
  GraphBuilder b_;
  ValueId tokens_, table_, shared_;
  std::vector<ValueId> values_;
  std::set<ValueId> used_;
  std::vector<std::string> names_;
  int next_ = 0;
};

/// Degrees, microbatches, schedule, state specs at random; some parameters split along any dims by any axes.
Plan random_plan(Dice& dice, const TrainingGraph& graph) {
  DegreePlanOptions options;
  int layers = static_cast<int>(graph.graph.layers().size());
  options.degrees = {dice.pick<int>({1, 2, 3}), dice.pick<int>({1, 2, 3}), dice.pick<int>({1, 2, 3})};
  options.degrees.pipeline = std::min(options.degrees.pipeline, layers);
  while (options.degrees.num_ranks() > 8) options.degrees.data = options.degrees.tensor = 1;
  int64_t per_replica = kBatch / options.degrees.data;
  do options.microbatch = 1 + static_cast<int64_t>(dice.below(static_cast<size_t>(per_replica)));
  while (per_replica % options.microbatch != 0);
  options.schedule = dice.chance(2) ? "1f1b" : "gpipe";
  options.zero = static_cast<int>(dice.below(2));
  options.sequence_parallel = dice.chance(2);
  std::vector<int64_t> counts(static_cast<size_t>(options.degrees.pipeline), 1);
  for (int extra = layers - options.degrees.pipeline; extra > 0; --extra) ++counts[dice.below(counts.size())];
  options.split = counts;
  auto plan = plan_from_degrees(graph, test_cluster(options.degrees.num_ranks()), options);
  BOOST_REQUIRE_MESSAGE(plan.is_ok(), plan.status().to_string());
  MeshShape mesh = plan->stages[0].mesh;
  for (const Parameter& p : graph.graph.parameters()) {
    const Value& value = graph.graph.value(p.value);
    if (dice.chance(2)) plan->sharding.emplace_back(value.name, dice.pick(all_specs(value.shape.size(), mesh, false)));
  }
  Status status = verify_plan(*plan, graph);
  BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
  return std::move(plan).value();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(random_graphs)

BOOST_AUTO_TEST_CASE(random_models_train_alike_under_random_plans) {
  TrainOptions run;
  run.steps = 2;
  run.validate = true;
  run.clip = 0.5;
  for (unsigned seed = 0; seed < 200; ++seed) {
    auto graph = make_training_graph(RandomModel(seed).write(), DType::kF64, {}, seed);
    BOOST_REQUIRE_MESSAGE(graph.is_ok(), graph.status().to_string());
    TrainResult one = train(*graph, one_rank_plan(*graph), run);
    Dice dice(seed + 10'000);
    for (int i = 0; i < 2; ++i) {
      Plan plan = random_plan(dice, *graph);
      std::string off = difference(train(*graph, plan, run), one);
      BOOST_TEST(off.empty(), "seed " << seed << ":" << off << "\n" << plan.to_yaml());
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
