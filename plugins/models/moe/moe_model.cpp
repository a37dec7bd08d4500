#include "plugins/models/moe/moe_model.hpp"

#include <cmath>
#include <exception>

#include "framework/graph/builder.hpp"

namespace altiplano::moe {
namespace {

Initializer constant(double value) {
  return {Initializer::Kind::kConstant, value, 0};
}

class MoeWriter {
 public:
  MoeWriter(const MoeConfig& config, const ModelRequest& request) : c_(config), request_(request), b_("moe") {}

  Result<ModelGraph> write() {
    b_.layer("embedding");
    const ValueId tokens = input("tokens");
    ValueId x = embed(tokens);
    for (int64_t i = 0; i < c_.layers; ++i) x = block(i, x);
    b_.layer("head");
    const ValueId labels = input("labels");
    const ValueId weight = c_.tied ? table_ : b_.parameter("head.weight", {c_.vocabulary, c_.hidden}, normal());
    const ValueId logits = b_.matmul("head.logits", "[b,s,d] [v,d] -> [b,s,v]", norm("head.ln", x), weight);
    auto [loss_sum, token_count] = b_.cross_entropy("loss", logits, labels);
    return b_.finish({tokens, labels}, loss_sum, token_count, logits);
  }

 private:
  ValueId input(const char* name) {
    return b_.input(name, {request_.global_batch, request_.sequence_length}, DType::kI32);
  }
  Initializer normal() const { return {Initializer::Kind::kNormal, 0, c_.initializer_range}; }
  /// Projections into the residual stream start smaller, as its variance grows with depth (GPT-2, section 2.3).
  Initializer residual_normal() const {
    return {Initializer::Kind::kNormal, 0, c_.initializer_range / std::sqrt(2.0 * static_cast<double>(c_.layers))};
  }
  ValueId bias(const std::string& name, Shape shape) {
    return b_.parameter(name + ".bias", std::move(shape), constant(0), false);
  }
  ValueId norm(const std::string& name, ValueId x) {
    const ValueId weight = b_.parameter(name + ".weight", {c_.hidden}, constant(1), false);
    return b_.layer_norm(name, x, weight, bias(name, {c_.hidden}), c_.epsilon);
  }
  ValueId linear(const std::string& name, const std::string& equation, ValueId x, Shape weight, Initializer init,
                 Shape bias_shape) {
    const ValueId w = b_.parameter(name + ".weight", std::move(weight), init);
    return b_.add_bias(name, b_.matmul(name + ".product", equation, x, w), bias(name, std::move(bias_shape)));
  }

  ValueId embed(ValueId tokens) {
    table_ = b_.parameter("embedding.token.weight", {c_.vocabulary, c_.hidden}, normal());
    const ValueId positions = b_.parameter("embedding.position.weight", {c_.positions, c_.hidden}, normal());
    const ValueId x = b_.embedding("embedding.token", table_, tokens);
    return b_.add_bias("embedding.sum", x, b_.slice("embedding.position", positions, 0, 0, request_.sequence_length));
  }

  ValueId block(int64_t number, ValueId x) {
    const std::string name = fmt::format("block.{}", number);
    b_.layer(name);
    x = b_.add(name + ".residual1", x, attention(name + ".attention", norm(name + ".ln1", x)));
    const ValueId normed = norm(name + ".ln2", x);
    return b_.add(name + ".residual2", x,
                  number % c_.every == 0 ? experts(name + ".experts", normed) : mlp(name + ".mlp", normed));
  }

  ValueId attention(const std::string& name, ValueId x) {
    const Shape heads{request_.global_batch, request_.sequence_length, c_.heads, c_.head_size};
    const ValueId qkv = linear(name + ".qkv", "[b,s,d] [d,p,h,k] -> [b,s,p,h,k]", x,
                               {c_.hidden, 3, c_.heads, c_.head_size}, normal(), {3, c_.heads, c_.head_size});
    std::vector<ValueId> parts;
    for (int64_t i = 0; i < 3; ++i) {
      const std::string part = fmt::format("{}.{}", name, "qkv"[i]);
      parts.push_back(b_.reshape(part, b_.slice(part + ".slice", qkv, 2, i, 1), heads));
    }
    const ValueId mixed = b_.attention(name + ".core", parts[0], parts[1], parts[2], 0);
    return linear(name + ".out", "[b,s,h,k] [h,k,d] -> [b,s,d]", mixed, {c_.heads, c_.head_size, c_.hidden},
                  residual_normal(), {c_.hidden});
  }

  ValueId mlp(const std::string& name, ValueId x) {
    const ValueId up =
        linear(name + ".up", "[b,s,d] [d,f] -> [b,s,f]", x, {c_.hidden, c_.intermediate}, normal(), {c_.intermediate});
    return linear(name + ".down", "[b,s,f] [f,d] -> [b,s,d]", b_.gelu(name + ".gelu", up), {c_.intermediate, c_.hidden},
                  residual_normal(), {c_.hidden});
  }

  /// Tokens go to their experts and come back weighted; what no expert had room for adds nothing to the stream.
  ValueId experts(const std::string& name, ValueId x) {
    const ValueId router = b_.parameter(name + ".router.weight", {c_.hidden, c_.experts}, normal());
    const ValueId scores = b_.matmul(name + ".scores", "[b,s,d] [d,e] -> [b,s,e]", x, router);
    const ValueId gates = b_.op1("softmax", name + ".gates", {scores});
    const std::vector<ValueId> routes = b_.op("top2_gating", name + ".routes", {gates}, {{"capacity", c_.capacity}});
    if (routes.empty()) return {};
    const ValueId taken = b_.matmul(name + ".dispatch", "[b,s,e,c] [b,s,d] -> [e,b,c,d]", routes[1], x);
    const ValueId up = b_.parameter(name + ".up.weight", {c_.experts, c_.hidden, c_.intermediate}, normal());
    const ValueId down =
        b_.parameter(name + ".down.weight", {c_.experts, c_.intermediate, c_.hidden}, residual_normal());
    const ValueId inner = b_.matmul(name + ".up", "[e,b,c,d] [e,d,f] -> [e,b,c,f]", taken, up);
    const ValueId active = b_.op1("relu", name + ".relu", {inner});
    const ValueId made = b_.matmul(name + ".down", "[e,b,c,f] [e,f,d] -> [e,b,c,d]", active, down);
    return b_.matmul(name + ".combine", "[b,s,e,c] [e,b,c,d] -> [b,s,d]", routes[0], made);
  }

  const MoeConfig& c_;
  const ModelRequest& request_;
  GraphBuilder b_;
  ValueId table_;
};

}  // namespace

Result<ModelGraph> MoeModel::build(const Options& options, const ModelRequest& request) const noexcept {
  try {
    ALTIPLANO_ASSIGN(const MoeConfig config, moe_config(options, request));
    return MoeWriter(config, request).write();
  } catch (const std::exception& error) {
    return runtime_failure("model/moe: {}", error.what());
  }
}

}  // namespace altiplano::moe
