#include "framework/sharding/rule.hpp"

#include <algorithm>
#include <set>

#include "framework/base/text.hpp"

namespace altiplano {

namespace {

/// Reads a factor string; positions in messages are columns of the rule text.
class RuleParser {
 public:
  RuleParser(const std::string& text, ShardingRule& rule) : text_(text), rule_(rule) {}

  Status parse() {
    while (peek() == '[') {
      ALTIPLANO_RETURN_IF_ERROR(parse_operand(rule_.inputs));
    }
    if (!take("->")) return fail("expected '->' or '['");
    while (peek() == '[') {
      ALTIPLANO_RETURN_IF_ERROR(parse_operand(rule_.outputs));
    }
    if (rule_.outputs.empty()) return fail("expected an output operand");
    while (peek() != '\0') {
      ALTIPLANO_RETURN_IF_ERROR(parse_clause());
    }
    return Status::ok();
  }

 private:
  Status parse_operand(std::vector<std::vector<std::vector<int>>>& operands) {
    std::vector<std::vector<int>> dims;
    take("[");
    if (!take("]")) {
      do {
        std::vector<int> dim;
        if (take("(")) {
          while (!take(")")) {
            if (peek() == '\0') return fail("expected ')'");
            dim.push_back(factor());
            if (dim.back() < 0) return fail("expected a factor");
          }
        } else {
          dim.push_back(factor());
          if (dim.back() < 0) return fail("expected a factor");
        }
        dims.push_back(std::move(dim));
      } while (take(","));
      if (!take("]")) return fail("expected ',' or ']'");
    }
    operands.push_back(std::move(dims));
    return Status::ok();
  }

  Status parse_clause() {
    if (take("linear")) {
      rule_.linear = true;
      return Status::ok();
    }
    FactorKind kind;
    if (take("sum:"))
      kind = FactorKind::kSum;
    else if (take("max:"))
      kind = FactorKind::kMax;
    else if (take("whole:"))
      kind = FactorKind::kWhole;
    else
      return fail("expected sum:, max:, whole: or linear");
    do {
      size_t known = rule_.factors.size();
      int index = factor();
      if (index < 0 || static_cast<size_t>(index) >= known) return fail("expected a factor of the operands");
      rule_.factors[static_cast<size_t>(index)].kind = kind;
    } while (take(","));
    return Status::ok();
  }

