#include "framework/checkpoint/manifest.hpp"

#include <nlohmann/json.hpp>

#include "framework/base/text.hpp"

namespace altiplano {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "altiplano checkpoint";

Json json_of(const FileDigest& digest) {
  return {{"bytes", digest.bytes}, {"xxh3", checksum_text(digest.checksum)}};
}

Json json_of(const PartRecord& part) {
  return {{"name", part.name},       {"role", part.role},         {"dtype", to_string(part.dtype)},
          {"global", part.global},   {"origin", part.box.origin}, {"extents", part.box.extents},
          {"dataset", part.dataset}, {"offset", part.offset},     {"xxh3", checksum_text(part.checksum)}};
}

Json json_of(const ShardRecord& shard) {
  Json json = {{"file", shard.file}};
  json.update(json_of(shard.digest));
  json["parts"] = Json::array();
  for (const PartRecord& part : shard.parts) json["parts"].push_back(json_of(part));
  return json;
}

Json json_of(const CheckpointInfo& info) {
  return {{"step", info.step},
          {"samples_consumed", info.samples_consumed},
          {"world_size", info.world_size},
          {"attempt", info.attempt},
          {"run_id", info.run_id},
          {"model_fingerprint", info.model_fingerprint},
          {"architecture", info.architecture},
          {"plan", info.plan},
          {"state", Json::parse(info.state)}};
}

uint64_t checksum_from(const Json& json) {
  auto value = checksum_from_text(json.at("xxh3").get<std::string>());
  if (!value) throw std::invalid_argument("xxh3 is not 16 hex digits");
  return *value;
}

FileDigest digest_from(const Json& json) {
  return {json.at("bytes").get<int64_t>(), checksum_from(json)};
}

PartRecord part_from(const Json& json) {
  PartRecord part;
  part.name = json.at("name").get<std::string>();
  part.role = json.at("role").get<std::string>();
  auto dtype = dtype_from_string(json.at("dtype").get<std::string>());
  if (!dtype) throw std::invalid_argument("unknown dtype of " + part.name);
  part.dtype = *dtype;
  part.global = json.at("global").get<Shape>();
  part.box = {json.at("origin").get<std::vector<int64_t>>(), json.at("extents").get<std::vector<int64_t>>()};
  if (part.box.origin.size() != part.global.size() || part.box.extents.size() != part.global.size() ||
      !Box::whole(part.global).contains(part.box)) {
    throw std::invalid_argument("a box of " + part.name + " lies outside of it");
  }
  part.dataset = json.at("dataset").get<std::string>();
  part.checksum = checksum_from(json);
  part.offset = json.value("offset", int64_t{-1});
  return part;
}

ShardRecord shard_from(const Json& json) {
  ShardRecord shard;
  shard.file = json.at("file").get<std::string>();
  if (shard.file.find('/') != std::string::npos)
    throw std::invalid_argument("shard file " + shard.file + " is not in the folder");
  shard.digest = digest_from(json);
  for (const Json& part : json.at("parts")) shard.parts.push_back(part_from(part));
  return shard;
}

CheckpointInfo info_from(const Json& json) {
  CheckpointInfo info;
  info.step = json.at("step").get<int64_t>();
  info.samples_consumed = json.at("samples_consumed").get<int64_t>();
  info.world_size = json.at("world_size").get<int>();
  info.attempt = json.value("attempt", int64_t{1});
  info.run_id = json.at("run_id").get<std::string>();
  info.model_fingerprint = json.at("model_fingerprint").get<std::string>();
  info.architecture = json.at("architecture").get<std::map<std::string, std::string>>();
  info.plan = json.at("plan").get<std::string>();
  info.state = json.at("state").dump();
  return info;
}

/// The text the checksum is over: everything but the checksum itself.
std::string canonical(const Json& json) {
  return json.dump(1);
}

Status check_version(const Json& json, const std::string& path) {
  if (json.value("format", "") != kFormat) return runtime_failure("{}: is no checkpoint manifest", path);
  int64_t version = json.value("format_version", int64_t{0});
  if (version == kCheckpointFormatVersion) return Status::ok();
  return runtime_failure("{}: checkpoint format {} written by Altiplano {}, this is {}, which reads format {}", path,
                         version, json.value("written_by", "?"), ALTIPLANO_VERSION, kCheckpointFormatVersion);
}

/// Removes the checksum and compares it with that of the rest.
Status take_checksum(Json& json, const std::string& path) {
  auto stated = json.contains("xxh3") && json["xxh3"].is_string() ? checksum_from_text(json["xxh3"].get<std::string>())
                                                                  : std::nullopt;
  json.erase("xxh3");
  std::string rest = canonical(json);
  if (stated == checksum(rest.data(), rest.size())) return Status::ok();
  return runtime_failure("{}: its checksum does not match: the manifest is damaged", path);
}

Result<Manifest> manifest_from(Json& json, const std::string& path) {
  ALTIPLANO_RETURN_IF_ERROR(check_version(json, path));
  ALTIPLANO_RETURN_IF_ERROR(take_checksum(json, path));
  Manifest manifest;
  manifest.info = info_from(json);
  manifest.written_by = json.at("written_by").get<std::string>();
  manifest.index_file = json.at("index").at("file").get<std::string>();
  manifest.index_digest = digest_from(json.at("index"));
  for (const Json& shard : json.at("shards")) manifest.shards.push_back(shard_from(shard));
  return manifest;
}

/// nlohmann's exceptions stay in this file.
template <typename T, typename Function>
Result<T> parse_with(const std::string& path, Function function) {
  try {
    return function();
  } catch (const std::exception& error) {
    return runtime_failure("{}: damaged: {}", path, error.what());
  }
}

}  // namespace

