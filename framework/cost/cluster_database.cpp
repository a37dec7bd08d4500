#include "framework/cost/cluster_database.hpp"

#include <filesystem>

#include "framework/base/text.hpp"
#include "framework/cost/profile_file.hpp"

namespace altiplano {

namespace {

constexpr std::string_view kClusters = "clusters";
constexpr int64_t kClustersFormat = 1;

Result<MeasuredCluster> read_measured(const Hdf5File& file, const std::string& name) {
  MeasuredCluster measured;
  ALTIPLANO_ASSIGN(measured.machine, file.string_attribute(name, "machine"));
  ALTIPLANO_ASSIGN(measured.date, file.string_attribute(name, "date"));
  ALTIPLANO_ASSIGN(measured.spread, file.double_attribute(name, "spread"));
  ALTIPLANO_ASSIGN(const DatasetInfo info, file.info(name));
  if (info.type != ElementType::kU8 || info.extents.size() != 1)
    return runtime_failure("{}: {} is no text", file.path(), name);
  std::string text(static_cast<size_t>(info.extents[0]), ' ');
  ALTIPLANO_RETURN_IF_ERROR(file.read(name, {0}, info.extents, text.data()));
  ALTIPLANO_ASSIGN(measured.cluster, Cluster::from_yaml(text, file.path() + name));
  return measured;
}

Status write_measured(Hdf5File& file, const MeasuredCluster& measured) {
  const std::string name = fmt::format("/{:016x}", fingerprint(measured.machine));
  const std::string text = measured.cluster.to_yaml();
  const Extents extents = {static_cast<int64_t>(text.size())};
  ALTIPLANO_RETURN_IF_ERROR(file.create_dataset(name, ElementType::kU8, extents));
  ALTIPLANO_RETURN_IF_ERROR(file.write(name, {0}, extents, text.data()));
  ALTIPLANO_RETURN_IF_ERROR(file.set_attribute(name, "machine", measured.machine));
  ALTIPLANO_RETURN_IF_ERROR(file.set_attribute(name, "date", measured.date));
  return file.set_attribute(name, "spread", measured.spread);
}

Result<std::map<std::string, MeasuredCluster>> read_all_measured(const std::string& path) {
  ALTIPLANO_RETURN_IF_ERROR(check_profile(path, kClusters));
  ALTIPLANO_ASSIGN(const Hdf5File file, Hdf5File::open(path));
  ALTIPLANO_ASSIGN(const int64_t format, file.int_attribute("/", "altiplano_clusters"));
  if (format != kClustersFormat)
    return runtime_failure("{} has format {}, this version reads {}", path, format, kClustersFormat);
  ALTIPLANO_ASSIGN(const std::vector<std::string> names, file.dataset_names());
  std::map<std::string, MeasuredCluster> all;
  for (const std::string& name : names) {
    ALTIPLANO_ASSIGN(MeasuredCluster measured, read_measured(file, name));
    std::string machine = measured.machine;
    all.emplace(std::move(machine), std::move(measured));
  }
  return all;
}

}  // namespace

ClusterDatabase ClusterDatabase::read(const std::string& path) {
  ClusterDatabase database;
  database.path_ = path;
  std::error_code error;
  if (path.empty() || !std::filesystem::exists(path, error)) return database;
  auto all = read_all_measured(path);
  if (all.is_ok())
    database.known_ = std::move(all).value();
  else
    database.notice_ = all.status().message();
  return database;
}

const MeasuredCluster* ClusterDatabase::find(const std::string& machine) const {
  const auto found = known_.find(machine);
  return found == known_.end() ? nullptr : &found->second;
}

Status ClusterDatabase::store(const MeasuredCluster& measured) {
  known_[measured.machine] = measured;
  if (path_.empty()) return runtime_failure("neither XDG_CACHE_HOME nor HOME says where to keep measured clusters");
  ALTIPLANO_ASSIGN(const FileLock turn, take_turn_at_profile(path_));
  std::map<std::string, MeasuredCluster> all;
  std::error_code error;
  if (std::filesystem::exists(path_, error))
    if (auto there = read_all_measured(path_); there.is_ok()) all = std::move(there).value();
  all[measured.machine] = measured;
  return write_profile(path_, kClusters, [&](Hdf5File& file) -> Status {
    ALTIPLANO_RETURN_IF_ERROR(file.set_attribute("/", "altiplano_clusters", kClustersFormat));
    for (const auto& [machine, one] : all) ALTIPLANO_RETURN_IF_ERROR(write_measured(file, one));
    return Status::ok();
  });
}

}  // namespace altiplano
