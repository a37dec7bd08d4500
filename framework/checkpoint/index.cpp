#include "framework/checkpoint/index.hpp"

#include <map>

#include "framework/checkpoint/element.hpp"
#include "framework/checkpoint/layout.hpp"
#include "framework/storage/atomic_file.hpp"

namespace altiplano {
namespace {

struct IndexedPart {
  const ShardRecord* shard;
  const PartRecord* part;
};
using PartsByTensor = std::map<std::string, std::vector<IndexedPart>>;

PartsByTensor parts_by_tensor(std::span<const ShardRecord> shards) {
  PartsByTensor pieces;
  for (const ShardRecord& shard : shards) {
    for (const PartRecord& part : shard.parts) pieces[part.name].push_back({&shard, &part});
  }
  return pieces;
}

Status check_agreement(const IndexedPart& a, const IndexedPart& b) {
  if (a.part->dtype != b.part->dtype || a.part->global != b.part->global) {
    return runtime_failure("tensor {} is {} {} in {} but {} {} in {}", a.part->name, to_string(a.part->dtype),
                           to_string(a.part->global), a.shard->file, to_string(b.part->dtype),
                           to_string(b.part->global), b.shard->file);
  }
  auto common = intersect(a.part->box, b.part->box);
  if (!common) return Status::ok();
  return runtime_failure("tensor {}: box {} is both in {} and in {}", a.part->name, common->to_string(), a.shard->file,
                         b.shard->file);
}

Status check_tensor(const std::string& name, const std::vector<IndexedPart>& pieces) {
  int64_t held = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    held += pieces[i].part->box.num_elements();
    for (size_t j = 0; j < i; ++j) ALTIPLANO_RETURN_IF_ERROR(check_agreement(pieces[j], pieces[i]));
  }
  int64_t expected = num_elements(pieces[0].part->global);
  if (held == expected) return Status::ok();
  return runtime_failure("tensor {} {}: the shards hold {} of its {} elements", name, to_string(pieces[0].part->global),
                         held, expected);
}

Status copy_scalar(Hdf5File& index, const std::string& folder, const IndexedPart& piece) {
  ALTIPLANO_ASSIGN(Hdf5File shard, Hdf5File::open(folder + "/" + piece.shard->file));
  std::vector<char> value(static_cast<size_t>(size_of(piece.part->dtype)));
  ALTIPLANO_RETURN_IF_ERROR(shard.read(piece.part->dataset, {}, {}, value.data()));
  ALTIPLANO_RETURN_IF_ERROR(index.create_dataset("/" + piece.part->name, element_type_of(piece.part->dtype), {}));
  return index.write("/" + piece.part->name, {}, {}, value.data());
}

Status map_tensor(Hdf5File& index, const std::string& name, const std::vector<IndexedPart>& pieces) {
  std::vector<VirtualPart> parts;
  for (const IndexedPart& piece : pieces) {
    parts.push_back({piece.shard->file, piece.part->dataset, piece.part->box.origin, piece.part->box.extents});
  }
  const PartRecord& first = *pieces[0].part;
  return index.create_virtual_dataset("/" + name, element_type_of(first.dtype), first.global, parts);
}

}  // namespace

Status check_coverage(std::span<const ShardRecord> shards) {
  for (const auto& [name, pieces] : parts_by_tensor(shards)) ALTIPLANO_RETURN_IF_ERROR(check_tensor(name, pieces));
  return Status::ok();
}

Status write_index(const std::string& folder, std::span<const ShardRecord> shards) {
  std::string path = folder + "/" + kIndexName;
  ALTIPLANO_ASSIGN(Hdf5File index, Hdf5File::create(path));
  for (const auto& [name, pieces] : parts_by_tensor(shards)) {
    bool is_scalar = pieces[0].part->global.empty();
    ALTIPLANO_RETURN_IF_ERROR(is_scalar ? copy_scalar(index, folder, pieces[0]) : map_tensor(index, name, pieces));
  }
  ALTIPLANO_RETURN_IF_ERROR(index.close());
  return sync_file(path);
}

}  // namespace altiplano
