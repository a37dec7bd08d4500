#include "framework/checkpoint/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "framework/kernels/element.hpp"

namespace altiplano {
namespace {

using PartsByName = std::map<std::string, const PartRecord*>;

/// One part of each tensor: all know its dtype and shape.
PartsByName parts_by_name(const Manifest& manifest) {
  PartsByName parts;
  for (const ShardRecord& shard : manifest.shards)
    for (const PartRecord& part : shard.parts) parts.try_emplace(part.name, &part);
  return parts;
}

using Facts = std::map<std::string, std::string>;

Facts facts_of(const CheckpointInfo& info) {
  Facts facts = {{"step", std::to_string(info.step)},
                 {"samples_consumed", std::to_string(info.samples_consumed)},
                 {"ranks", std::to_string(info.world_size)},
                 {"attempt", std::to_string(info.attempt)},
                 {"run", info.run_id}};
  for (const auto& [field, value] : info.architecture) facts["model." + field] = value;
  auto state = nlohmann::json::parse(info.state, nullptr, false);
  if (state.is_object())
    for (const auto& [section, value] : state.items())
      for (const auto& [key, text] : value.items())
        facts[key] = text.is_string() ? text.get<std::string>() : text.dump();
  return facts;
}

std::vector<std::string> differing_facts(const Facts& a, const Facts& b) {
  std::set<std::string> keys;
  for (const auto& [key, value] : a) keys.insert(key);
  for (const auto& [key, value] : b) keys.insert(key);
  auto text = [](const Facts& facts, const std::string& key) {
    auto found = facts.find(key);
    return found == facts.end() ? std::string("nothing") : found->second;
  };
  std::vector<std::string> lines;
  for (const std::string& key : keys)
    if (text(a, key) != text(b, key))
      lines.push_back(fmt::format("{}: {} against {}", key, text(a, key), text(b, key)));
  return lines;
}

Result<std::vector<char>> whole_tensor(const Checkpoint& checkpoint, const PartRecord& part) {
  std::vector<char> bytes(static_cast<size_t>(num_elements(part.global) * size_of(part.dtype)));
  TensorTarget target{part.name, part.dtype, part.global, Box::whole(part.global), bytes.data()};
  ALTIPLANO_RETURN_IF_ERROR(checkpoint.restore({&target, 1}));
  return bytes;
}

void compare_values(DType dtype, const std::vector<char>& a, const std::vector<char>& b, TensorDifference& difference) {
  const auto size = static_cast<size_t>(size_of(dtype));
  for (size_t at = 0; at < a.size(); at += size) {
    if (std::memcmp(a.data() + at, b.data() + at, size) == 0) continue;
    ++difference.num_differing;
    const double distance = std::abs(load_element(dtype, a.data() + at) - load_element(dtype, b.data() + at));
    difference.largest =
        std::max(difference.largest, std::isfinite(distance) ? distance : std::numeric_limits<double>::infinity());
  }
}

std::string type_text(const PartRecord& part) {
  return fmt::format("{} {}", to_string(part.dtype), to_string(part.global));
}

/// `second` is nothing when only the first has the tensor.
Result<TensorDifference> compare_tensor(const Checkpoint& a, const Checkpoint& b, const PartRecord& first,
                                        const PartRecord* second) {
  TensorDifference difference;
  difference.name = first.name;
  if (second == nullptr) {
    difference.what = "only in the first";
  } else if (first.dtype != second->dtype || first.global != second->global) {
    difference.what = fmt::format("{} against {}", type_text(first), type_text(*second));
  } else {
    ALTIPLANO_ASSIGN(const std::vector<char> in_a, whole_tensor(a, first));
    ALTIPLANO_ASSIGN(const std::vector<char> in_b, whole_tensor(b, *second));
    compare_values(first.dtype, in_a, in_b, difference);
  }
  return difference;
}

}  // namespace

Result<CheckpointDifference> compare_checkpoints(const Checkpoint& a, const Checkpoint& b) {
  CheckpointDifference result;
  result.facts = differing_facts(facts_of(a.manifest().info), facts_of(b.manifest().info));
  const PartsByName in_a = parts_by_name(a.manifest()), in_b = parts_by_name(b.manifest());
  result.num_tensors = in_a.size();
  for (const auto& [name, part] : in_a) {
    auto found = in_b.find(name);
    ALTIPLANO_ASSIGN(TensorDifference difference,
                     compare_tensor(a, b, *part, found == in_b.end() ? nullptr : found->second));
    if (!difference.what.empty() || difference.num_differing > 0) result.tensors.push_back(std::move(difference));
  }
  for (const auto& [name, part] : in_b) {
    if (in_a.contains(name)) continue;
    ++result.num_tensors;
    result.tensors.push_back({name, "only in the second"});
  }
  return result;
}

}  // namespace altiplano
