// Training cases of the field reports (docs/field-cases.md): what users of other systems saw, run here on a small
// model.
#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/graph/builder.hpp"
#include "tests/support/invariance.hpp"
#include "tests/support/plans.hpp"

namespace altiplano::test {

namespace {

GptShape small_shape() {
  GptShape shape;
  shape.layers = 4, shape.hidden = 12, shape.heads = 4, shape.vocabulary = 67, shape.batch = 8, shape.sequence = 5,
  shape.dropout = 0.1;
  return shape;
}

Plan small_plan(const TrainingGraph& graph, Degrees degrees, int64_t microbatch, int zero = 1) {
  DegreePlanOptions options;
  options.degrees = degrees;
  options.microbatch = microbatch;
  options.zero = zero;
  return make_plan(graph, options);
}

void check_alike(const TrainingGraph& graph, const Plan& plan, const TrainOptions& options, const TrainResult& one) {
  std::string off = difference(train(graph, plan, options), one);
  BOOST_TEST(off.empty(), plan.to_yaml() << off);
}

/// SyntheticInput whose labels of the samples [first, last) are all ignored.
class IgnoredSamples : public InputSource {
 public:
  IgnoredSamples(const TrainingGraph& graph, int64_t step, int64_t first, int64_t last)
      : graph_(graph), inner_(graph, step), first_(first), last_(last) {}
  Status fill(ValueId input, const Box& box, void* destination) override {
    ALTIPLANO_RETURN_IF_ERROR(inner_.fill(input, box, destination));
    if (input != graph_.inputs[1]) return Status::ok();
    auto* labels = static_cast<int32_t*>(destination);
    for (int64_t b = 0; b < box.extents[0]; ++b)
      for (int64_t s = 0; s < box.extents[1]; ++s)
        if (box.origin[0] + b >= first_ && box.origin[0] + b < last_) labels[b * box.extents[1] + s] = -1;
    return Status::ok();
  }

