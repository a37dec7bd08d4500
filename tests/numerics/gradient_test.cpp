// Every differentiable op against central differences in f64 on device/reference, then a whole GPT.
#include <cmath>
#include <set>

#include "framework/base/random.hpp"
#include "framework/graph/builder.hpp"
#include "framework/graph/op_definition.hpp"
#include "tests/support/gpt.hpp"
#include "tests/support/interpreter.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

constexpr double kDelta = 1e-5;
constexpr double kTolerance = 1e-7;  // relative to max(1, |gradient|): error of central differences at kDelta in f64

std::set<std::string>& covered_kinds() {
  static std::set<std::string> kinds;
  return kinds;
}

Device& reference() {
  static std::unique_ptr<Device> device = open_device();
  return *device;
}

/// A graph under test: parameters are made by `normal`, integer inputs by `integers`.
struct Case {
  GraphBuilder builder{"case"};
  std::map<std::string, std::vector<double>> data;

  ValueId normal(const std::string& name, Shape shape) {
    return builder.parameter(name, std::move(shape), {Initializer::Kind::kNormal, 0, 1});
  }
  ValueId integers(const std::string& name, Shape shape, std::vector<double> values) {
    data[name] = std::move(values);
    return builder.input(name, std::move(shape), DType::kI32);
  }
};

/// Reduces any output to a loss by fixed random weights; a scalar is the loss itself.
ValueId loss_of(Case& test, ValueId out) {
  const Value value = test.builder.graph().value(out);
  if (value.shape.empty())
    return value.dtype == DType::kF64 ? out : test.builder.op1("cast", "loss", {out}, {{"dtype", "f64"}});
  std::vector<double> weights(static_cast<size_t>(num_elements(value.shape)));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = random_normal(99, 0, i);
  test.data["weights"] = weights;
  ValueId weighted =
      test.builder.op1("multiply", "weighted", {out, test.builder.input("weights", value.shape, value.dtype)});
  std::vector<int64_t> dims(value.shape.size());
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<int64_t>(i);
  return test.builder.op1("reduce_sum", "loss", {weighted}, {{"dims", dims}, {"dtype", "f64"}});
}

double loss_at(const TrainingGraph& training, const Values& values) {
  return run_graph(reference(), training.graph, values, {{}, training.seed, {Phase::kForward}})
      .at(training.loss_sum)[0];
}

/// Largest error of the graph's gradients against differences; every `stride`-th element of each parameter is tried.
double gradient_error(const TrainingGraph& training, Values values, size_t stride, double fault = 1) {
  Values all = run_graph(reference(), training.graph, values, {{}, training.seed});
  double worst = 0;
  for (const ParameterTraining& entry : training.parameters) {
    std::vector<double>& elements = values.at(entry.parameter);
    for (size_t i = 0; i < elements.size(); i += stride) {
      double gradient = 0, old = elements[i];
      for (ValueId contribution : entry.contributions) gradient += fault * all.at(contribution)[i];
      elements[i] = old + kDelta;
      double above = loss_at(training, values);
      elements[i] = old - kDelta;
      double below = loss_at(training, values);
      elements[i] = old;
      worst = std::max(worst, std::abs((above - below) / (2 * kDelta) - gradient) / std::max(1.0, std::abs(gradient)));
    }
  }
  return worst;
}

TrainingGraph differentiate_case(Case& test, ValueId out, Values& values) {
  ValueId loss = loss_of(test, out);
  std::vector<ValueId> inputs;
  for (const auto& [name, data] : test.data) inputs.push_back(test.builder.graph().find_value(name));
  auto model = test.builder.finish(inputs, loss, loss, out);
  BOOST_REQUIRE_MESSAGE(model.is_ok(), model.status().to_string());
  BOOST_REQUIRE(set_precision(*model, DType::kF64).is_ok());
  for (const Op& op : model->graph.ops()) covered_kinds().insert(op.kind);
  auto training = differentiate(std::move(model).value());
  BOOST_REQUIRE_MESSAGE(training.is_ok(), training.status().to_string());
  Status status = training->graph.verify();
  BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
  values = initial_values(*training);
  for (const auto& [name, data] : test.data) values[training->graph.find_value(name)] = data;
  return std::move(training).value();
}

template <typename Build>
void check_gradients(const std::string& what, Build build) {
  Case test;
  test.builder.layer("all");
  Values values;
  ValueId out = build(test);
  BOOST_REQUIRE_MESSAGE(test.builder.status().is_ok(), test.builder.status().to_string());
  TrainingGraph training = differentiate_case(test, out, values);
  double error = gradient_error(training, values, 1);
  BOOST_CHECK_MESSAGE(error < kTolerance, what << ": gradient error " << error);
}

}  // namespace

