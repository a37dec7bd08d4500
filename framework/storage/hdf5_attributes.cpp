#include "framework/storage/hdf5_detail.hpp"

namespace altiplano {
namespace {

using hdf5::failure;
using hdf5::Handle;
using hdf5::Lock;

std::string attribute_text(const std::string& object, const std::string& key) {
  return fmt::format("attribute '{}' of '{}'", key, object);
}

bool remove_if_present(hid_t file, const std::string& object, const std::string& key) {
  htri_t exists = H5Aexists_by_name(file, object.c_str(), key.c_str(), H5P_DEFAULT);
  return exists == 0 || (exists > 0 && H5Adelete_by_name(file, object.c_str(), key.c_str(), H5P_DEFAULT) >= 0);
}

Status write_attribute(const std::string& path, hid_t file, const std::string& object, const std::string& key,
                       hid_t type, const void* value) {
  if (!remove_if_present(file, object, key)) return failure(path, attribute_text(object, key), "replaced");
  Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  Handle attribute(
      H5Acreate_by_name(file, object.c_str(), key.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
      H5Aclose);
  if (attribute.is_valid() && H5Awrite(attribute.get(), type, value) >= 0) return Status::ok();
  return failure(path, attribute_text(object, key), "written");
}

Handle open_attribute(hid_t file, const std::string& object, const std::string& key) {
  return {H5Aopen_by_name(file, object.c_str(), key.c_str(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose};
}

/// Fixed-length, so that the text is part of the object and needs no global heap. HDF5 has no strings of length 0.
Handle string_type(size_t length) {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), length + 1);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  return type;
}

}  // namespace

Status Hdf5File::set_attribute(const std::string& object, const std::string& key, const std::string& value) {
  Lock lock;
  return write_attribute(path_, file_, object, key, string_type(value.size()).get(), value.c_str());
}

Status Hdf5File::set_attribute(const std::string& object, const std::string& key, int64_t value) {
  Lock lock;
  return write_attribute(path_, file_, object, key, H5T_NATIVE_INT64, &value);
}

Status Hdf5File::set_attribute(const std::string& object, const std::string& key, double value) {
  Lock lock;
  return write_attribute(path_, file_, object, key, H5T_NATIVE_DOUBLE, &value);
}

bool Hdf5File::has_attribute(const std::string& object, const std::string& key) const {
  Lock lock;
  bool exists = H5Aexists_by_name(file_, object.c_str(), key.c_str(), H5P_DEFAULT) > 0;
  H5Eclear2(H5E_DEFAULT);
  return exists;
}

Result<std::string> Hdf5File::string_attribute(const std::string& object, const std::string& key) const {
  Lock lock;
  Handle attribute = open_attribute(file_, object, key);
  if (!attribute.is_valid()) return failure(path_, attribute_text(object, key), "opened");
  Handle type(H5Aget_type(attribute.get()), H5Tclose);
  if (H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) != 0) {
    return runtime_failure("{}: {} is not text of fixed length", path_, attribute_text(object, key));
  }
  std::string value(H5Tget_size(type.get()), '\0');
  if (H5Aread(attribute.get(), type.get(), value.data()) < 0)
    return failure(path_, attribute_text(object, key), "read");
  return std::string(value.c_str());
}

Status Hdf5File::read_number(const std::string& object, const std::string& key, int64_t type, void* value) const {
  Handle attribute = open_attribute(file_, object, key);
  if (!attribute.is_valid()) return failure(path_, attribute_text(object, key), "opened");
  if (H5Aread(attribute.get(), type, value) < 0) return failure(path_, attribute_text(object, key), "read");
  return Status::ok();
}

Result<int64_t> Hdf5File::int_attribute(const std::string& object, const std::string& key) const {
  Lock lock;
  int64_t value = 0;
  ALTIPLANO_RETURN_IF_ERROR(read_number(object, key, H5T_NATIVE_INT64, &value));
  return value;
}

Result<double> Hdf5File::double_attribute(const std::string& object, const std::string& key) const {
  Lock lock;
  double value = 0;
  ALTIPLANO_RETURN_IF_ERROR(read_number(object, key, H5T_NATIVE_DOUBLE, &value));
  return value;
}

}  // namespace altiplano
