#include "framework/runtime/comm_choice.hpp"

#include <boost/test/unit_test.hpp>

using namespace altiplano;

namespace {

PluginInfo backend(const std::string& name, uint64_t capabilities, const std::string& folder = "/home/plugins") {
  PluginInfo info;
  info.name = "comm/" + name;
  info.path = folder + "/comm-" + name + ".so";
  info.kind = CommBackend::kKind;
  info.capabilities = capabilities;
  return info;
}

const PluginInfo kThreads = backend("threads", kCommWithinProcess | kCommDeterministic),
                 kProcesses = backend("processes", kCommBetweenProcesses | kCommDeterministic),
                 kLoose = backend("a_loose_one", kCommBetweenProcesses),
                 kForeign = backend("a_foreign_one", kCommBetweenProcesses | kCommDeterministic, "/else/where"),
                 kHosts = backend("hosts", kCommBetweenHosts | kCommDeterministic);

std::string choice(const std::vector<PluginInfo>& plugins, const std::string& wanted, int world_size, int hosts = 1) {
  auto chosen =
      choose_comm_backend(plugins, "/home/plugins", wanted, "job.yaml:3:8: comm.backend", {world_size, hosts});
  return chosen.is_ok() ? *chosen : "refused: " + chosen.status().message();
}

}  // namespace

BOOST_AUTO_TEST_CASE(one_rank_gets_threads_and_several_get_processes) {
  BOOST_TEST(choice({kProcesses, kThreads}, "auto", 1) == "comm/threads");
  BOOST_TEST(choice({kThreads, kProcesses}, "auto", 2) == "comm/processes");
  BOOST_TEST(choice({kProcesses}, "auto", 1) == "comm/processes");
}

BOOST_AUTO_TEST_CASE(deterministic_backends_come_first_then_those_beside_the_library) {
  BOOST_TEST(choice({kLoose, kProcesses}, "auto", 2) == "comm/processes");
  BOOST_TEST(choice({kForeign, kProcesses}, "auto", 2) == "comm/processes");
  BOOST_TEST(choice({kForeign, kLoose}, "auto", 2) == "comm/a_foreign_one");
}

BOOST_AUTO_TEST_CASE(a_backend_that_cannot_connect_the_ranks_is_refused_with_those_that_can) {
  BOOST_TEST(choice({kThreads, kProcesses, kLoose}, "threads", 2) ==
             "refused: job.yaml:3:8: comm.backend: comm/threads does not connect processes, and the job has 2 ranks; "
             "backends that do: a_loose_one, processes");
  BOOST_TEST(choice({kThreads}, "auto", 2) ==
             "refused: job.yaml:3:8: comm.backend: no backend connects 2 ranks; there is: threads");
}

BOOST_AUTO_TEST_CASE(a_named_backend_is_taken_when_it_can_and_refused_files_do_not_count) {
  BOOST_TEST(choice({kThreads, kProcesses}, "comm/processes", 2) == "comm/processes");
  BOOST_TEST(choice({kThreads, kProcesses}, "processes", 1) == "comm/processes");
  PluginInfo refused = kProcesses;
  refused.refusal = "older";
  BOOST_TEST(choice({refused, kForeign}, "auto", 2) == "comm/a_foreign_one");
  BOOST_TEST(choice({}, "unknown", 2) == "comm/unknown");  // the registry says what there is
}

BOOST_AUTO_TEST_CASE(ranks_of_several_hosts_get_what_connects_hosts) {
  BOOST_TEST(choice({kProcesses, kHosts}, "auto", 4, 2) == "comm/hosts");
  BOOST_TEST(choice({kHosts, kProcesses}, "auto", 4, 1) == "comm/processes");
  BOOST_TEST(choice({kHosts, kProcesses}, "hosts", 4, 1) == "comm/hosts");
  BOOST_TEST(choice({kThreads, kHosts}, "auto", 1, 1) == "comm/threads");
  const PluginInfo watchful = backend("watchful", kHosts.capabilities | kCommBetweenProcesses | kCommNoticesDeath);
  BOOST_TEST(choice({kHosts, watchful}, "auto", 4, 2) == "comm/watchful");
  BOOST_TEST(choice({kProcesses, watchful}, "auto", 4, 1) == "comm/processes");
}

BOOST_AUTO_TEST_CASE(what_does_not_connect_hosts_is_refused_for_ranks_of_several) {
  BOOST_TEST(choice({kProcesses, kHosts}, "processes", 4, 2) ==
             "refused: job.yaml:3:8: comm.backend: comm/processes does not connect hosts, and the job has 4 ranks on 2 "
             "hosts; backends that do: hosts");
  BOOST_TEST(choice({kProcesses}, "auto", 4, 2) ==
             "refused: job.yaml:3:8: comm.backend: no backend connects 4 ranks on 2 hosts; there is: processes; "
             "comm/ucx is built where UCX is (libucx-dev), comm/mpi where MPI is (libopenmpi-dev)");
}
