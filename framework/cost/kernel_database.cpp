#include "framework/cost/kernel_database.hpp"

#include <algorithm>
#include <filesystem>

#include "framework/base/text.hpp"
#include "framework/cost/profile_file.hpp"

namespace altiplano {
namespace {

using Measurements = std::map<std::pair<std::string, std::string>, KernelMeasurement>;

constexpr int64_t kFormat = 1;
constexpr std::string_view kWhat = "kernels";

Result<KernelMeasurement> read_one(const Hdf5File& file, const std::string& name) {
  KernelMeasurement m;
  ALTIPLANO_ASSIGN(m.machine, file.string_attribute(name, "machine"));
  ALTIPLANO_ASSIGN(m.shape, file.string_attribute(name, "shape"));
  ALTIPLANO_ASSIGN(m.best, file.string_attribute(name, "best"));
  ALTIPLANO_ASSIGN(m.date, file.string_attribute(name, "date"));
  ALTIPLANO_ASSIGN(m.rounds, file.int_attribute(name, "rounds"));
  ALTIPLANO_ASSIGN(const std::string forms, file.string_attribute(name, "forms"));
  const auto names = split(forms, ' ');
  ALTIPLANO_ASSIGN(const DatasetInfo info, file.info(name));
  const Extents extents = {static_cast<int64_t>(names.size()), 3};
  if (info.type != ElementType::kF64 || info.extents != extents)
    return runtime_failure("{}: {} has not three times of each of {} forms", file.path(), name, names.size());
  std::vector<double> seconds(names.size() * 3);
  ALTIPLANO_RETURN_IF_ERROR(file.read(name, {0, 0}, extents, seconds.data()));
  for (size_t i = 0; i < names.size(); ++i)
    m.times.push_back({names[i], seconds[3 * i], seconds[3 * i + 1], seconds[3 * i + 2]});
  if (std::ranges::find(names, m.best) == names.end())
    return runtime_failure("{}: {} has a best form '{}' that was not measured", file.path(), name, m.best);
  return m;
}

Result<Measurements> read_all(const std::string& path) {
  ALTIPLANO_RETURN_IF_ERROR(check_profile(path, kWhat));
  ALTIPLANO_ASSIGN(const Hdf5File file, Hdf5File::open(path));
  ALTIPLANO_ASSIGN(const int64_t format, file.int_attribute("/", "altiplano_kernels"));
  if (format != kFormat) return runtime_failure("{} has format {}, this version reads {}", path, format, kFormat);
  ALTIPLANO_ASSIGN(const std::vector<std::string> names, file.dataset_names());
  Measurements all;
  for (const std::string& name : names) {
    ALTIPLANO_ASSIGN(KernelMeasurement m, read_one(file, name));
    auto key = std::pair(m.machine, m.shape);
    all.emplace(std::move(key), std::move(m));
  }
  return all;
}

Status write_one(Hdf5File& file, const KernelMeasurement& m) {
  const std::string name =
      fmt::format("/{:016x}/{:016x}", fingerprint(m.machine), fingerprint(m.machine + "\n" + m.shape));
  std::vector<std::string> forms;
  std::vector<double> seconds;
  for (const FormTime& time : m.times) {
    forms.push_back(time.form);
    seconds.insert(seconds.end(), {time.median, time.fastest, time.slowest});
  }
  const Extents extents = {static_cast<int64_t>(forms.size()), 3};
  ALTIPLANO_RETURN_IF_ERROR(file.create_dataset(name, ElementType::kF64, extents));
  ALTIPLANO_RETURN_IF_ERROR(file.write(name, {0, 0}, extents, seconds.data()));
  for (const auto& [key, value] : {std::pair<const char*, std::string>{"machine", m.machine},
                                   {"shape", m.shape},
                                   {"best", m.best},
                                   {"date", m.date},
                                   {"forms", join(forms, " ")},
                                   {"columns", "median, fastest, slowest seconds of a call"}})
    ALTIPLANO_RETURN_IF_ERROR(file.set_attribute(name, key, value));
  return file.set_attribute(name, "rounds", m.rounds);
}

Status write_all(const std::string& path, const Measurements& all) {
  return write_profile(path, kWhat, [&](Hdf5File& file) -> Status {
    ALTIPLANO_RETURN_IF_ERROR(file.set_attribute("/", "altiplano_kernels", kFormat));
    for (const auto& [key, m] : all) ALTIPLANO_RETURN_IF_ERROR(write_one(file, m));
    return Status::ok();
  });
}

}  // namespace

std::string kernel_database_path(
    const std::function<std::optional<std::string>(const std::string& name)>& environment) {
  return profile_path(environment, "kernels.h5");
}

KernelDatabase KernelDatabase::read(const std::string& path) {
  KernelDatabase database;
  database.path_ = path;
  std::error_code error;
  if (path.empty() || !std::filesystem::exists(path, error)) return database;
  auto all = read_all(path);
  if (all.is_ok())
    database.known_ = std::move(all).value();
  else
    database.notice_ = all.status().message();
  return database;
}

const KernelMeasurement* KernelDatabase::find(const std::string& machine, const std::string& shape) const {
  const auto found = known_.find({machine, shape});
  return found == known_.end() ? nullptr : &found->second;
}

size_t KernelDatabase::num_shapes(const std::string& machine) const {
  return static_cast<size_t>(
      std::ranges::count_if(known_, [&](const auto& entry) { return entry.first.first == machine; }));
}

Status KernelDatabase::store(const std::vector<KernelMeasurement>& measurements) {
  for (const KernelMeasurement& m : measurements) known_[{m.machine, m.shape}] = m;
  if (path_.empty()) return runtime_failure("neither XDG_CACHE_HOME nor HOME says where to keep measured kernels");
  ALTIPLANO_ASSIGN(const FileLock turn, take_turn_at_profile(path_));
  std::error_code error;
  Measurements all;
  if (std::filesystem::exists(path_, error))
    if (auto there = read_all(path_); there.is_ok()) all = std::move(there).value();
  for (const KernelMeasurement& m : measurements) all[{m.machine, m.shape}] = m;
  return write_all(path_, all);
}

}  // namespace altiplano
