#pragma once
// A real Slurm of four nodes (ci/slurm-sandbox) for the tests of one program: it names ClusterFixture as its global
// fixture. Skipped, with what is missing, where the sandbox cannot be; a failure then where ALTIPLANO_NEEDS_SLURM is
// set.
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "framework/base/text.hpp"
#include "tests/support/job_folder.hpp"

namespace altiplano::test {

inline constexpr const char* kSandbox = ALTIPLANO_SOURCE_DIR "/ci/slurm-sandbox";
inline constexpr const char* kProgram = ALTIPLANO_BINARY_DIR "/bin/altiplano";
inline constexpr int kSkipped = 77;

/// The cluster, for all tests of this program.
class Cluster {
 public:
  Cluster() {
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
    const auto started = run_command(fmt::format("{} start {} --nodes 4", kSandbox, path()));
    if (started.exit_code != 0) throw std::runtime_error(started.output);
  }
  /// Ends the program there, before anything is made.
  static void skip_where_it_cannot_be() {
    const auto check = run_command(std::string(kSandbox) + " check");
    const bool is_built = std::filesystem::exists(ALTIPLANO_BINARY_DIR "/bin/launched_conformance") &&
                          std::filesystem::exists(ALTIPLANO_TEST_PLUGIN_DIR "/comm-ucx.so");
    if (check.exit_code != 0) skip(check.output);
    if (!is_built) skip("altiplano was built without PMIx, MPI or UCX (libpmix-dev, libopenmpi-dev, libucx-dev)\n");
  }
  ~Cluster() { (void)run_command(fmt::format("{} stop {}", kSandbox, path())); }

  std::string path() const { return folder_ / "s"; }
  /// A shell command with the cluster's environment, in the job's folder.
  CommandResult run(const JobFolder& job, const std::string& command, int seconds = 60) const {
    const std::string script = job / "command.sh";
    write_bytes(script, fmt::format("cd {}\neval \"$({} env {})\"\nexport ALTIPLANO={}\n{}\n", job.path(), kSandbox,
                                    path(), kProgram, command));
    return run_command(fmt::format("timeout -k 5 {} bash {} </dev/null", seconds, script));
  }
  CommandResult on_node(const std::string& node, const std::string& command) const {
    return run_command(fmt::format("{} exec {} {} bash -c '{}'", kSandbox, path(), node, command));
  }

 private:
  [[noreturn]] static void skip(const std::string& why) {
    const bool is_needed = std::getenv("ALTIPLANO_NEEDS_SLURM") != nullptr;
    std::printf("%s: tests on a Slurm cluster need what is not here:\n%s", is_needed ? "error" : "skipped",
                why.c_str());
    std::fflush(stdout);
    std::_Exit(is_needed ? 1 : kSkipped);
  }

  TemporaryDirectory folder_;
};

/// Started by the first test, stopped when the program ends.
struct ClusterFixture {
  ClusterFixture() {
    Cluster::skip_where_it_cannot_be();
    cluster() = std::make_unique<Cluster>();
  }
  ~ClusterFixture() { cluster().reset(); }
  static std::unique_ptr<Cluster>& cluster() {
    static std::unique_ptr<Cluster> one;
    return one;
  }
};
inline const Cluster& cluster() {
  return *ClusterFixture::cluster();
}

/// The job's log, once it says `words`.
inline void wait_for_log(const std::string& path, const std::string& words) {
  wait_until([&] { return std::filesystem::exists(path) && read_bytes(path).find(words) != std::string::npos; },
             words + " in " + path);
}

inline bool mentions(const CommandResult& result, const std::string& words) {
  return result.output.find(words) != std::string::npos;
}

/// Nodes are given out in their order when all are free.
inline void wait_until_all_nodes_are_idle(const JobFolder& job) {
  wait_until([&] { return trim(cluster().run(job, "sinfo -h -p main -o %D%t").output) == "4idle"; }, "four idle nodes");
}

/// `ci/slurm-sandbox COMMAND DIR ARGUMENTS`; fails the test when it fails.
inline void sandbox(const std::string& command, const std::string& arguments) {
  const auto result = run_command(fmt::format("{} {} {} {}", kSandbox, command, cluster().path(), arguments));
  BOOST_REQUIRE_MESSAGE(result.exit_code == 0, command << ' ' << arguments << ": " << result.output);
}

/// The suite of comm plugins, by ranks of srun: "-N4 -n8".
inline void check_promises_of_comm(const std::string& comm, const std::string& geometry) {
  const JobFolder job;
  const auto result = cluster().run(job,
                                    fmt::format("srun --mpi=pmix {} {}/bin/launched_conformance {}/comm-{}.so",
                                                geometry, ALTIPLANO_BINARY_DIR, ALTIPLANO_TEST_PLUGIN_DIR, comm),
                                    240);
  BOOST_TEST(result.exit_code == 0, comm << ' ' << geometry << ": " << result.output);
}

}  // namespace altiplano::test