  /// Index of the factor named here, added if it is new; -1 when there is no name.
  int factor() {
    peek();
    size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    if (at_ == start) return -1;
    std::string name = text_.substr(start, at_ - start);
    for (size_t i = 0; i < rule_.factors.size(); ++i)
      if (rule_.factors[i].name == name) return static_cast<int>(i);
    rule_.factors.push_back({name, FactorKind::kParallel, 0});
    return static_cast<int>(rule_.factors.size()) - 1;
  }

  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(std::string_view word) {
    peek();
    if (std::string_view(text_).substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  Status fail(const std::string& what) const {
    return invalid_argument("sharding rule '{}': column {}: {}", text_, at_ + 1, what);
  }

  const std::string& text_;
  ShardingRule& rule_;
  size_t at_ = 0;
};

using Operands = std::vector<std::vector<std::vector<int>>>;

/// Sets factor sizes that follow from one dim; true when something new was learnt.
Result<bool> learn_sizes(ShardingRule& rule, const std::vector<int>& dim, int64_t extent, const std::string& text) {
  int64_t known = 1;
  int unknown = -1, num_unknown = 0;
  for (int f : dim) {
    if (rule.factors[static_cast<size_t>(f)].size > 0) {
      known *= rule.factors[static_cast<size_t>(f)].size;
    } else {
      unknown = f;
      ++num_unknown;
    }
  }
  if (num_unknown > 1) return false;
  if (num_unknown == 0) {
    if (known != extent)
      return invalid_argument("sharding rule '{}': a dim of {} has factors of {}", text, extent, known);
    return false;
  }
  if (extent % known != 0) return invalid_argument("sharding rule '{}': {} is no multiple of {}", text, extent, known);
  rule.factors[static_cast<size_t>(unknown)].size = extent / known;
  return true;
}

Status infer_sizes(ShardingRule& rule, const std::string& text, std::span<const ValueType> inputs,
                   std::span<const ValueType> outputs) {
  bool changed = true;
  while (changed) {
    changed = false;
    auto visit = [&](const Operands& operands, std::span<const ValueType> types) -> Status {
      for (size_t i = 0; i < operands.size(); ++i) {
        for (size_t d = 0; d < operands[i].size(); ++d) {
          ALTIPLANO_ASSIGN(bool learnt, learn_sizes(rule, operands[i][d], types[i].shape[d], text));
          changed = changed || learnt;
        }
      }
      return Status::ok();
    };
    ALTIPLANO_RETURN_IF_ERROR(visit(rule.inputs, inputs));
    ALTIPLANO_RETURN_IF_ERROR(visit(rule.outputs, outputs));
  }
  return Status::ok();
}

Status check_ranks(const std::string& text, const Operands& operands, std::span<const ValueType> types,
                   const char* what) {
  if (operands.size() != types.size())
    return invalid_argument("sharding rule '{}' has {} {}s, the op has {}", text, operands.size(), what, types.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].size() != types[i].shape.size())
      return invalid_argument("sharding rule '{}': {} {} has {} dims, the tensor {} has {}", text, what, i,
                              operands[i].size(), to_string(types[i].shape), types[i].shape.size());
  }
  return Status::ok();
}

std::string operands_text(const ShardingRule& rule, const Operands& operands) {
  std::string text;
  for (const auto& operand : operands) {
    std::vector<std::string> dims;
    for (const auto& dim : operand) {
      std::vector<std::string> names;
      for (int f : dim) names.push_back(rule.factors[static_cast<size_t>(f)].name);
      dims.push_back(dim.size() == 1 ? names[0] : "(" + join(names, " ") + ")");
    }
    text += (text.empty() ? "[" : " [") + join(dims, ",") + "]";
  }
  return text;
}

/// The spec of one operand, or nothing when a split is impossible there. `present` collects the factors that occur.
std::optional<ShardingSpec> operand_spec(const ShardingRule& rule, const std::vector<std::vector<int>>& operand,
                                         const std::map<Axis, int>& factor_of, const MeshShape& mesh,
                                         std::set<int>& present) {
  ShardingSpec spec = ShardingSpec::replicated(operand.size());
  for (size_t d = 0; d < operand.size(); ++d) {
    for (size_t i = 0; i < operand[d].size(); ++i) {
      int f = operand[d][i];
      present.insert(f);
      int64_t degree = 1;
      for (Axis axis : kAllAxes) {
        auto it = factor_of.find(axis);
        if (it == factor_of.end() || it->second != f) continue;
        spec.dims[d].push_back(axis);
        degree *= mesh.degree(axis);
      }
      bool is_composite = operand[d].size() > 1;
      if (degree > 1 && is_composite && (i > 0 || rule.factors[static_cast<size_t>(f)].size % degree != 0))
        return std::nullopt;
    }
  }
  return spec;
}

}  // namespace

Result<ShardingRule> ShardingRule::parse(const std::string& text, std::span<const ValueType> inputs,
                                         std::span<const ValueType> outputs) {
  ShardingRule rule;
  ALTIPLANO_RETURN_IF_ERROR(RuleParser(text, rule).parse());
  ALTIPLANO_RETURN_IF_ERROR(check_ranks(text, rule.inputs, inputs, "input"));
  ALTIPLANO_RETURN_IF_ERROR(check_ranks(text, rule.outputs, outputs, "output"));
  ALTIPLANO_RETURN_IF_ERROR(infer_sizes(rule, text, inputs, outputs));
  return rule;
}

std::string ShardingRule::to_string() const {
  std::string text = operands_text(*this, inputs) + (inputs.empty() ? "-> " : " -> ") + operands_text(*this, outputs);
  for (auto [kind, word] :
       {std::pair{FactorKind::kSum, "sum"}, {FactorKind::kMax, "max"}, {FactorKind::kWhole, "whole"}}) {
    std::vector<std::string> names;
    for (const Factor& factor : factors)
      if (factor.kind == kind) names.push_back(factor.name);
    if (!names.empty()) text += fmt::format("  {}: {}", word, join(names, ","));
  }
  return text + (linear ? "  linear" : "");
}

Result<ShardingRule> rule_of(const Graph& graph, const Op& op) {
  std::vector<ValueType> inputs, outputs;
  for (ValueId id : op.inputs) inputs.push_back({graph.value(id).shape, graph.value(id).dtype});
  for (ValueId id : op.outputs) outputs.push_back({graph.value(id).shape, graph.value(id).dtype});
  auto rule =
      ShardingRule::parse(OpTable::instance().get(op.kind).rule(inputs, outputs, op.attributes), inputs, outputs);
  if (!rule.is_ok())
    return Status(rule.status()).with_context(fmt::format("while reading the rule of {} {}", op.kind, op.name));
  return rule;
}

std::string Strategy::to_string(const ShardingRule& rule) const {
  std::vector<std::string> parts;
  for (const auto& [axis, factor] : factor_of)
    parts.push_back(fmt::format("{}:{}", altiplano::to_string(axis), rule.factors[static_cast<size_t>(factor)].name));
  for (Axis axis : kAllAxes)
    if (linear_partial.contains(axis)) parts.push_back(fmt::format("{}:partial", altiplano::to_string(axis)));
  return parts.empty() ? "-" : join(parts, " ");
}

std::optional<Strategy> make_strategy(const ShardingRule& rule, const std::map<Axis, int>& factor_of,
                                      AxisSet linear_partial, const MeshShape& mesh) {
  Strategy strategy{factor_of, linear_partial, {}, {}};
  if (!linear_partial.is_empty() && (!rule.linear || rule.inputs.empty())) return std::nullopt;
  for (const auto& [axis, f] : factor_of)
    if (linear_partial.contains(axis) || rule.factors[static_cast<size_t>(f)].kind == FactorKind::kWhole)
      return std::nullopt;
  for (const auto& operand : rule.inputs) {
    std::set<int> present;
    auto spec = operand_spec(rule, operand, factor_of, mesh, present);
    if (!spec) return std::nullopt;
    spec->partial = linear_partial;
    strategy.inputs.push_back(std::move(*spec));
  }
  for (const auto& operand : rule.outputs) {
    std::set<int> present;
    auto spec = operand_spec(rule, operand, factor_of, mesh, present);
    if (!spec) return std::nullopt;
    spec->partial = linear_partial;
    bool has_sum = !linear_partial.is_empty(), has_max = false;
    for (const auto& [axis, f] : factor_of) {
      if (present.count(f)) continue;
      FactorKind kind = rule.factors[static_cast<size_t>(f)].kind;
      if (kind == FactorKind::kParallel) return std::nullopt;
      (kind == FactorKind::kSum ? has_sum : has_max) = true;
      spec->partial.insert(axis);
      if (kind == FactorKind::kMax) spec->partial_kind = PartialKind::kMax;
    }
    if (has_sum && has_max) return std::nullopt;
    strategy.outputs.push_back(std::move(*spec));
  }
  return strategy;
}

Result<Strategy> parse_strategy(const std::string& text, const ShardingRule& rule, const MeshShape& mesh) {
  std::map<Axis, int> factor_of;
  AxisSet partial, seen;
  auto refuse = [&](const std::string& why) {
    return invalid_argument("strategy '{}': {}; the rule is {}", text, why, rule.to_string());
  };
  for (const std::string& word : split(text == "-" ? "" : text, ' ')) {
    if (word.empty()) continue;
    const size_t colon = word.find(':');
    const auto axis = axis_from_string(word.substr(0, colon));
    if (colon == std::string::npos || !axis) return refuse(fmt::format("'{}' is no axis:factor", word));
    if (seen.contains(*axis)) return refuse(fmt::format("axis {} stands twice", to_string(*axis)));
    seen.insert(*axis);
    const std::string name = word.substr(colon + 1);
    const auto factor =
        std::find_if(rule.factors.begin(), rule.factors.end(), [&](const Factor& f) { return f.name == name; });
    if (name != "partial" && factor == rule.factors.end()) return refuse(fmt::format("there is no factor {}", name));
    if (mesh.degree(*axis) == 1) continue;
    if (name == "partial")
      partial.insert(*axis);
    else
      factor_of[*axis] = static_cast<int>(factor - rule.factors.begin());
  }
  auto strategy = make_strategy(rule, factor_of, partial, mesh);
  if (!strategy) return refuse(fmt::format("not allowed on mesh {}", mesh.to_string()));
  return std::move(*strategy);
}

std::vector<Strategy> enumerate_strategies(const ShardingRule& rule, const MeshShape& mesh) {
  std::vector<std::pair<std::map<Axis, int>, AxisSet>> partial_choices = {{{}, {}}};
  for (const auto& [axis, degree] : mesh.axes) {
    if (degree == 1) continue;
    auto before = partial_choices;  // the axis stays unused
    for (const auto& [map, partial] : before) {
      for (size_t f = 0; f < rule.factors.size(); ++f) {
        auto with = map;
        with[axis] = static_cast<int>(f);
        partial_choices.emplace_back(std::move(with), partial);
      }
      AxisSet with_partial = partial;
      with_partial.insert(axis);
      partial_choices.emplace_back(map, with_partial);
    }
  }
  std::vector<Strategy> strategies;
  for (const auto& [map, partial] : partial_choices)
    if (auto strategy = make_strategy(rule, map, partial, mesh)) strategies.push_back(std::move(*strategy));
  return strategies;
}

}  // namespace altiplano