 private:
  const TrainingGraph& graph_;
  SyntheticInput inner_;
  int64_t first_, last_;
};

TrainOptions ignoring(const TrainingGraph& graph, int64_t first, int64_t last) {
  TrainOptions options;
  options.steps = 4;
  options.input = [&graph, first, last](int64_t step) {
    return std::make_unique<IgnoredSamples>(graph, step, first, last);
  };
  return options;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(field_cases)

BOOST_AUTO_TEST_CASE(p11_tied_copies_stay_equal_over_twenty_steps_and_equal_to_one_stage) {
  TrainingGraph graph = make_gpt_training(small_shape());
  TrainOptions options;
  options.steps = 20;
  TrainResult one = train(graph, one_rank_plan(graph), options);
  for (int stages : {2, 3, 4}) check_alike(graph, small_plan(graph, {1, 1, stages}, 2), options, one);
}

BOOST_AUTO_TEST_CASE(p13_p14_the_gradient_norm_counts_every_parameter_once) {
  TrainingGraph graph = make_gpt_training(small_shape());
  TrainOptions options;
  options.steps = 3;
  options.clip = 0.1;  // always active: a wrong norm would change the weights too
  TrainResult one = train(graph, one_rank_plan(graph), options);
  BOOST_TEST(one.norms[0] > options.clip);
  for (Degrees degrees : {Degrees{1, 1, 2}, {1, 1, 4}, {1, 2, 1}, {1, 4, 1}, {4, 1, 1}, {2, 2, 2}})
    for (int zero : {0, 1}) check_alike(graph, small_plan(graph, degrees, 2, zero), options, one);
}

BOOST_AUTO_TEST_CASE(p15_accumulated_microbatches_equal_one_big_batch) {
  TrainingGraph graph = make_gpt_training(small_shape());
  TrainOptions options;
  options.steps = 4;
  TrainResult one = train(graph, one_rank_plan(graph), options);
  for (int64_t microbatch : {4, 2, 1}) check_alike(graph, small_plan(graph, {1, 1, 2}, microbatch), options, one);
}

BOOST_AUTO_TEST_CASE(p16_a_microbatch_without_a_valid_label_weighs_nothing) {
  TrainingGraph graph = make_gpt_training(small_shape());
  for (auto [first, last] :
       {std::pair{0, 2}, {2, 4}, {4, 8}, {1, 8}}) {  // whole microbatches, a whole replica, all but one sample
    TrainOptions options = ignoring(graph, first, last);
    TrainResult one = train(graph, one_rank_plan(graph), options);
    BOOST_TEST(std::isfinite(one.losses.back()));
    for (Degrees degrees : {Degrees{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {2, 2, 1}})
      check_alike(graph, small_plan(graph, degrees, 2), options, one);
  }
}

BOOST_AUTO_TEST_CASE(p16_a_batch_without_a_valid_label_is_skipped_and_gives_no_nan) {
  TrainingGraph graph = make_gpt_training(small_shape());
  TrainOptions options = ignoring(graph, 0, 8);
  for (Degrees degrees : {Degrees{1, 1, 1}, {2, 1, 2}, {2, 2, 1}}) {
    TrainResult run = train(graph, small_plan(graph, degrees, 2), options);
    for (bool applied : run.applied) BOOST_TEST(!applied);
    BOOST_TEST(run.losses.back() == 0.0);
    BOOST_TEST(run.norms.back() == 0.0);
    BOOST_TEST(run.replicas_differ == "");
    for (const auto& [name, weights] : run.initial)
      BOOST_TEST(largest_difference(run.tensors.at(name), weights) == 0, name);
  }
}

BOOST_AUTO_TEST_CASE(p17_a_nan_on_one_rank_makes_all_ranks_skip_the_same_step) {
  TrainingGraph graph = make_gpt_training(small_shape());
  for (Degrees degrees : {Degrees{4, 1, 1}, {1, 1, 4}, {1, 4, 1}, {2, 2, 2}}) {
    Plan plan = small_plan(graph, degrees, 2);
    for (int poisoned = 0; poisoned < degrees.num_ranks(); ++poisoned) {
      // Step 2 of four: one element of a bias on one rank is not a number, as after a flipped bit; then it is itself
      // again.
      double kept = 0;
      TrainOptions options;
      options.steps = 4;
      options.before_step = [&](Executor& executor, int64_t step) {
        if (executor.program().rank != RankId(poisoned)) return;
        const auto& tensors = executor.program().tensors;
        auto bias = std::find_if(tensors.begin(), tensors.end(),
                                 [](const PersistentTensor& t) { return t.name.ends_with(".mlp.up.bias"); });
        auto* weights = static_cast<double*>(executor.data(*bias));
        if (step == 2) kept = weights[0], weights[0] = std::numeric_limits<double>::quiet_NaN();
        if (step == 3) weights[0] = kept;
      };
      TrainResult run = train(graph, plan, options);
      BOOST_TEST((run.applied == std::vector<bool>{true, false, true, true}), plan.to_yaml() << "rank " << poisoned);
      BOOST_TEST(run.replicas_differ == "");
      // As if step 2 had not been: the state after step 1 goes on at step 3.
      TrainOptions head, tail;
      head.steps = 1;
      TrainResult first = train(graph, plan, head);
      tail.steps = 2, tail.first_step = 3, tail.start = &first.tensors;
      BOOST_TEST(largest_difference(run.tensors, train(graph, plan, tail).tensors) == 0, plan.to_yaml()
                                                                                             << "rank " << poisoned);
    }
  }
}

BOOST_AUTO_TEST_CASE(p17_the_rank_the_microbatch_and_the_parameter_of_a_nan_are_found) {
  TrainingGraph graph = make_gpt_training(small_shape());
  for (Degrees degrees : {Degrees{4, 1, 1}, {1, 1, 4}, {1, 4, 1}, {2, 2, 2}}) {
    Plan plan = small_plan(graph, degrees, 2);
    for (int poisoned = 0; poisoned < degrees.num_ranks(); ++poisoned) {
      std::vector<NotFinite> found(static_cast<size_t>(degrees.num_ranks()));
      std::string name;
      TrainOptions options;
      options.steps = 1;
      options.before_step = [&](Executor& executor, int64_t step) {
        const int rank = executor.program().rank.value;
        const auto& tensors = executor.program().tensors;
        auto bias = std::find_if(tensors.begin(), tensors.end(),
                                 [](const PersistentTensor& t) { return t.name.ends_with(".mlp.up.bias"); });
        if (rank == poisoned) {
          static_cast<double*>(executor.data(*bias))[0] = std::numeric_limits<double>::quiet_NaN();
          name = bias->name;
        }
        SyntheticInput input(graph, step);
        StepScalars scalars;
        scalars.step = step;
        auto result = executor.find_not_finite(input, scalars);
        if (result.is_ok()) found[static_cast<size_t>(rank)] = *result;
      };
      train(graph, plan, options);
      for (int rank = 0; rank < degrees.num_ranks(); ++rank) {
        const NotFinite& it = found[static_cast<size_t>(rank)];
        if (rank != poisoned) {
          BOOST_TEST((it.kind == NotFinite::Kind::kNone), "rank " << rank << ": " << it.to_string());
          continue;
        }
        BOOST_TEST((it.kind == NotFinite::Kind::kParameter), plan.to_yaml() << it.to_string());
        BOOST_TEST(it.operation == name);
        BOOST_TEST(it.microbatch == 0);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(p17_a_search_in_sound_steps_finds_nothing_and_leaves_no_trace) {
  TrainingGraph graph = make_gpt_training(small_shape());
  for (Degrees degrees : {Degrees{4, 1, 1}, {1, 1, 4}, {1, 4, 1}, {2, 2, 2}}) {
    Plan plan = small_plan(graph, degrees, 2);
    std::vector<NotFinite> found(static_cast<size_t>(degrees.num_ranks()));
    TrainOptions plain, searched;
    plain.steps = searched.steps = 2;
    searched.before_step = [&](Executor& executor, int64_t step) {
      SyntheticInput input(graph, step);
      StepScalars scalars;
      scalars.step = step;
      auto result = executor.find_not_finite(input, scalars);
      if (result.is_ok() && result->kind != NotFinite::Kind::kNone) found[executor.program().rank.index()] = *result;
    };
    const TrainResult run = train(graph, plan, searched);
    BOOST_TEST(largest_difference(run.tensors, train(graph, plan, plain).tensors) == 0, plan.to_yaml());
    for (const NotFinite& it : found) BOOST_TEST((it.kind == NotFinite::Kind::kNone), it.to_string());
  }
}

namespace {

/// A model with parameters of one element, of fewer elements than replicas, and of one row.
TrainingGraph tiny_parameters() {
  GraphBuilder b("tiny");
  auto normal = [](double deviation) { return Initializer{Initializer::Kind::kNormal, 0.1, deviation}; };
  b.layer("first");
  ValueId tokens = b.input("tokens", {8, 3}, DType::kI32);
  ValueId x = b.embedding("embed", b.parameter("table", {7, 4}, normal(0.5)), tokens);
  b.layer("middle");
  ValueId narrow = b.matmul("narrow", "[b,s,d] [d,e] -> [b,s,e]", x, b.parameter("narrow.weight", {4, 1}, normal(0.5)));
  narrow = b.add_bias("shift", narrow, b.parameter("shift.weight", {1}, normal(0.5), false));
  x = b.add("wide", x,
            b.matmul("widen", "[b,s,e] [e,d] -> [b,s,d]", narrow, b.parameter("widen.weight", {1, 4}, normal(0.5))));
  x = b.add_bias("positions", x, b.parameter("positions.weight", {3, 4}, normal(0.5)));
  b.layer("last");
  ValueId labels = b.input("labels", {8, 3}, DType::kI32);
  ValueId logits = b.matmul("logits", "[b,s,d] [v,d] -> [b,s,v]", x, b.parameter("head", {7, 4}, normal(0.5)));
  auto [loss, count] = b.cross_entropy("loss", logits, labels);
  auto model = b.finish({tokens, labels}, loss, count, logits);
  BOOST_REQUIRE_MESSAGE(model.is_ok(), model.status().to_string());
  auto training = make_training_graph(std::move(model).value(), DType::kF64, {}, 3);
  BOOST_REQUIRE_MESSAGE(training.is_ok(), training.status().to_string());
  return std::move(training).value();
}

}  // namespace

BOOST_AUTO_TEST_CASE(p24_parameters_with_fewer_elements_than_replicas_train_under_zero) {
  TrainingGraph graph = tiny_parameters();
  TrainOptions options;
  TrainResult one = train(graph, one_rank_plan(graph), options);
  for (Degrees degrees : {Degrees{4, 1, 1}, {8, 1, 1}, {2, 1, 3}, {4, 1, 2}}) {
    DegreePlanOptions plan;
    plan.degrees = degrees;
    plan.microbatch = 1;
    auto made = plan_from_degrees(graph, test_cluster(degrees.num_ranks()), plan);
    BOOST_REQUIRE_MESSAGE(made.is_ok(), made.status().to_string());
    check_alike(graph, *made, options, one);
  }
}

BOOST_AUTO_TEST_CASE(p24_frozen_parameters_keep_their_bits_and_the_rest_trains_alike) {
  using Patterns = std::vector<std::string>;
  for (const Patterns& frozen : {Patterns{"block.0.*", "block.1.*"}, Patterns{"embedding.*"}, Patterns{"*.bias"},
                                 Patterns{"embedding.*", "block.*", "head.ln.bias"}}) {
    for (bool tied : {true, false}) {
      GptShape shape = small_shape();
      shape.frozen = frozen;
      shape.tied = tied;
      if (!tied && frozen.back() == "head.ln.bias") shape.frozen.push_back("head.weight");  // all but head.ln.weight
      TrainingGraph graph = make_gpt_training(shape);
      TrainOptions options;
      options.steps = 3;
      TrainResult one = train(graph, one_rank_plan(graph), options);
      for (const Parameter& p : graph.graph.parameters()) {
        const std::string& name = graph.graph.value(p.value).name;
        BOOST_TEST((largest_difference(one.tensors.at(name), one.initial.at(name)) == 0) == !p.trainable, name);
      }
      for (Degrees degrees : {Degrees{4, 1, 1}, {1, 2, 2}, {2, 1, 4}, {2, 2, 2}})
        check_alike(graph, small_plan(graph, degrees, 2), options, one);
    }
  }
}

BOOST_AUTO_TEST_CASE(p27_initial_weights_are_the_same_bits_and_the_first_loss_the_same_under_every_layout) {
  TrainingGraph graph = make_gpt_training(small_shape());
  TrainOptions options;
  options.steps = 50;
  TrainResult one = train(graph, one_rank_plan(graph), options);
  for (Degrees degrees : {Degrees{2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {2, 2, 2}}) {
    TrainResult run = train(graph, small_plan(graph, degrees, 2), options);
    BOOST_TEST(largest_difference(run.initial, one.initial) == 0);
    BOOST_TEST(std::abs(run.losses[0] - one.losses[0]) < 1e-12);
    BOOST_TEST(largest_difference(run.losses, one.losses) < 1e-9);  // after 50 steps
    BOOST_TEST(largest_difference(run.tensors, one.tensors) < 1e-8);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
