#include "framework/storage/hdf5_file.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "framework/storage/hdf5_detail.hpp"
#include "framework/storage/hdf5_write_driver.hpp"
#include "framework/storage/input_file.hpp"

namespace altiplano {
namespace {

using hdf5::failure;
using hdf5::Handle;
using hdf5::Lock;

std::string dataset_text(const std::string& name) {
  return fmt::format("dataset '{}'", name);
}

std::vector<hsize_t> sizes(const Extents& extents) {
  return {extents.begin(), extents.end()};
}

/// Scalar for no dims. HDF5's "unlimited" dims need a chunked layout.
Handle make_space(const Extents& extents, bool is_growable = false) {
  if (extents.empty()) return {H5Screate(H5S_SCALAR), H5Sclose};
  std::vector<hsize_t> current = sizes(extents), maximum = current;
  if (is_growable) maximum[0] = H5S_UNLIMITED;
  return {H5Screate_simple(static_cast<int>(current.size()), current.data(), maximum.data()), H5Sclose};
}

/// Publishing is atomic and files are never changed afterwards, so locks protect nothing; on some file systems they
/// fail. The environment variable HDF5_USE_FILE_LOCKING overrides this inside HDF5.
Handle file_access() {
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_file_locking(access.get(), false, true);
  return access;
}

bool set_layout(hid_t properties, const Extents& extents, const DatasetOptions& options) {
  if (options.chunk.empty() || extents.empty()) return true;
  std::vector<hsize_t> chunk = sizes(options.chunk);
  for (hsize_t& extent : chunk) extent = std::max<hsize_t>(extent, 1);
  if (H5Pset_chunk(properties, static_cast<int>(chunk.size()), chunk.data()) < 0) return false;
  if (options.deflate > 0 && H5Pset_deflate(properties, static_cast<unsigned>(options.deflate)) < 0) return false;
  return !options.checksum || H5Pset_fletcher32(properties) >= 0;
}

Handle link_creation() {
  Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(links.get(), 1);
  return links;
}

/// A scalar has nothing to select.
void select_box(hid_t space, const Extents& origin, const Extents& extents) {
  if (extents.empty()) return;
  std::vector<hsize_t> start = sizes(origin), count = sizes(extents);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
}

std::string box_text(const Extents& origin, const Extents& extents) {
  std::string text;
  for (size_t i = 0; i < origin.size(); ++i) {
    text += fmt::format("{}{}:{}", i ? ", " : "", origin[i], origin[i] + extents[i]);
  }
  return "[" + text + "]";
}

ElementType element_type(hid_t type, bool is_bf16) {
  size_t size = H5Tget_size(type);
  if (H5Tget_class(type) == H5T_FLOAT) return size == 8 ? ElementType::kF64 : ElementType::kF32;
  if (H5Tget_sign(type) == H5T_SGN_2) return size == 8 ? ElementType::kI64 : ElementType::kI32;
  if (size == 2) return is_bf16 ? ElementType::kBF16 : ElementType::kU16;
  return size == 4 ? ElementType::kU32 : ElementType::kU8;
}

bool is_supported(hid_t type) {
  size_t size = H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_FLOAT:
      return size == 4 || size == 8;
    case H5T_INTEGER:
      return H5Tget_sign(type) == H5T_SGN_2 ? size == 4 || size == 8 : size <= 4;
    default:
      return false;
  }
}

Extents extents_of(hid_t space) {
  std::vector<hsize_t> current(static_cast<size_t>(std::max(H5Sget_simple_extent_ndims(space), 0)));
  H5Sget_simple_extent_dims(space, current.data(), nullptr);
  return {current.begin(), current.end()};
}

bool is_inside(const Extents& origin, const Extents& extents, const Extents& whole) {
  if (origin.size() != whole.size() || extents.size() != whole.size()) return false;
  for (size_t i = 0; i < whole.size(); ++i) {
    if (origin[i] < 0 || extents[i] < 0 || origin[i] > whole[i] - extents[i]) return false;
  }
  return true;
}

}  // namespace

Result<Hdf5File> Hdf5File::create(const std::string& path) {
  Lock lock;
  ALTIPLANO_RETURN_IF_ERROR(hdf5::check_versions());
  Hdf5File file;
  file.path_ = path;
  file.error_ = std::make_unique<hdf5::WriteError>();
  Handle access = file_access();
  if (hdf5::use_write_driver(access.get(), file.error_.get()))
    file.file_ = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get());
  if (file.file_ < 0 && file.error_->number != 0)
    return runtime_failure("{}: cannot be created: {}", path, std::strerror(file.error_->number));
  if (file.file_ < 0) return failure(path, "", "created");
  return file;
}

