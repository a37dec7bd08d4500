// A kernel table changes results by rounding only, and the same table gives the same bits, however it came about.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <set>

#include "framework/runtime/kernel_choice.hpp"
#include "tests/support/gpt.hpp"
#include "tests/support/plans.hpp"
#include "tests/support/train.hpp"

namespace altiplano::test {
namespace {

/// The products of a plan on device/cpu, and the forms of each.
std::vector<FormedKernel> kernels_of(const TrainingGraph& graph, const Plan& plan) {
  auto backend = PluginRegistry::instance().device("cpu");
  BOOST_REQUIRE(backend.is_ok());
  auto device = (*backend)->open({.threads = 1});
  BOOST_REQUIRE(device.is_ok());
  auto kernels = formed_kernels(**device, lower_plan(graph, plan), graph.seed);
  BOOST_REQUIRE(kernels.is_ok());
  return std::move(kernels).value();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kernel_forms)

BOOST_AUTO_TEST_CASE(training_in_any_form_agrees_within_rounding_and_repeats_to_the_bit) {
  GptShape shape;
  shape.hidden = 24, shape.heads = 4, shape.vocabulary = 57, shape.batch = 8, shape.sequence = 8;
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    const TrainingGraph graph = make_gpt_training(shape, dtype, {}, 7, true);
    DegreePlanOptions degrees;
    degrees.degrees = {2, 2, 1};
    degrees.microbatch = 2;
    Plan plan = make_plan(graph, degrees);
    TrainOptions options;
    options.device = "cpu";
    options.steps = 4;
    options.learning_rate = 3e-4;
    const TrainResult plain = train(graph, plan, options);
    const auto kernels = kernels_of(graph, plan);
    std::set<std::string> forms;
    for (const FormedKernel& kernel : kernels) forms.insert(kernel.forms.names.begin(), kernel.forms.names.end());
    BOOST_TEST(forms.size() > 2u);
    for (const std::string& form : forms) {
      plan.kernels = {};
      for (const FormedKernel& kernel : kernels)
        if (std::ranges::find(kernel.forms.names, form) != kernel.forms.names.end())
          plan.kernels.forms[kernel.forms.shape] = form;
      const TrainResult once = train(graph, plan, options), again = train(graph, plan, options);
      BOOST_TEST((once.losses == again.losses), form);
      BOOST_TEST((once.tensors == again.tensors), form);
      BOOST_TEST(once.replicas_differ == "", form);
      const double allowed = dtype == DType::kF32 ? 1e-5 : 1.0 / 256;
      for (size_t i = 0; i < plain.losses.size(); ++i)
        BOOST_TEST(std::abs(once.losses[i] - plain.losses[i]) <= allowed * plain.losses[i], form << " step " << i + 1);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