BOOST_AUTO_TEST_CASE(gradients_of_matmul_in_every_form_the_models_use) {
  struct Form {
    const char* equation;
    Shape a, b;
  };
  for (const Form& form :
       {Form{"[b,s,d] [d,f] -> [b,s,f]", {2, 3, 4}, {4, 5}}, Form{"[b,s,d] [v,d] -> [b,s,v]", {2, 3, 4}, {5, 4}},
        Form{"[b,s,d] [d,p,h,k] -> [b,s,p,h,k]", {2, 2, 3}, {3, 3, 2, 2}},
        Form{"[b,s,h,k] [h,k,d] -> [b,s,d]", {2, 2, 3, 2}, {3, 2, 4}},
        Form{"[b,h,s,k] [b,h,t,k] -> [b,h,s,t]", {2, 2, 3, 2}, {2, 2, 3, 2}}, Form{"[i] [j] -> [i,j]", {3}, {2}},
        Form{"[i,j] [i,j] -> []", {3, 2}, {3, 2}}})
    check_gradients(form.equation, [&](Case& c) {
      return c.builder.op1("matmul", "y", {c.normal("a", form.a), c.normal("b", form.b)},
                           {{"equation", form.equation}});
    });
}

BOOST_AUTO_TEST_CASE(gradients_of_elementwise_ops) {
  check_gradients("add", [](Case& c) { return c.builder.add("y", c.normal("a", {3, 2}), c.normal("b", {3, 2})); });
  check_gradients("add to itself", [](Case& c) {
    ValueId x = c.normal("x", {3, 2});
    return c.builder.add("y", x, x);
  });
  check_gradients("multiply", [](Case& c) {
    return c.builder.op1("multiply", "y", {c.normal("a", {3, 2}), c.normal("b", {3, 2})});
  });
  check_gradients("add_bias", [](Case& c) {
    return c.builder.add_bias("y", c.normal("x", {2, 3, 2}), c.normal("b", {2}));
  });
  check_gradients("add_bias of two dims", [](Case& c) {
    return c.builder.add_bias("y", c.normal("x", {2, 3, 2}), c.normal("b", {3, 2}));
  });
  check_gradients("add_bias of all dims", [](Case& c) {
    return c.builder.add_bias("y", c.normal("x", {3, 2}), c.normal("b", {3, 2}));
  });
  check_gradients("scale", [](Case& c) {
    return c.builder.op1("scale", "y", {c.normal("x", {5})}, {{"factor", -1.7}});
  });
  check_gradients("cast", [](Case& c) { return c.builder.op1("cast", "y", {c.normal("x", {5})}, {{"dtype", "f64"}}); });
  check_gradients("gelu tanh", [](Case& c) { return c.builder.gelu("y", c.normal("x", {9}), "tanh"); });
  check_gradients("gelu erf", [](Case& c) { return c.builder.gelu("y", c.normal("x", {9}), "erf"); });
  check_gradients("dropout", [](Case& c) { return c.builder.dropout("y", c.normal("x", {4, 5}), 0.3); });
}

BOOST_AUTO_TEST_CASE(gradients_of_normalizations) {
  check_gradients("layer_norm", [](Case& c) {
    return c.builder.layer_norm("y", c.normal("x", {2, 3, 5}), c.normal("w", {5}), c.normal("b", {5}));
  });
  check_gradients("softmax", [](Case& c) { return c.builder.op1("softmax", "y", {c.normal("x", {3, 4})}); });
}

BOOST_AUTO_TEST_CASE(gradients_of_convolution_and_pooling) {
  const Shape image{2, 5, 4, 3};
  for (int64_t stride : {1, 2})
    for (int64_t padding : {0, 1}) {
      const Attributes window{{"stride", stride}, {"padding", padding}, {"window", int64_t{3}}};
      check_gradients(fmt::format("conv2d stride {} padding {}", stride, padding), [&](Case& c) {
        return c.builder.op1("conv2d", "y", {c.normal("x", image), c.normal("w", {3, 2, 3, 2})}, window);
      });
      check_gradients(fmt::format("max_pool stride {} padding {}", stride, padding),
                      [&](Case& c) { return c.builder.op1("max_pool", "y", {c.normal("x", image)}, window); });
    }
  check_gradients("mean_pool", [&](Case& c) { return c.builder.op1("mean_pool", "y", {c.normal("x", image)}); });
  check_gradients("relu", [&](Case& c) { return c.builder.op1("relu", "y", {c.normal("x", image)}); });
}

