// altiplano doctor: what this machine and this installation offer.
#include <fmt/format.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "framework/base/console.hpp"
#include "framework/base/date.hpp"
#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/base/units.hpp"
#include "framework/cli/commands.hpp"
#include "framework/cli/job_arguments.hpp"
#include "framework/launch/allocation.hpp"
#include "framework/launch/task_ranks.hpp"
#include "framework/plugin/registry.hpp"
#include "framework/runtime/comm_choice.hpp"
#include "framework/runtime/comm_survey.hpp"
#include "framework/runtime/job_cluster.hpp"
#include "framework/storage/atomic_file.hpp"
#include "framework/storage/hdf5_file.hpp"

namespace altiplano {
namespace {

void print_line(const std::string& name, const std::string& text) {
  print_out("{:<10}{}\n", name, text);
}

/// "2 in the affinity mask, 64 in the machine"
std::string cores_text() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0) return fmt::format("{} online, affinity mask unknown", online);
  return fmt::format("{} in the affinity mask, {} online", CPU_COUNT(&mask), online);
}

std::string hdf5_text() {
  const Hdf5Versions versions = hdf5_versions();
  return versions.agree() ? versions.library : versions.mismatch_text();
}

/// One line "Name:   123 kB" of /proc/meminfo, in bytes.
Bytes meminfo(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name + ":")) continue;
    std::istringstream words(line.substr(name.size() + 1));
    int64_t kibibytes = 0;
    words >> kibibytes;
    return Bytes(kibibytes * 1024);
  }
  return Bytes(0);
}

std::string memory_text() {
  return fmt::format("{} available of {}", to_string(meminfo("MemAvailable")), to_string(meminfo("MemTotal")));
}

std::string shared_memory_text() {
  struct statvfs info {};
  if (statvfs("/dev/shm", &info) != 0) return "no /dev/shm: processes cannot share memory here";
  auto bytes = [&](uint64_t blocks) { return to_string(Bytes(static_cast<int64_t>(blocks * info.f_frsize))); };
  return fmt::format("{} free of {} in /dev/shm", bytes(info.f_bavail), bytes(info.f_blocks));
}

std::string instruction_sets() {
#if defined(__x86_64__)
  std::vector<std::string> found;
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) found.push_back("avx2");
  if (__builtin_cpu_supports("fma")) found.push_back("fma");
  if (__builtin_cpu_supports("avx512f")) found.push_back("avx512f");
  if (__builtin_cpu_supports("avx512bf16")) found.push_back("avx512-bf16");
  std::ifstream file("/proc/cpuinfo");  // the compiler's list does not know AMX
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("flags")) continue;
    const auto flags = split(line, ' ');
    auto has = [&](const char* flag) { return std::ranges::find(flags, flag) != flags.end(); };
    if (has("amx_bf16")) found.push_back("amx-bf16");
    if (has("amx_int8")) found.push_back("amx-int8");
    break;
  }
  return found.empty() ? "x86-64 without avx2" : join(found, ", ");
#else
  return "not an x86-64 processor";
#endif
}

void print_plugins() {
  auto& registry = PluginRegistry::instance();
  std::vector<std::string> names;
  std::string refused;
  for (const auto& plugin : registry.list()) {
    if (plugin.refusal.empty()) names.push_back(plugin.name);
    if (!plugin.refusal.empty()) refused += fmt::format("{:<10}{}\n", "refused", plugin.refusal);
  }
  print_line("plugins", names.empty() ? "none in " + join(registry.search_path(), ", ") : join(names, ", "));
  print_out("{}", refused);
}

/// What each device plugin says of itself, its libraries included, when it is opened here.
void print_devices() {
  auto& registry = PluginRegistry::instance();
  for (const auto& plugin : registry.list()) {
    if (plugin.kind != DeviceBackend::kKind || !plugin.refusal.empty()) continue;
    const auto backend = registry.device(plugin.name);
    if (!backend) continue;
    const auto device = (*backend)->open({});
    print_line("device",
               device ? fmt::format("{}, {}, {}", (*device)->info().name, counted((*device)->info().threads, "thread"),
                                    to_string((*device)->info().memory))
                      : fmt::format("{}: {}", plugin.name, device.status().to_string()));
  }
}

