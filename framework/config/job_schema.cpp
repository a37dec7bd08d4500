#include "framework/config/job_schema.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "framework/base/text.hpp"
#include "framework/config/job_config.hpp"

namespace altiplano {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kIntegerText = "^[+-]?[0-9][0-9_]*([eE][+]?[0-9]+)?$";
constexpr const char* kNumberText = "^[+-]?([0-9][0-9_]*)?\\.?[0-9_]*([eE][+-]?[0-9]+)?$";

void add_bounds(Json& schema, const OptionRecord& record) {
  auto put = [&](const char* name, double bound) {
    if (std::trunc(bound) == bound && std::abs(bound) < 9e15)
      schema[name] = static_cast<int64_t>(bound);
    else
      schema[name] = bound;
  };
  if (std::isfinite(record.minimum)) put("minimum", record.minimum);
  if (std::isfinite(record.maximum)) put(record.below_maximum ? "exclusiveMaximum" : "maximum", record.maximum);
}

/// One scalar of the type, in each form that the reader takes.
Json scalar_forms(const OptionRecord& record, const char* json_type, const char* text_pattern) {
  Json number = {{"type", json_type}};
  add_bounds(number, record);
  return {number, {{"type", "string"}, {"pattern", text_pattern}}};
}

/// A path, or a list of paths and {path, weight}.
Json files_forms() {
  Json path = {{"type", "string"}};
  Json weighted = {{"type", "object"},
                   {"properties", {{"path", path}, {"weight", {{"type", {"number", "string"}}}}}},
                   {"required", Json::array({"path"})},
                   {"additionalProperties", false}};
  Json list = {{"type", "array"}, {"minItems", 1}, {"items", {{"anyOf", {path, weighted}}}}};
  return Json::array({path, list});
}

Json forms_of(const OptionRecord& record) {
  switch (record.type) {
    case OptionType::kBool:
      return {{{"type", "boolean"}}};
    case OptionType::kInt:
      return scalar_forms(record, "integer", kIntegerText);
    case OptionType::kFloat:
      return scalar_forms(record, "number", kNumberText);
    case OptionType::kString:
      if (!record.choices.empty()) return {{{"enum", record.choices}}};
      return {{{"type", {"string", "number", "boolean"}}}};
    case OptionType::kFiles:
      return files_forms();
    case OptionType::kStringMap:
      return {{{"type", "object"}, {"additionalProperties", {{"type", "string"}}}}};
    default:
      break;
  }
  OptionRecord element = record;
  element.type = record.type == OptionType::kIntList     ? OptionType::kInt
                 : record.type == OptionType::kFloatList ? OptionType::kFloat
                                                         : OptionType::kString;
  Json list = {{"type", "array"}, {"items", {{"anyOf", forms_of(element)}}}};
  if (record.list_length > 0) list["minItems"] = list["maxItems"] = record.list_length;
  return Json::array({list});
}

Json default_of(const OptionRecord& record) {
  return std::visit(
      [](const auto& value) -> Json {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::monostate>) return "auto";
        if constexpr (std::is_same_v<Value, StringMap> || std::is_same_v<Value, std::vector<WeightedFile>>)
          return Json::object();
        else if constexpr (!std::is_same_v<Value, std::monostate>)
          return value;
      },
      record.default_value);
}

Json schema_of(const OptionRecord& record, const std::string& note = {}) {
  Json forms = forms_of(record);
  if (record.allow_auto) forms.push_back({{"const", "auto"}});
  if (record.type != OptionType::kStringMap) forms.push_back({{"type", "string"}, {"pattern", "\\$|^~"}});
  Json schema = {{"description", note.empty() ? record.help : note + record.help}};
  bool has_default = !std::holds_alternative<std::monostate>(record.default_value) || record.allow_auto;
  if (has_default && note.empty()) schema["default"] = default_of(record);
  schema["anyOf"] = std::move(forms);
  return schema;
}

