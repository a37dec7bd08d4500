#include "framework/graph/graph.hpp"

#include "framework/graph/builder.hpp"
#include "framework/graph/op_definition.hpp"
#include "framework/graph/pass.hpp"

using namespace altiplano;

namespace {

std::string error_of(const std::string& kind, const std::vector<ValueType>& inputs, Attributes attributes = {}) {
  Graph graph;
  LayerId layer = graph.add_layer("all");
  std::vector<ValueId> ids;
  for (const ValueType& type : inputs)
    ids.push_back(graph.add_value(fmt::format("x{}", ids.size()), type.shape, type.dtype, Role::kInput, layer));
  auto outputs = graph.add_op(kind, "y", ids, std::move(attributes), layer, Phase::kForward);
  return outputs.is_ok() ? "" : outputs.status().message();
}

void check_refusal(const std::string& got, const std::string& expected) {
  BOOST_CHECK_MESSAGE(got.find(expected) != std::string::npos, "expected '" << expected << "' in '" << got << "'");
}

Result<ModelGraph> small_model() {
  GraphBuilder b("small");
  b.layer("all");
  ValueId ids = b.input("ids", {2, 3}, DType::kI32);
  ValueId table = b.parameter("table", {5, 4}, {Initializer::Kind::kNormal, 0, 0.02});
  ValueId x = b.embedding("x", table, ids);
  ValueId logits = b.matmul("logits", "[b,s,d] [v,d] -> [b,s,v]", x, table);
  auto [loss, count] = b.cross_entropy("loss", logits, ids);
  return b.finish({ids}, loss, count, logits);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_training_graph_prints_one_stable_line_per_value_and_op) {
  auto training = make_training_graph(small_model().value(), DType::kF32, {.name = "sgd"}, 1);
  BOOST_REQUIRE_MESSAGE(training.is_ok(), training.status().to_string());
  BOOST_CHECK_EQUAL(training->graph.to_string(), R"(%ids = input : i32[2,3]   # all
%table = parameter : f32[5,4]   # all
%table.grad = gradient : f32[5,4]   # all
%table.m = optimizer_state : f32[5,4]   # all
%x = embedding(%table, %ids) : f32[2,3,4]   # all forward
%logits = matmul(%x, %table) {equation=[b,s,d] [v,d] -> [b,s,v]} : f32[2,3,5]   # all forward
%loss.max = reduce_max(%logits) {dims=[2]} : f32[2,3]   # all forward
%loss.exp_sum = exp_sum(%logits, %loss.max) : f32[2,3]   # all forward
%loss.pick = pick(%logits, %ids) : f32[2,3]   # all forward
%loss.nll = nll(%loss.max, %loss.exp_sum, %loss.pick, %ids) {logits=logits} : f32[2,3]   # all forward
%loss.sum = reduce_sum(%loss.nll) {dims=[0,1], dtype=f64} : f64[]   # all forward
%loss.count = count_valid(%ids) : f64[]   # all forward
%loss.sum.grad.seed = fill() {dtype=f64, shape=[], value=1} : f64[]   # all backward
%loss.sum.grad.x = broadcast_to(%loss.sum.grad.seed) {dims=[0,1], dtype=f32, sizes=[2,3]} : f32[2,3]   # all backward
%loss.nll.grad.logits = cross_entropy_grad(%logits, %loss.max, %loss.exp_sum, %ids, %loss.sum.grad.x) : f32[2,3,5]   # all backward
%logits.grad.a = matmul(%loss.nll.grad.logits, %table) {equation=[b,s,v] [v,d] -> [b,s,d]} : f32[2,3,4]   # all backward
%logits.grad.b = matmul(%loss.nll.grad.logits, %x) {equation=[b,s,v] [b,s,d] -> [v,d]} : f32[5,4]   # all backward
%x.grad.table = embedding_grad(%logits.grad.a, %ids) {rows=5} : f32[5,4]   # all backward
%table.grad_norm = sum_squares(%table.grad) : f64[]   # all update
%table.update.0, %table.update.1 = sgd(%table, %table.grad, %table.m) {momentum=0, weight_decay=0.1} : f32[5,4], f32[5,4]   # all update
)");
}

BOOST_AUTO_TEST_CASE(the_fingerprint_sees_shapes_initial_values_and_frozen_parameters) {
  Graph graph = small_model().value().graph;
  uint64_t before = graph.fingerprint();
  BOOST_CHECK_EQUAL(before, small_model().value().graph.fingerprint());
  graph.parameters()[0].init.b = 0.03;
  BOOST_CHECK_NE(graph.fingerprint(), before);
  graph = small_model().value().graph;
  graph.parameters()[0].trainable = false;
  BOOST_CHECK_NE(graph.fingerprint(), before);
}

BOOST_AUTO_TEST_CASE(verify_finds_a_value_whose_type_is_not_the_inferred_one) {
  Graph graph = small_model().value().graph;
  BOOST_CHECK(graph.verify().is_ok());
  graph.value(graph.find_value("logits")).shape = {2, 3, 6};
  check_refusal(graph.verify().message(), "'logits' is f32[2,3,6], the definition of matmul infers f32[2,3,5]");
}

BOOST_AUTO_TEST_CASE(a_pass_that_breaks_the_graph_is_named) {
  Graph graph = small_model().value().graph;
  take_pass_records();
  Status status = run_pass("breaker", graph, [](Graph& g) {
    g.value(g.find_value("x")).dtype = DType::kF64;
    return Status::ok();
  });
  BOOST_REQUIRE(!status.is_ok());
  check_refusal(status.to_string(), "while running graph pass breaker");
  BOOST_CHECK_EQUAL(take_pass_records().size(), 1u);
}

BOOST_AUTO_TEST_CASE(no_pass_runs_after_a_stop_was_asked_for) {
  Graph graph;
  bool ran = false;
  set_pass_stop_check([] { return true; });
  Status status = run_pass("late", graph, [&](Graph&) {
    ran = true;
    return Status::ok();
  });
  set_pass_stop_check({});
  BOOST_CHECK(status.code() == StatusCode::kStoppedEarly);
  BOOST_CHECK(!ran);
}

BOOST_AUTO_TEST_CASE(wrong_shapes_are_refused_with_op_kind_and_numbers) {
  constexpr DType f = DType::kF32, i = DType::kI32;
  check_refusal(error_of("matmul", {{{2, 3}, f}, {{4, 5}, f}}, {{"equation", "[m,k] [k,n] -> [m,n]"}}),
                "op 'y' (matmul) on f32[2,3], f32[4,5]: equation [m,k] [k,n] -> [m,n]: k is 3 in the first operand and "
                "4 in the second");
  check_refusal(error_of("matmul", {{{2, 3}, f}, {{3, 5}, f}}, {{"equation", "[m,k] [k,n] -> [m,q]"}}),
                "result letter q is in no operand");
  check_refusal(error_of("matmul", {{{2, 2}, f}, {{2}, f}}, {{"equation", "[m,m] [m] -> [m]"}}),
                "letter m stands twice in one operand");
  check_refusal(error_of("matmul", {{{2, 3}, f}, {{2}, f}}, {{"equation", "[m,k] [m] -> [m]"}}),
                "sum it with reduce_sum");
  check_refusal(error_of("add", {{{2, 3}, f}, {{3, 2}, f}}), "shapes must be equal, got [2,3] and [3,2]");
  check_refusal(error_of("add", {{{2}, f}, {{2}, DType::kF64}}), "types must be equal, got f32 and f64");
  check_refusal(error_of("add", {{{2}, f}}), "takes 2 inputs, got 1");
  check_refusal(error_of("add_bias", {{{2, 3}, f}, {{2}, f}}), "the bias [2] must match the last dims of [2,3]");
  check_refusal(error_of("layer_norm", {{{2, 3}, f}, {{2}, f}, {{3}, f}}), "the weight must be [3], got [2]");
  check_refusal(error_of("attention", {{{1, 4, 2, 3}, f}, {{1, 4, 1, 3}, f}, {{1, 4, 1, 3}, f}}),
                "k [b,t,h,k] must be [1,4,2,3], got [1,4,1,3]");
  check_refusal(error_of("dropout", {{{2}, f}}, {{"p", 1.5}, {"stream", "s"}}),
                "p is 1.5; a drop probability is in [0, 1)");
  check_refusal(error_of("dropout", {{{2}, f}}, {{"p", 0.5}}), "needs the attribute stream");
  check_refusal(error_of("embedding", {{{5, 4}, f}, {{2, 3}, f}}), "the ids must be i32, got f32");
  check_refusal(error_of("pick", {{{2, 3, 5}, f}, {{3, 2}, i}}), "the labels must be [2,3], got [3,2]");
  check_refusal(error_of("reshape", {{{2, 3}, f}}, {{"shape", Shape{5}}}), "[2,3] has 6 elements, [5] has 5");
  check_refusal(error_of("reshape", {{{8, 3}, f}}, {{"shape", Shape{6, 4}}}), "have no common factors");
  check_refusal(error_of("slice", {{{4}, f}}, {{"dim", int64_t{0}}, {"start", int64_t{2}}, {"length", int64_t{3}}}),
                "[2, 5) is no part of dim 0 of extent 4");
  check_refusal(error_of("reduce_sum", {{{4, 2}, f}}, {{"dims", Shape{1, 0}}}),
                "must be increasing dims of a tensor with 2 dims");
  check_refusal(error_of("transpose", {{{4, 2}, f}}, {{"permutation", Shape{0, 0}}}), "must hold each dim");
  check_refusal(error_of("concat", {{{4, 2}, f}, {{3, 3}, f}}, {{"dim", int64_t{1}}}), "must be [4,3], got [3,3]");
  check_refusal(error_of("gelu", {{{4}, f}}, {{"approximate", "fast"}}), "there are tanh and erf");
  check_refusal(error_of("adamw", {{{4}, DType::kBF16}, {{4}, DType::kBF16}, {{4}, DType::kBF16}, {{4}, DType::kBF16}}),
                "keep a master weight");
  check_refusal(error_of("matmull", {{{4}, f}}), "there is no op kind 'matmull'; did you mean 'matmul'?");
}

BOOST_AUTO_TEST_CASE(reshape_rules_name_the_factors_that_dims_are_made_of) {
  auto rule = [](const Shape& from, const Shape& to) {
    ValueType in{from, DType::kF32}, out{to, DType::kF32};
    return OpTable::instance().get("reshape").rule({&in, 1}, {&out, 1}, {});
  };
  BOOST_CHECK_EQUAL(rule({2, 5, 12}, {2, 5, 4, 3}), "[f0,f1,(f2 f3)] -> [f0,f1,f2,f3]  linear");
  BOOST_CHECK_EQUAL(rule({2, 5, 1, 4, 3}, {2, 5, 4, 3}), "[f0,f1,u0,f2,f3] -> [f0,f1,f2,f3]  whole: u0  linear");
  BOOST_CHECK_EQUAL(rule({6, 4}, {12, 2}), "[f0,(f1 f2)] -> [(f0 f1),f2]  linear");
  BOOST_CHECK_EQUAL(rule({1}, {}), "[u0] -> []  whole: u0  linear");
}

BOOST_AUTO_TEST_CASE(a_builder_keeps_its_first_error_and_tells_it_once) {
  GraphBuilder b("wrong");
  b.layer("all");
  ValueId x = b.input("x", {2, 3}, DType::kF32), w = b.parameter("w", {4, 5}, {});
  ValueId y = b.matmul("y", "[m,k] [k,n] -> [m,n]", x, w);
  b.gelu("z", y);
  auto model = b.finish({x}, y, y, y);
  BOOST_REQUIRE(!model.is_ok());
  check_refusal(model.status().to_string(), "op 'y' (matmul) on f32[2,3], f32[4,5]");
  check_refusal(model.status().to_string(), "while building model wrong");
}

BOOST_AUTO_TEST_CASE(a_name_given_twice_is_refused) {
  GraphBuilder b("twice");
  b.layer("all");
  b.parameter("w", {2}, {});
  b.parameter("w", {3}, {});
  check_refusal(b.status().message(), "the name 'w' is taken");
}

BOOST_AUTO_TEST_CASE(a_parameter_the_loss_does_not_reach_is_refused_unless_frozen) {
  for (bool frozen : {false, true}) {
    GraphBuilder b("idle");
    b.layer("all");
    ValueId ids = b.input("ids", {1, 2}, DType::kI32), logits = b.parameter("logits", {1, 2, 3}, {});
    b.parameter("idle", {2}, {});
    if (frozen) BOOST_CHECK_EQUAL(b.freeze("id*"), 1);
    auto [loss, count] = b.cross_entropy("loss", logits, ids);
    auto training = differentiate(b.finish({ids}, loss, count, logits).value());
    BOOST_CHECK_EQUAL(training.is_ok(), frozen);
    if (!frozen) check_refusal(training.status().message(), "parameter 'idle' does not influence the loss");
  }
}

BOOST_AUTO_TEST_CASE(a_loss_through_an_op_without_gradient_is_refused) {
  GraphBuilder b("max");
  b.layer("all");
  ValueId w = b.parameter("w", {3}, {});
  ValueId loss = b.op1("sum_squares", "loss", {w});
  auto training = differentiate(b.finish({}, loss, loss, w).value());
  BOOST_REQUIRE(!training.is_ok());
  check_refusal(training.status().message(), "op 'loss': kind 'sum_squares' is not differentiable");
}

BOOST_AUTO_TEST_CASE(gradients_of_a_value_with_two_users_are_added_by_name) {
  GraphBuilder b("two");
  b.layer("all");
  ValueId w = b.parameter("w", {3}, {});
  ValueId x = b.gelu("x", w), y = b.gelu("y", x), z = b.add("z", x, y);
  ValueId loss = b.op1("reduce_sum", "loss", {z}, {{"dims", std::vector<int64_t>{0}}, {"dtype", "f64"}});
  auto training = differentiate(b.finish({}, loss, loss, z).value());
  BOOST_REQUIRE_MESSAGE(training.is_ok(), training.status().to_string());
  ValueId sum = training->graph.find_value("y.grad.sum0");
  BOOST_REQUIRE(sum.is_valid());
  BOOST_CHECK_EQUAL(training->graph.op(training->graph.value(sum).producer).kind, "add");
}
