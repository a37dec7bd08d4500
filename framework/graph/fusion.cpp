#include "framework/graph/fusion.hpp"

#include <array>
#include <map>
#include <optional>

#include "framework/graph/op_definition.hpp"

namespace altiplano {
namespace {

/// An op that takes the place of several; `root` is the last of them, whose outputs it produces.
struct Replacement {
  std::string kind;
  std::vector<ValueId> inputs;
  Attributes attributes;
  std::vector<OpId> parts;  ///< ops that are gone, without the root
};

class Fusion {
 public:
  Fusion(const ModelGraph& model, const std::set<std::string>& kinds)
      : model_(model), from_(model.graph), kinds_(kinds), num_uses_(from_.values().size()) {
    for (const Op& op : from_.ops())
      for (ValueId input : op.inputs) ++num_uses_[input.index()];
    for (ValueId kept : {model.loss_sum, model.token_count, model.logits}) ++num_uses_[kept.index()];
  }

  Result<ModelGraph> run() {
    for (const Op& op : from_.ops())
      if (auto found = match(op)) take(op, std::move(*found));
    to_.name = from_.name;
    for (const std::string& layer : from_.layers()) to_.add_layer(layer);
    for (const Value& value : from_.values()) ALTIPLANO_RETURN_IF_ERROR(bring(value));
    for (Parameter parameter : from_.parameters()) {
      parameter.value = now(parameter.value);
      to_.add_parameter(parameter);
    }
    ModelGraph out{std::move(to_), {}, now(model_.loss_sum), now(model_.token_count), now(model_.logits)};
    for (ValueId input : model_.inputs) out.inputs.push_back(now(input));
    return out;
  }

 private:
  void take(const Op& root, Replacement found) {
    for (OpId part : found.parts) gone_.insert(part);
    replaced_.emplace(root.id, std::move(found));
  }

  std::optional<Replacement> match(const Op& op) const {
    std::optional<Replacement> found;
    if (op.kind == "gelu") found = bias_gelu(op);
    if (op.kind == "add") found = residual_add(op);
    if (op.kind == "attention") found = packed_attention(op);
    if (found && !kinds_.count(found->kind)) found.reset();
    return found;
  }

  /// The op of that kind and of `user`'s layer which makes `value` for it alone; nullptr: none.
  const Op* only_producer(const Op& user, ValueId value, const char* kind) const {
    const OpId producer = from_.value(value).producer;
    if (!producer.is_valid() || num_uses_[value.index()] != 1) return nullptr;
    const Op& op = from_.op(producer);
    return op.kind == kind && op.layer == user.layer && op.outputs.size() == 1 ? &op : nullptr;
  }

  std::optional<Replacement> bias_gelu(const Op& gelu) const {
    const Op* biased = only_producer(gelu, gelu.inputs[0], "add_bias");
    if (biased == nullptr) return {};
    return Replacement{"bias_gelu", biased->inputs, gelu.attributes, {biased->id}};
  }

  std::optional<Replacement> residual_add(const Op& add) const {
    for (size_t branch : {1, 0}) {
      const Op* last = only_producer(add, add.inputs[branch], "dropout");
      const ValueId biased_value = last != nullptr ? last->inputs[0] : add.inputs[branch];
      const Op* biased = only_producer(add, biased_value, "add_bias");
      if (biased == nullptr) continue;
      Replacement out{"residual_add", {biased->inputs[0], add.inputs[1 - branch], biased->inputs[1]}, {}, {biased->id}};
      if (last != nullptr) {
        out.attributes = last->attributes;
        out.parts.push_back(last->id);
      }
      return out;
    }
    return {};
  }

  std::optional<Replacement> packed_attention(const Op& attention) const {
    Replacement out{"packed_attention", {}, attention.attributes, {}};
    ValueId qkv;
    for (size_t i = 0; i < 3; ++i) {
      const Op* reshape = only_producer(attention, attention.inputs[i], "reshape");
      const Op* slice = reshape != nullptr ? only_producer(attention, reshape->inputs[0], "slice") : nullptr;
      if (slice == nullptr || !is_part(*slice, static_cast<int64_t>(i), from_.value(attention.inputs[i]).shape))
        return {};
      if (i > 0 && slice->inputs[0] != qkv) return {};
      qkv = slice->inputs[0];
      out.parts.insert(out.parts.end(), {reshape->id, slice->id});
    }
    out.inputs = {qkv};
    if (attention.inputs.size() > 3) out.inputs.push_back(attention.inputs[3]);
    return out;
  }

  /// Whether it takes part i of [b,s,3,h,k], which the reshape sees as [b,s,h,k].
  bool is_part(const Op& slice, int64_t i, const Shape& head) const {
    const Attributes& a = slice.attributes;
    return a.get_int("dim") == 2 && a.get_int("start") == i && a.get_int("length") == 1 &&
           from_.value(slice.inputs[0]).shape == Shape{head[0], head[1], 3, head[2], head[3]};
  }

  ValueId now(ValueId before) const { return new_ids_.at(before); }

  Status bring(const Value& value) {
    if (!value.producer.is_valid()) {
      new_ids_[value.id] = to_.add_value(value.name, value.shape, value.dtype, value.role, value.layer);
      return Status::ok();
    }
    const Op& op = from_.op(value.producer);
    if (gone_.count(op.id) || value.id != op.outputs[0]) return Status::ok();  // an op brings all its outputs
    auto replaced = replaced_.find(op.id);
    const bool is_same = replaced == replaced_.end();
    std::vector<ValueId> inputs;
    for (ValueId input : is_same ? op.inputs : replaced->second.inputs) inputs.push_back(now(input));
    ALTIPLANO_ASSIGN(auto outputs,
                     to_.add_op(is_same ? op.kind : replaced->second.kind, op.name, std::move(inputs),
                                is_same ? op.attributes : replaced->second.attributes, op.layer, op.phase));
    for (size_t i = 0; i < outputs.size(); ++i) {
      to_.value(outputs[i]).role = from_.value(op.outputs[i]).role;
      new_ids_[op.outputs[i]] = outputs[i];
    }
    return Status::ok();
  }

  const ModelGraph& model_;
  const Graph& from_;
  const std::set<std::string>& kinds_;
  std::vector<int> num_uses_;
  std::set<OpId> gone_;
  std::map<OpId, Replacement> replaced_;
  Graph to_;
  std::map<ValueId, ValueId> new_ids_;
};

}  // namespace

Result<ModelGraph> fuse(const ModelGraph& model, const std::set<std::string>& kinds) {
  return Fusion(model, kinds).run();
}

}  // namespace altiplano