BOOST_AUTO_TEST_CASE(gradients_of_batch_norm_go_through_its_statistics) {
  check_gradients("batch_norm", [](Case& c) {
    const Attributes samples{{"samples", int64_t{3}}, {"epsilon", 1e-5}};
    const ValueId x = c.normal("x", {3, 2, 2, 4});
    const auto moments = c.builder.op("batch_moments", "m", {x}, samples);
    return c.builder.op1("batch_norm", "y", {x, moments[0], moments[1], c.normal("w", {4}), c.normal("b", {4})},
                         samples);
  });
}

BOOST_AUTO_TEST_CASE(gradients_of_experts_go_through_weights_and_tokens_not_through_routes) {
  for (int64_t capacity : {1, 3})
    check_gradients(fmt::format("experts of capacity {}", capacity), [&](Case& c) {
      GraphBuilder& b = c.builder;
      const ValueId x = c.normal("x", {2, 6, 3});
      const ValueId scores = b.matmul("scores", "[b,s,d] [d,e] -> [b,s,e]", x, c.normal("router", {3, 4}));
      const auto routes = b.op("top2_gating", "r", {b.op1("softmax", "gates", {scores})}, {{"capacity", capacity}});
      const ValueId taken = b.matmul("taken", "[b,s,e,c] [b,s,d] -> [e,b,c,d]", routes[1], x);
      const ValueId made = b.matmul("made", "[e,b,c,d] [e,d,f] -> [e,b,c,f]", taken, c.normal("w", {4, 3, 2}));
      return b.matmul("y", "[b,s,e,c] [e,b,c,f] -> [b,s,f]", routes[0], made);
    });
}

BOOST_AUTO_TEST_CASE(gradients_of_attention_with_and_without_mask_and_dropout) {
  for (int64_t causal : {0, 1})
    for (double dropout : {0.0, 0.4})
      check_gradients(fmt::format("attention causal {} dropout {}", causal, dropout), [&](Case& c) {
        Attributes attributes{{"scale", 0.6}, {"causal", causal}, {"dropout", dropout}, {"stream", "attention"}};
        Shape shape{2, 4, 2, 3};
        return c.builder.op1("attention", "y", {c.normal("q", shape), c.normal("k", shape), c.normal("v", shape)},
                             attributes);
      });
}

BOOST_AUTO_TEST_CASE(gradients_of_attention_that_does_not_cross_documents) {
  for (double dropout : {0.0, 0.4})
    check_gradients(fmt::format("attention within documents, dropout {}", dropout), [&](Case& c) {
      Shape shape{2, 5, 2, 3};
      ValueId start = c.integers("document_start", {2, 5}, {0, 0, 2, 2, 2, 0, 1, 1, 1, 4});
      return c.builder.attention("y", c.normal("q", shape), c.normal("k", shape), c.normal("v", shape), dropout, start);
    });
}

BOOST_AUTO_TEST_CASE(gradients_of_fused_ops) {
  for (const char* form : {"tanh", "erf"})
    check_gradients(fmt::format("bias_gelu {}", form), [&](Case& c) {
      return c.builder.op1("bias_gelu", "y", {c.normal("x", {2, 3, 4}), c.normal("b", {4})},
                           {{"approximate", std::string(form)}});
    });
  for (double p : {0.0, 0.4})
    check_gradients(fmt::format("residual_add p {}", p), [&](Case& c) {
      return c.builder.op1("residual_add", "y",
                           {c.normal("x", {2, 3, 4}), c.normal("residual", {2, 3, 4}), c.normal("b", {4})},
                           {{"p", p}, {"stream", "drop"}});
    });
  for (int64_t causal : {0, 1})
    for (double dropout : {0.0, 0.4})
      check_gradients(fmt::format("packed_attention causal {} dropout {}", causal, dropout), [&](Case& c) {
        return c.builder.op1("packed_attention", "y", {c.normal("qkv", {2, 4, 3, 2, 3})},
                             {{"scale", 0.6}, {"causal", causal}, {"dropout", dropout}, {"stream", "attention"}});
      });
  check_gradients("packed_attention within documents", [](Case& c) {
    ValueId start = c.integers("document_start", {2, 5}, {0, 0, 2, 2, 2, 0, 1, 1, 1, 4});
    return c.builder.op1("packed_attention", "y", {c.normal("qkv", {2, 5, 3, 2, 3}), start},
                         {{"scale", 0.6}, {"causal", int64_t{1}}, {"dropout", 0.0}});
  });
}

BOOST_AUTO_TEST_CASE(gradients_of_embedding_with_repeated_ids) {
  check_gradients("embedding", [](Case& c) {
    return c.builder.embedding("y", c.normal("table", {4, 3}), c.integers("ids", {2, 3}, {0, 2, 2, 3, 0, 2}));
  });
}

