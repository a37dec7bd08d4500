#include "framework/conformance/comm_checks.hpp"

#include "framework/base/text.hpp"

namespace altiplano::conformance {
namespace {

constexpr uint64_t kKnownBits = kCommStreamOrdered | kCommNeedsHostProgress | kCommDeterministic |
                                kCommBetweenProcesses | kCommBetweenHosts | kCommWithinProcess |
                                kCommNoticesDeath;

const char* to_text(RanksAre ranks_are) {
  if (ranks_are == RanksAre::kLaunched) return "launched processes";
  if (ranks_are == RanksAre::kHosts) return "processes of several hosts";
  return ranks_are == RanksAre::kThreads ? "threads" : "processes";
}

Finding check_bits(const Subject& subject) {
  const uint64_t bits = subject.as<CommBackend>().capabilities();
  if (bits != subject.info.capabilities)
    return broken("the descriptor says capabilities {:#x}, the object {:#x}", subject.info.capabilities, bits);
  if ((bits & ~kKnownBits) != 0) return broken("unknown capability bits {:#x}", bits & ~kKnownBits);
  if ((bits & kCommStreamOrdered) != 0 && (bits & kCommNeedsHostProgress) != 0)
    return broken("stream_ordered and needs_host_progress exclude each other");
  if ((bits & (kCommWithinProcess | kCommBetweenProcesses | kCommBetweenHosts)) == 0)
    return broken("none of within_process, between_processes, between_hosts: it connects nobody");
  return fmt::format("{:#x}", bits);
}

}  // namespace

CommOptions patient_options() {
  CommOptions options;
  options.deadline = std::chrono::seconds(30);
  return options;
}

CommOptions deadline_options(int milliseconds) {
  CommOptions options;
  options.deadline = std::chrono::milliseconds(milliseconds);
  return options;
}

std::vector<RanksAre> worlds_of(const CommBackend& backend) {
  if (launched_ranks() != nullptr && (backend.capabilities() & kCommBetweenHosts) != 0) return {RanksAre::kLaunched};
  std::vector<RanksAre> worlds;
  if ((backend.capabilities() & kCommWithinProcess) != 0) worlds.push_back(RanksAre::kThreads);
  const bool is_between_processes = (backend.capabilities() & kCommBetweenProcesses) != 0;
  // What connects hosts talks another way within one.
  if (is_between_processes)
    worlds.push_back((backend.capabilities() & kCommBetweenHosts) != 0 ? RanksAre::kHosts : RanksAre::kProcesses);
  return worlds;
}

Check comm_check(std::string name, Status (*body)(CommBackend&, RanksAre)) {
  auto run = [body](const Subject& subject) -> Finding {
    std::vector<std::string> texts;
    for (RanksAre ranks_are : worlds_of(subject.as<CommBackend>())) {
      ALTIPLANO_RETURN_IF_ERROR(
          body(subject.as<CommBackend>(), ranks_are).with_context(fmt::format("ranks as {}", to_text(ranks_are))));
      texts.emplace_back(to_text(ranks_are));
    }
    return "ranks as " + join(texts, " and as ");
  };
  auto not_owed = [](const Subject& subject) -> std::string {
    return worlds_of(subject.as<CommBackend>()).empty() ? "connects only ranks that another launcher starts (srun, "
                                                          "mpirun): the suite runs on them as launched_conformance"
                                                        : "";
  };
  return {std::move(name), std::move(run), std::move(not_owed)};
}

Status run_on(int ranks, CommBackend& backend, RanksAre ranks_are, const CommOptions& options,
              const CommunicatorFunction& function) {
  return first_failure(run_backend_all(ranks, backend, options, function, ranks_are));
}

Result<GroupId> world_group(Communicator& comm, const std::string& name) {
  std::vector<RankId> all;
  for (int r = 0; r < comm.world_size(); ++r) all.emplace_back(r);
  return comm.create_group(all, name);
}

std::vector<Check> comm_checks() {
  std::vector<Check> checks = {{"the capability bits are known and agree with the descriptor", check_bits}};
  for (auto part : {comm_collective_checks, comm_message_checks, comm_failure_checks})
    for (Check& check : part()) checks.push_back(std::move(check));
  return checks;
}

}  // namespace altiplano::conformance