struct DoctorArguments {
  JobArguments job;
  bool comm = false;
  std::string backend = "auto", out;
};

Status examine(const JobArguments& arguments) {
  use_plugin_path(arguments.plugin_path);
  print_line("altiplano", ALTIPLANO_VERSION);
  print_line("compiler", "g++ " __VERSION__);
  print_line("hdf5", hdf5_text());
  print_line("cores", cores_text());
  print_line("memory", memory_text());
  print_line("shared", shared_memory_text());
  print_line("cpu", instruction_sets());
  print_plugins();
  print_devices();
  return Status::ok();
}

/// Later runs of `cluster: this-machine` on several hosts are planned with it.
void keep_for_planning(const std::vector<SurveyedPair>& pairs, const std::string& comm) {
  const auto between = network_of(pairs);
  const std::string path = network_path();
  if (!between || path.empty()) return;
  NetworkFigures figures = *between;
  figures.measured = fmt::format("{} over {}", date_of_today(), comm);
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  const Status kept = write_file_atomically(path, figures.to_yaml());
  if (!kept.is_ok()) return print_err("note: not kept for planning: {}\n", kept.to_string());
  print_line("kept", path + "; `cluster: this-machine` plans with it from now on");
}

/// What messages cost between the tasks of this job.
Status examine_comm(const DoctorArguments& arguments) {
  constexpr int kMostPairs = 8;  // of a class
  use_plugin_path(arguments.job.plugin_path);
  RankEnvironment environment;
  ALTIPLANO_ASSIGN(TaskRanks tasks, meet_tasks(environment, environment_variables()));
  if (tasks.rendezvous == nullptr)
    return invalid_argument(
        "--comm measures between ranks, and this process is alone; start one per task: srun --mpi=pmix --nodes=2 "
        "--ntasks-per-node=2 altiplano doctor --comm");
  PluginRegistry& registry = PluginRegistry::instance();
  const auto& hosts = environment.hosts;
  ALTIPLANO_ASSIGN(const std::string name,
                   choose_comm_backend(registry.list(), registry.search_path().back(), arguments.backend, "--backend",
                                       {environment.world_size, num_hosts(hosts)}));
  ALTIPLANO_ASSIGN(CommBackend * backend, registry.comm(name));
  ALTIPLANO_ASSIGN(const auto comm, backend->connect(*tasks.rendezvous, {}));
  tasks.rendezvous.reset();
  ALTIPLANO_ASSIGN(const auto pairs, survey_pairs(*comm, pairs_to_survey(hosts, kMostPairs)));
  if (environment.rank.value != 0) return Status::ok();
  const std::string how = comm->describe(), text = how.empty() ? name : name + ": " + how;
  print_line("ranks", fmt::format("{} on {} ({})", environment.world_size, counted(num_hosts(hosts), "host"),
                                  placement_text(hosts)));
  print_line("comm", text);
  print_out("{}", survey_text(pairs, hosts));
  keep_for_planning(pairs, name);
  if (arguments.out.empty()) return Status::ok();
  ALTIPLANO_RETURN_IF_ERROR(check_output_files({{"--out", arguments.out}}, {}));
  ALTIPLANO_RETURN_IF_ERROR(write_file_atomically(arguments.out, survey_yaml(pairs, hosts, text)));
  print_line("written", arguments.out);
  return Status::ok();
}

}  // namespace

void add_doctor_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<DoctorArguments>();
  CLI::App* command = add_command(app, "doctor", "Say what this machine and this installation offer", R"(
    altiplano doctor
    altiplano doctor --plugin-path my_plugins
    srun --mpi=pmix --nodes=2 --ntasks-per-node=2 altiplano doctor --comm --out comm.yaml)");
  add_plugin_path_argument(*command, arguments->job);
  CLI::Option* comm =
      command->add_flag("--comm", arguments->comm, "measure latency and bandwidth between the tasks of srun or mpirun");
  command->add_option("--backend", arguments->backend, "with --comm: communication plugin, as comm.backend")
      ->needs(comm);
  command->add_option("--out", arguments->out, "with --comm: YAML file for what was measured")->needs(comm);
  on_run(command, exit_code,
         [arguments] { return arguments->comm ? examine_comm(*arguments) : examine(arguments->job); });
}

}  // namespace altiplano