Result<Hdf5File> Hdf5File::open(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))  // HDF5 would wait for a pipe
    return runtime_failure("{}: cannot be opened: {}", path, why_not_readable(path));
  Lock lock;
  ALTIPLANO_RETURN_IF_ERROR(hdf5::check_versions());
  Hdf5File file;
  file.path_ = path;
  Handle access = file_access();
  file.file_ = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get());
  if (file.file_ < 0) return failure(path, "", "opened");
  return file;
}

Hdf5File::Hdf5File(Hdf5File&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      error_(std::move(other.error_)),
      opened_(std::exchange(other.opened_, {})) {}

Hdf5File::Hdf5File() = default;

Hdf5File& Hdf5File::operator=(Hdf5File&& other) noexcept {
  if (this == &other) return *this;
  release();
  path_ = std::move(other.path_);
  file_ = std::exchange(other.file_, -1);
  error_ = std::move(other.error_);
  opened_ = std::exchange(other.opened_, {});
  return *this;
}

Hdf5File::~Hdf5File() {
  release();
}

void Hdf5File::release() noexcept {
  if (file_ < 0) return;
  if (Status status = close(); !status.is_ok()) {
    // Nobody is left to tell: a writer that cares called close() itself; a reader loses nothing.
  }
}

Status Hdf5File::close() {
  Lock lock;
  bool is_good = file_ < 0 || H5Fflush(file_, H5F_SCOPE_LOCAL) >= 0;
  Status status = is_good ? Status::ok() : failure(path_, "", "written");
  for (auto& [name, id] : opened_) {
    if (H5Dclose(id) < 0 && status.is_ok()) status = failure(path_, dataset_text(name), "closed");
  }
  opened_.clear();
  hid_t file = std::exchange(file_, -1);
  if (file >= 0 && H5Fclose(file) < 0 && status.is_ok()) status = failure(path_, "", "closed");
  return status.is_ok() ? check_written() : status;
}

Status Hdf5File::check_written() const {
  if (!error_ || error_->number == 0) return Status::ok();
  return runtime_failure("{}: cannot be written: {}", path_, std::strerror(error_->number));
}

Result<int64_t> Hdf5File::dataset(const std::string& name) const {
  if (auto found = opened_.find(name); found != opened_.end()) return found->second;
  hid_t id = H5Dopen2(file_, name.c_str(), H5P_DEFAULT);
  if (id < 0) return failure(path_, dataset_text(name), "opened");
  opened_[name] = id;
  return int64_t{id};
}

Status Hdf5File::finish_dataset(const std::string& name, ElementType type, int64_t id) {
  if (id < 0) return failure(path_, dataset_text(name), "created");
  opened_[name] = id;
  return type == ElementType::kBF16 ? set_attribute(name, "dtype", std::string("bf16")) : Status::ok();
}

Status Hdf5File::create_dataset(const std::string& name, ElementType type, const Extents& extents,
                                const DatasetOptions& options) {
  Lock lock;
  ALTIPLANO_ASSERT(options.chunk.empty() || options.chunk.size() == extents.size(), "chunk of {} has wrong rank", name);
  Handle space = make_space(extents, options.is_growable);
  Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  if (!set_layout(properties.get(), extents, options)) return failure(path_, dataset_text(name), "laid out");
  return finish_dataset(name, type,
                        H5Dcreate2(file_, name.c_str(), hdf5::file_type(type), space.get(), link_creation().get(),
                                   properties.get(), H5P_DEFAULT));
}

Status Hdf5File::create_virtual_dataset(const std::string& name, ElementType type, const Extents& extents,
                                        const std::vector<VirtualPart>& parts) {
  Lock lock;
  Handle space = make_space(extents);
  Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  for (const VirtualPart& part : parts) {
    Handle target = make_space(extents), source = make_space(part.extents);
    select_box(target.get(), part.origin, part.extents);
    if (H5Pset_virtual(properties.get(), target.get(), part.file.c_str(), part.dataset.c_str(), source.get()) < 0) {
      return failure(path_, dataset_text(name), fmt::format("mapped to {} {}", part.file, part.dataset));
    }
  }
  return finish_dataset(name, type,
                        H5Dcreate2(file_, name.c_str(), hdf5::file_type(type), space.get(), link_creation().get(),
                                   properties.get(), H5P_DEFAULT));
}

Status Hdf5File::grow(const std::string& name, int64_t extent) {
  Lock lock;
  ALTIPLANO_ASSIGN(DatasetInfo described, info(name));
  ALTIPLANO_ASSIGN(hid_t id, dataset(name));
  std::vector<hsize_t> wanted = sizes(described.extents);
  ALTIPLANO_ASSERT(!wanted.empty(), "{} is a scalar", name);
  wanted[0] = static_cast<hsize_t>(extent);
  if (H5Dset_extent(id, wanted.data()) < 0) return failure(path_, dataset_text(name), "extended");
  return Status::ok();
}

Status Hdf5File::transfer(bool is_write, const std::string& name, const Extents& origin, const Extents& extents,
                          const Memory& memory) const {
  Lock lock;
  ALTIPLANO_ASSERT(is_inside(memory.at, extents, memory.extents), "the box of '{}' does not fit its memory", name);
  ALTIPLANO_ASSIGN(DatasetInfo described, info(name));
  if (!is_inside(origin, extents, described.extents)) {
    return runtime_failure("{}: dataset '{}' of extents {} has no box {}", path_, name,
                           box_text(Extents(described.extents.size()), described.extents), box_text(origin, extents));
  }
  if (std::ranges::find(extents, 0) != extents.end()) return Status::ok();
  ALTIPLANO_ASSIGN(hid_t id, dataset(name));
  Handle file_space(H5Dget_space(id), H5Sclose), memory_space = make_space(memory.extents);
  select_box(file_space.get(), origin, extents);
  select_box(memory_space.get(), memory.at, extents);
  hid_t type = hdf5::memory_type(described.type);
  herr_t done = is_write ? H5Dwrite(id, type, memory_space.get(), file_space.get(), H5P_DEFAULT, memory.data)
                         : H5Dread(id, type, memory_space.get(), file_space.get(), H5P_DEFAULT, memory.data);
  if (done >= 0) return is_write ? check_written() : Status::ok();
  return failure(path_, fmt::format("dataset '{}' box {}", name, box_text(origin, extents)),
                 is_write ? "written" : "read");
}

Status Hdf5File::write(const std::string& name, const Extents& origin, const Extents& extents, const void* data) {
  Extents zero(extents.size());
  return transfer(true, name, origin, extents, {const_cast<void*>(data), extents, zero});  // HDF5 only reads it
}

Status Hdf5File::read(const std::string& name, const Extents& origin, const Extents& extents, void* data) const {
  Extents zero(extents.size());
  return transfer(false, name, origin, extents, {data, extents, zero});
}

Status Hdf5File::read_into(const std::string& name, const Extents& origin, const Extents& extents, void* data,
                           const Extents& memory, const Extents& at) const {
  return transfer(false, name, origin, extents, {data, memory, at});
}

Result<DatasetInfo> Hdf5File::info(const std::string& name) const {
  Lock lock;
  ALTIPLANO_ASSIGN(hid_t id, dataset(name));
  Handle type(H5Dget_type(id), H5Tclose), space(H5Dget_space(id), H5Sclose);
  if (!type.is_valid() || !space.is_valid()) return failure(path_, dataset_text(name), "described");
  if (!is_supported(type.get()))
    return runtime_failure("{}: dataset '{}' has an element type not used here", path_, name);
  return DatasetInfo{element_type(type.get(), H5Aexists(id, "dtype") > 0), extents_of(space.get())};
}

Result<int64_t> Hdf5File::data_offset(const std::string& name) const {
  Lock lock;
  ALTIPLANO_ASSIGN(hid_t id, dataset(name));
  haddr_t address = H5Dget_offset(id);
  H5Eclear2(H5E_DEFAULT);
  return address == HADDR_UNDEF ? int64_t{-1} : static_cast<int64_t>(address);
}

bool Hdf5File::has(const std::string& name) const {
  Lock lock;
  if (opened_.contains(name)) return true;
  for (size_t slash = name.find('/', 1); slash != std::string::npos; slash = name.find('/', slash + 1)) {
    if (H5Lexists(file_, name.substr(0, slash).c_str(), H5P_DEFAULT) <= 0) return false;
  }
  return H5Lexists(file_, name.c_str(), H5P_DEFAULT) > 0;
}

Result<std::vector<std::string>> Hdf5File::dataset_names() const {
  Lock lock;
  std::vector<std::string> names;
  auto visit = [](hid_t, const char* name, const H5O_info_t* info, void* out) -> herr_t {
    if (info->type == H5O_TYPE_DATASET) static_cast<std::vector<std::string>*>(out)->push_back(std::string("/") + name);
    return 0;
  };
  if (H5Ovisit2(file_, H5_INDEX_NAME, H5_ITER_INC, visit, &names, H5O_INFO_BASIC) < 0) {
    return failure(path_, "", "listed");
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace altiplano
