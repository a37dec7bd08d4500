// Every plugin of the tree keeps everything that its kind promises: the checks of `altiplano plugins check`, here in
// this process, where sanitizers and debuggers see them.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <set>

#include "framework/conformance/check.hpp"
#include "framework/conformance/device_cases.hpp"
#include "framework/graph/op_definition.hpp"

using namespace altiplano;
using namespace altiplano::conformance;

namespace {

std::vector<PluginInfo> plugins_of(uint32_t kind) {
  PluginRegistry::instance().add_search_path(ALTIPLANO_TEST_PLUGIN_DIR);
  std::vector<PluginInfo> found;
  for (const PluginInfo& info : PluginRegistry::instance().list())
    if (info.kind == kind && info.refusal.empty()) found.push_back(info);
  return found;
}

void hold_to_promises(const std::string& path) {
  LoadedPlugin plugin;
  Status status = load_plugin(path, plugin);
  BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
  const PluginInfo& info = plugin.info;
  const Subject subject{plugin.info, plugin.descriptor, plugin.object};
  for (const Check& check : checks_of(info.kind)) {
    const std::string not_owed = check.not_owed ? check.not_owed(subject) : "";
    if (!not_owed.empty()) {
      BOOST_TEST_MESSAGE(info.name << ": not owed: " << check.name << ": " << not_owed);
      continue;
    }
    const Finding finding = run_check(check, subject);
    BOOST_CHECK_MESSAGE(finding.is_ok(), info.name << ": " << check.name << ": " << finding.status().to_string());
    if (finding.is_ok()) BOOST_TEST_MESSAGE(info.name << ": " << check.name << ": " << *finding);
  }
  plugin.descriptor->destroy(plugin.object);
}

void hold_all_to_promises(uint32_t kind, std::initializer_list<const char*> expected) {
  const auto plugins = plugins_of(kind);
  for (const char* name : expected)
    BOOST_TEST(std::any_of(plugins.begin(), plugins.end(), [&](const PluginInfo& info) { return info.name == name; }),
               name << " is not on the search path");
  for (const PluginInfo& info : plugins) hold_to_promises(info.path);
}

}  // namespace

// First, while the table of kinds is as it was built. Kinds for planning alone, so far: device/reference has kernels of
// them, held to their rules and gradients by property/op_rules_test.cpp and numerics/gradient_test.cpp.
BOOST_AUTO_TEST_CASE(every_op_kind_has_a_case_in_the_device_suite) {
  std::set<std::string> covered = {
      "batch_moments", "batch_norm",        "batch_norm_grad_input", "batch_norm_grad_sums",
      "conv2d",        "conv2d_grad_input", "conv2d_grad_weight",    "max_pool",
      "max_pool_grad", "mean_pool",         "mean_pool_grad",        "relu",
      "relu_grad",     "top2_gating",       "top2_gating_grad"};
  for (const DeviceCase& c : device_cases()) covered.insert(c.kind);
  for (const std::string& kind : OpTable::instance().kinds())
    BOOST_TEST(covered.count(kind) == 1, "no case of " << kind);
}

BOOST_AUTO_TEST_CASE(every_planner_keeps_its_promises) {
  hold_all_to_promises(Planner::kKind, {"planner/manual", "planner/heuristic", "planner/ilp", "planner/dp",
                                        "planner/deepspeed", "planner/fsdp"});
}
BOOST_AUTO_TEST_CASE(every_schedule_keeps_its_promises) {
  hold_all_to_promises(Schedule::kKind, {"schedule/gpipe", "schedule/1f1b"});
}
BOOST_AUTO_TEST_CASE(every_comm_backend_keeps_its_promises) {
  hold_all_to_promises(CommBackend::kKind, {"comm/inproc", "comm/shm"});
}
BOOST_AUTO_TEST_CASE(every_device_keeps_its_promises) {
  hold_all_to_promises(DeviceBackend::kKind, {"device/reference", "device/cpu"});
}
BOOST_AUTO_TEST_CASE(every_op_keeps_its_promises) {
  hold_all_to_promises(OpExtension::kKind, {});
  hold_to_promises(ALTIPLANO_BINARY_DIR "/fixtures/plugins/op_double.so");
}
BOOST_AUTO_TEST_CASE(every_model_keeps_its_promises) {
  hold_all_to_promises(Model::kKind, {"model/gpt", "model/moe", "model/wide_resnet"});
}
BOOST_AUTO_TEST_CASE(every_scheduler_keeps_its_promises) {
  hold_all_to_promises(Scheduler::kKind, {"scheduler/local"});
}

BOOST_AUTO_TEST_CASE(the_devices_of_the_tree_have_kernels_of_every_kind) {
  for (const PluginInfo& info : plugins_of(DeviceBackend::kKind)) {
    auto device = (*PluginRegistry::instance().device(info.name))->open({.threads = 1});
    BOOST_REQUIRE_MESSAGE(device.is_ok(), device.status().to_string());
    for (const DeviceCase& c : device_cases()) {
      auto kernel = (*device)->make_kernel(request_of(c, DType::kF32));
      BOOST_TEST(kernel.is_ok(), info.name << ": " << kernel.status().to_string());
    }
  }
}