/// An object with its properties, strict.
Json& object_at(Json& parent, const std::string& name) {
  Json& child = parent["properties"][name];
  if (child.is_null()) child = {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
  return child;
}

/// Puts `schema` at a dotted path, as nested objects; what stands there is kept.
void put_at(Json& root, const std::string& path, const Json& schema) {
  Json* at = &root;
  auto parts = split(path, '.');
  for (size_t i = 0; i + 1 < parts.size(); ++i) at = &object_at(*at, parts[i]);
  Json& place = (*at)["properties"][parts.back()];
  if (place.is_null())
    place = schema;
  else if (place.contains("type") && place["type"] == "object")
    place = {{"anyOf", {place, schema}}};  // a section that may be one word
}

/// The same within each section on the way, where the rest of the key may be dotted: data: {validation.fraction: …}.
void put_dotted(Json& root, const std::string& path, const Json& schema) {
  Json* at = &root;
  for (size_t begin = 0, dot = path.find('.'); dot != std::string::npos; begin = dot + 1, dot = path.find('.', begin)) {
    (*at)["properties"][path.substr(begin)] = schema;
    at = &object_at(*at, path.substr(begin, dot - begin));
  }
}

void put_record(Json& root, const OptionRecord& record) {
  put_at(root, record.key, schema_of(record));
  put_dotted(root, record.key, schema_of(record));
  for (const auto& alias : record.aliases) put_at(root, alias, schema_of(record, "Read as " + record.key + ". "));
}

/// Names of other systems with their values; those inside of our sections first, so that "optimizer.type" is found.
void put_foreign(Json& root, const ForeignKey& foreign, const OptionRecord& record) {
  Json schema = schema_of(record, fmt::format("{}'s name of {}. ", foreign.tool, record.key));
  for (const auto& [theirs, ours] : foreign.values) {
    schema["anyOf"].push_back({{"const", theirs}});
    if (theirs == "true" || theirs == "false") schema["anyOf"].push_back({{"const", theirs == "true"}});
  }
  if (foreign.name.find('.') != std::string::npos) return put_at(root, foreign.name, schema);
  Json& top = root["properties"][foreign.name];
  if (top.is_null()) {
    top = schema;
  } else if (top.contains("type") && top["type"] == "object") {
    top = {{"anyOf", {top, schema}}};
  }
  put_at(root, record.key.substr(0, record.key.find('.')) + "." + foreign.name, schema);
}

/// Nested or dotted, a required key must be there.
Json requirement(const std::string& key) {
  const std::string section = key.substr(0, key.find('.')), word = key.substr(key.find('.') + 1);
  Json nested = {{"required", {section}}, {"properties", {{section, {{"required", {word}}}}}}};
  return {{"anyOf", {nested, {{"required", {key}}}}}};
}

std::vector<OptionRecord> with_models(const std::vector<OptionRecord>& records,
                                      const std::map<std::string, std::vector<OptionRecord>>& models) {
  std::vector<OptionRecord> all = records;
  for (auto& record : all)
    if (record.key == "model.kind")
      for (const auto& [kind, own] : models) record.choices.push_back(kind);
  for (const auto& [kind, own] : models)
    for (auto& record : with_section("model", own)) {
      bool known = std::ranges::any_of(all, [&](const OptionRecord& other) { return other.key == record.key; });
      if (!known) all.push_back(std::move(record));
    }
  return all;
}

}  // namespace

std::string job_schema(const std::vector<OptionRecord>& records,
                       const std::map<std::string, std::vector<OptionRecord>>& models,
                       const std::vector<Shorthand>& shorthands, const std::vector<ForeignKey>& foreign) {
  Json root = {{"$schema", "http://json-schema.org/draft-07/schema#"},
               {"title", "Altiplano job file"},
               {"type", "object"},
               {"properties", Json::object()},
               {"additionalProperties", false}};
  const std::vector<OptionRecord> all = with_models(records, models);
  auto find = [&](const std::string& key) { return std::ranges::find(all, key, &OptionRecord::key); };
  for (const auto& record : all) put_record(root, record);
  for (const auto& shorthand : shorthands) {
    put_at(root, shorthand.key, schema_of(*find(shorthand.targets[0])));
    root["properties"][shorthand.key] = schema_of(*find(shorthand.targets[0]));
  }
  for (const auto& key : foreign)
    if (auto record = find(key.key); record != all.end()) put_foreign(root, key, *record);
  root["allOf"] = Json::array();
  for (const auto& record : all)
    if (record.required) root["allOf"].push_back(requirement(record.key));
  return root.dump(2) + "\n";
}

}  // namespace altiplano
