#include "framework/cluster/presets.hpp"

#include <stdlib.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

using namespace altiplano;
namespace fs = std::filesystem;

BOOST_AUTO_TEST_CASE(every_preset_loads_prints_and_parses_back) {
  std::vector<std::string> names = cluster_preset_names();
  for (const char* expected : {"a100-40-8", "dgx-a100-80", "dgx-h100", "p3.16xlarge", "this-machine"})
    BOOST_TEST((std::find(names.begin(), names.end(), expected) != names.end()), expected);
  for (const std::string& name : names) {
    Result<Cluster> cluster = load_cluster(name);
    BOOST_REQUIRE_MESSAGE(cluster.is_ok(), cluster.status().to_string());
    BOOST_TEST(cluster->name == name);
    BOOST_TEST(cluster->device.source.size() > 20u, name);
    BOOST_TEST(cluster->device.peak_flops.count(DType::kF64) == 1u, name);
    Result<Cluster> back = Cluster::from_yaml(cluster->to_yaml(), "printed.yaml");
    BOOST_REQUIRE_MESSAGE(back.is_ok(), back.status().to_string());
    BOOST_TEST(back->to_yaml() == cluster->to_yaml());
    BOOST_TEST(back->fingerprint() == cluster->fingerprint());
  }
}

BOOST_AUTO_TEST_CASE(presets_have_the_shape_their_name_says) {
  BOOST_TEST(load_cluster("a100-40-8")->shape_text() == "1 node x 8 a100-40");
  BOOST_TEST(load_cluster("dgx-a100-80")->resized(64).shape_text() == "8 nodes x 8 a100-80");
  BOOST_TEST(load_cluster("dgx-h100")->resized(64).shape_text() == "8 nodes x 8 h100-80");
  BOOST_TEST(load_cluster("dgx-h200")->resized(16).shape_text() == "2 nodes x 8 h200-141");
  BOOST_TEST(load_cluster("p3.16xlarge")->shape_text() == "8 nodes x 8 v100-16");
  BOOST_TEST(load_cluster("this-machine")->resized(4).shape_text() == "1 node x 4 cpu-core");
}

BOOST_AUTO_TEST_CASE(an_unknown_preset_is_refused_with_a_suggestion_and_the_names) {
  std::string message = load_cluster("a100-40").status().to_string();
  BOOST_TEST(message.find("did you mean a100-40-8?") != std::string::npos, message);
  BOOST_TEST(message.find("p3.16xlarge") != std::string::npos, message);
  BOOST_TEST(load_cluster("no/such.yaml").status().to_string() ==
             "cluster: no/such.yaml: cannot be read: No such file or directory");
  BOOST_TEST(load_cluster("/tmp/").status().to_string() == "cluster: /tmp/: cannot be read: it is a folder");
}

BOOST_AUTO_TEST_CASE(a_folder_of_the_environment_comes_before_the_others) {
  std::string folder = (fs::temp_directory_path() / "altiplano_presets_XXXXXX").string();
  BOOST_REQUIRE(mkdtemp(folder.data()) != nullptr);
  fs::create_directory(fs::path(folder) / "clusters");
  Cluster mine = *load_cluster("dgx-h100");
  mine.name = "mine";
  std::ofstream(folder + "/clusters/dgx-h100.yaml") << mine.to_yaml();
  setenv("ALTIPLANO_CONFIG_PATH", ("/nonexistent:" + folder).c_str(), 1);
  Result<Cluster> found = load_cluster("dgx-h100");
  unsetenv("ALTIPLANO_CONFIG_PATH");
  fs::remove_all(folder);
  BOOST_REQUIRE(found.is_ok());
  BOOST_TEST(found->name == "mine");
  BOOST_TEST(load_cluster("dgx-h100")->name == "dgx-h100");
}
