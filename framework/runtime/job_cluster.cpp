#include "framework/runtime/job_cluster.hpp"

#include "framework/cluster/presets.hpp"
#include "framework/cost/cluster_database.hpp"
#include "framework/cost/profile_file.hpp"
#include "framework/launch/rank_environment.hpp"
#include "framework/storage/atomic_file.hpp"

namespace altiplano {
namespace {

/// This machine as it was measured; nothing where it was not.
std::optional<Cluster> find_measured(Job& job) {
  const ClusterDatabase database = ClusterDatabase::read(profile_path(process_environment, "clusters.h5"));
  if (!database.notice().empty())
    job.notices.push_back(database.notice() + "; `altiplano profile --cluster FILE` makes it anew");
  const MeasuredCluster* measured = database.find(job.device->machine());
  if (measured == nullptr) return std::nullopt;
  job.figures = "measured on this machine " + measured->date;
  return measured->cluster;
}

NetworkFigures find_network(Job& job) {
  constexpr const char* kHowToMeasure =
      "`srun --mpi=pmix altiplano doctor --comm` on two hosts or more measures it for all later runs";
  const std::string path = network_path();
  NetworkFigures figures;
  if (const auto text = path.empty() ? Result<std::string>(std::string()) : read_file(path);
      text.is_ok() && !text->empty()) {
    auto read = NetworkFigures::from_yaml(*text, path);
    if (read.is_ok()) return std::move(read).value();
    job.notices.push_back(fmt::format("{}; {}", read.status().message(), kHowToMeasure));
  }
  job.notices.push_back(
      fmt::format("the network between hosts was not measured, and is planned with as {:.1f} GB/s; {}",
                  figures.bandwidth * 1e-9, kHowToMeasure));
  return figures;
}

}  // namespace

std::string network_path() {
  return profile_path(process_environment, "network.yaml");
}

Status find_cluster(Job& job, const JobRequest& request) {
  const std::string name = job.config.options.get_string("cluster");
  ALTIPLANO_ASSIGN(Cluster cluster, load_cluster(name));
  const bool is_this_machine = name == "this-machine";
  if (is_this_machine && job.device)
    if (auto measured = find_measured(job)) cluster = std::move(*measured);
  if (!is_this_machine || request.places.groups.empty()) {
    job.cluster = cluster.resized(request.num_ranks);
    return Status::ok();
  }
  const NetworkFigures network = find_network(job);
  job.cluster = join_hosts(cluster, request.places, network);
  if (!network.measured.empty())
    job.figures += (job.figures.empty() ? "" : ", ") + ("the network measured " + network.measured);
  return Status::ok();
}

}  // namespace altiplano
