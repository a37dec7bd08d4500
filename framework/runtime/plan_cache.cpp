#include "framework/runtime/plan_cache.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "framework/base/text.hpp"
#include "framework/config/scalar_text.hpp"
#include "framework/plugin/registry.hpp"
#include "framework/storage/atomic_file.hpp"
#include "framework/storage/input_file.hpp"

namespace altiplano {

namespace {

namespace fs = std::filesystem;

/// Size and time of a file: another build of it is another file.
std::string identity_of(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return path + " absent";
  return fmt::format("{} {} {}.{}", path, found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec);
}

/// The program's, the framework's and those of the plugins that planning asks.
std::vector<std::string> identities_of_code(const Job& job) {
  const Options& options = job.config.options;
  std::vector<std::string> names = {"planner/" + options.get_string("parallel.planner.stages"),
                                    "planner/" + options.get_string("parallel.planner.sharding"),
                                    "device/" + options.get_string("device.kind"),
                                    "model/" + options.get_string("model.kind")};
  // Plugins lie beside the framework's library.
  const std::string library = PluginRegistry::instance().search_path().back() + "/../../libaltiplano.so";
  std::vector<std::string> identities = {identity_of("/proc/self/exe"), identity_of(library)};
  for (const PluginInfo& plugin : PluginRegistry::instance().list())
    if (std::ranges::find(names, plugin.name) != names.end() || plugin.name.starts_with("schedule/"))
      identities.push_back(identity_of(plugin.path));
  return identities;
}

std::string key_of(const Job& job, const PlanningSizes& sizes) {
  const Options& options = job.config.options;
  std::vector<std::string> parts = identities_of_code(job);
  parts.push_back(fmt::format("graph {:016x} {}, {} ops", job.graph->fingerprint, to_string(job.graph->compute_dtype),
                              job.graph->graph.ops().size()));
  parts.push_back(fmt::format("cluster {:016x}, {} ranks", job.cluster.fingerprint(), job.num_ranks));
  parts.push_back(fmt::format("batch {} {} {}, sequence {}, previews {}", sizes.batch.global, sizes.batch.micro,
                              sizes.batch.accumulation, sizes.sequence, sizes.only_first_of_stage));
  if (auto memory = memory_limit(options, job.cluster, job.ranks_of_a_host); memory.is_ok())
    parts.push_back(fmt::format("memory {}", memory->value));
  const Options parallel = options.section("parallel");
  for (const OptionRecord& record : parallel.records())
    if (parallel.has(record.key)) parts.push_back(record.key + "=" + to_string(parallel.value(record.key)));
  return fmt::format("{:016x}", fingerprint(join(parts, "\n")));
}

void remove_oldest(const std::string& folder, size_t most) {
  std::vector<std::pair<fs::file_time_type, fs::path>> plans;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".yaml") plans.emplace_back(entry.last_write_time(error), entry.path());
  if (plans.size() <= most) return;
  std::ranges::sort(plans);
  for (size_t i = 0; i + most < plans.size(); ++i) fs::remove(plans[i].second, error);
}

}  // namespace

std::string plan_cache_folder() {
  const std::string cache = environment_variable("XDG_CACHE_HOME").value_or(""),
                    home = environment_variable("HOME").value_or("");
  if (!cache.empty() && cache.front() == '/') return cache + "/altiplano/plans";
  return home.empty() ? home : home + "/.cache/altiplano/plans";
}

PlanCache::PlanCache(const Job& job, const PlanningSizes& sizes, std::string folder)
    : folder_(std::move(folder)), key_(key_of(job, sizes)) {}

std::optional<CachedPlan> PlanCache::find() const {
  std::error_code error;
  if (folder_.empty() || !fs::is_regular_file(file(), error)) return std::nullopt;
  auto text = read_input_file(file(), kMostWrittenBytes);
  if (!text.is_ok()) return std::nullopt;
  auto plan = Plan::from_yaml(*text, file());
  if (!plan.is_ok()) {
    fs::remove(file(), error);
    return std::nullopt;
  }
  plan->file.clear();
  plan->places.clear();
  return CachedPlan{std::move(*plan), file()};
}

void PlanCache::keep(const Plan& plan) const {
  if (folder_.empty()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  Plan without_kernels = plan;
  without_kernels.kernels = {};
  if (write_file_atomically(file(), without_kernels.to_yaml()).is_ok()) remove_oldest(folder_, kMostKept);
}

}  // namespace altiplano