BOOST_AUTO_TEST_CASE(gradients_of_cross_entropy_with_ignored_labels) {
  check_gradients("cross_entropy", [](Case& c) {
    return c.builder
        .cross_entropy("loss", c.normal("logits", {2, 3, 5}), c.integers("labels", {2, 3}, {0, -1, 4, 2, 2, -100}))
        .first;
  });
}

BOOST_AUTO_TEST_CASE(gradients_of_reductions_and_layout_ops) {
  using Ints = std::vector<int64_t>;
  check_gradients("reduce_sum", [](Case& c) {
    return c.builder.op1("reduce_sum", "y", {c.normal("x", {2, 3, 4})}, {{"dims", Ints{0, 2}}});
  });
  check_gradients("broadcast_to", [](Case& c) {
    return c.builder.op1("broadcast_to", "y", {c.normal("x", {3})}, {{"dims", Ints{0, 2}}, {"sizes", Ints{2, 4}}});
  });
  check_gradients("reshape", [](Case& c) { return c.builder.reshape("y", c.normal("x", {2, 6, 1}), {2, 2, 3}); });
  check_gradients("transpose", [](Case& c) {
    return c.builder.op1("transpose", "y", {c.normal("x", {2, 3, 4})}, {{"permutation", Ints{2, 0, 1}}});
  });
  check_gradients("slice", [](Case& c) { return c.builder.slice("y", c.normal("x", {4, 3}), 0, 1, 2); });
  check_gradients("pad", [](Case& c) {
    return c.builder.op1("pad", "y", {c.normal("x", {2, 3})},
                         {{"dim", int64_t{1}}, {"before", int64_t{1}}, {"after", int64_t{2}}});
  });
  check_gradients("concat", [](Case& c) {
    return c.builder.op1("concat", "y", {c.normal("a", {2, 1}), c.normal("b", {2, 3})}, {{"dim", int64_t{1}}});
  });
}

BOOST_AUTO_TEST_CASE(every_differentiable_op_kind_was_checked_above) {
  for (const std::string& kind : OpTable::instance().kinds())
    if (OpTable::instance().get(kind).gradient)
      BOOST_CHECK_MESSAGE(covered_kinds().count(kind), kind << " has no gradient test");
}

BOOST_AUTO_TEST_CASE(gradients_of_a_whole_gpt_agree_with_differences) {
  for (auto [tied, packed] : {std::pair{true, false}, {false, false}, {true, true}}) {
    TrainingGraph training =
        make_gpt_training({.layers = 2, .hidden = 6, .heads = 2, .dropout = 0.1, .tied = tied, .packed = packed});
    Values values = initial_values(training);
    for (const Parameter& parameter : training.graph.parameters())  // off the symmetric start: biases 0, norms 1
      for (size_t i = 0; double& x : values.at(parameter.value)) x += 0.3 * random_normal(5, 0, i++);
    values.merge(random_batch(training, 11, 3, 5));
    double error = gradient_error(training, values, 7);
    BOOST_CHECK_MESSAGE(error < kTolerance, "tied " << tied << " packed " << packed << ": gradient error " << error);
    BOOST_CHECK_GT(gradient_error(training, values, 7, 1.01), 1e-3);  // a fault of one per cent is seen
  }
}

BOOST_AUTO_TEST_CASE(ten_steps_of_either_optimizer_lower_the_loss_on_one_device) {
  struct Run {
    const char* device;
    DType dtype;
  };
  for (const Run& run : {Run{"reference", DType::kF64}, Run{"reference", DType::kF32}, Run{"cpu", DType::kF32},
                         Run{"cpu", DType::kBF16}})
    for (const OptimizerOptions& optimizer : {OptimizerOptions{}, OptimizerOptions{.name = "sgd", .momentum = 0.9}}) {
      std::unique_ptr<Device> device = open_device(run.device);
      TrainingGraph training = make_gpt_training({.dropout = 0.0}, run.dtype, optimizer);
      Values state = initial_values(training), batch = random_batch(training, 11, 3, 5);
      double learning_rate = optimizer.name == "sgd" ? 0.3 : 1e-2, first = 0, last = 0;
      for (int step = 1; step <= 10; ++step) {
        StepResult result = train_step(*device, training, state, batch, step, learning_rate, 1.0);
        last = result.loss_sum / result.token_count;
        if (step == 1) first = last;
      }
      BOOST_CHECK_CLOSE(first, std::log(11.0), 2.0);
      BOOST_CHECK_LT(last, 0.9 * first);
    }
}