int64_t Manifest::num_bytes() const {
  int64_t bytes = 0;
  for (const ShardRecord& shard : shards) bytes += shard.digest.bytes;
  return bytes;
}

std::string Manifest::to_json() const {
  Json json = {{"format", kFormat}, {"format_version", kCheckpointFormatVersion}, {"written_by", written_by}};
  json.update(json_of(info));
  json["index"] = {{"file", index_file}};
  json["index"].update(json_of(index_digest));
  json["shards"] = Json::array();
  for (const ShardRecord& shard : shards) json["shards"].push_back(json_of(shard));
  std::string rest = canonical(json);
  json["xxh3"] = checksum_text(checksum(rest.data(), rest.size()));
  return canonical(json) + "\n";
}

Result<Manifest> Manifest::from_json(const std::string& text, const std::string& path) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return runtime_failure("{}: damaged: not JSON, or cut off at {} bytes", path, text.size());
  return parse_with<Manifest>(path, [&] { return manifest_from(json, path); });
}

std::string to_json(const ShardRecord& shard) {
  return json_of(shard).dump(1) + "\n";
}

Result<ShardRecord> shard_from_json(const std::string& text, const std::string& path) {
  return parse_with<ShardRecord>(path, [&] { return shard_from(Json::parse(text)); });
}

Status check_architecture(const CheckpointInfo& saved, const std::string& fingerprint,
                          const std::map<std::string, std::string>& architecture, const FieldPlace& place) {
  if (saved.model_fingerprint == fingerprint) return Status::ok();
  std::map<std::string, std::pair<std::string, std::string>> both;
  for (const auto& [field, value] : saved.architecture) both[field] = {value, "nothing"};
  for (const auto& [field, value] : architecture) {
    auto [entry, is_new] = both.try_emplace(field, "nothing", value);
    if (!is_new) entry->second.second = value;
  }
  std::string list;
  for (const auto& [field, values] : both) {
    if (values.first == values.second) continue;
    list += fmt::format("\n  {}: got {}, expected {}", place ? place(field) : "model." + field, values.second,
                        values.first);
  }
  if (list.empty()) list = "\n  the fingerprints differ though all fields are equal";
  return invalid_argument(
      "the checkpoint of run {} step {} is of another model; go on with its model, or train this one in a run.dir of "
      "its own:{}",
      saved.run_id, saved.step, list);
}

}  // namespace altiplano
