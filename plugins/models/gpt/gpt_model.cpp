#include "plugins/models/gpt/gpt_model.hpp"

#include <cmath>
#include <exception>

#include "framework/graph/builder.hpp"

namespace altiplano::gpt {
namespace {

Initializer constant(double value) {
  return {Initializer::Kind::kConstant, value, 0};
}

class GptWriter {
 public:
  GptWriter(const GptConfig& config, const ModelRequest& request) : c_(config), request_(request), b_("gpt") {}

  Result<ModelGraph> write() {
    b_.layer("embedding");
    ValueId tokens = input("tokens");
    std::vector<ValueId> inputs = {tokens};
    if (request_.separates_documents) inputs.push_back(document_start_ = input(kDocumentStartInput));
    if (request_.restarts_positions) inputs.push_back(positions_ = input(kPositionsInput));
    ValueId x = embed(tokens);
    for (int64_t i = 0; i < c_.layers; ++i) x = block(fmt::format("block.{}", i), x);
    b_.layer("head");
    ValueId labels = input("labels");
    inputs.insert(inputs.begin() + 1, labels);
    ValueId logits = head(x);
    auto [loss_sum, token_count] = b_.cross_entropy("loss", logits, labels);
    ALTIPLANO_RETURN_IF_ERROR(freeze());
    return b_.finish(std::move(inputs), loss_sum, token_count, logits);
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
    ValueId weight = b_.parameter(name + ".weight", {c_.hidden}, constant(1), false);
    return b_.layer_norm(name, x, weight, bias(name, {c_.hidden}), c_.epsilon);
  }

  /// x W + bias; the product is named `name`.product, the sum `name`.
  ValueId linear(const std::string& name, const std::string& equation, ValueId x, Shape weight, Initializer init,
                 Shape bias_shape) {
    ValueId w = b_.parameter(name + ".weight", std::move(weight), init);
    ValueId product = b_.matmul(name + ".product", equation, x, w);
    return b_.add_bias(name, product, bias(name, std::move(bias_shape)));
  }

  ValueId embed(ValueId tokens) {
    table_ = b_.parameter("embedding.token.weight", {c_.vocabulary, c_.hidden}, normal());
    ValueId positions = b_.parameter("embedding.position.weight", {c_.positions, c_.hidden}, normal());
    ValueId x = b_.embedding("embedding.token", table_, tokens);
    // Looked up or added, the rows come from a slice, which keeps the table whole on every rank.
    const std::string name = positions_.is_valid() ? "embedding.position.rows" : "embedding.position";
    ValueId rows = b_.slice(name, positions, 0, 0, request_.sequence_length);
    ValueId sum = positions_.is_valid()
                      ? b_.add("embedding.sum", x, b_.embedding("embedding.position", rows, positions_))
                      : b_.add_bias("embedding.sum", x, rows);
    return b_.dropout("embedding.dropout", sum, c_.embedding_dropout);
  }

  ValueId block(const std::string& name, ValueId x) {
    b_.layer(name);
    ValueId attended = attention(name + ".attention", norm(name + ".ln1", x));
    x = b_.add(name + ".residual1", x, b_.dropout(name + ".attention.dropout", attended, c_.residual_dropout));
    ValueId transformed = mlp(name + ".mlp", norm(name + ".ln2", x));
    return b_.add(name + ".residual2", x, b_.dropout(name + ".mlp.dropout", transformed, c_.residual_dropout));
  }

  ValueId attention(const std::string& name, ValueId x) {
    const Shape heads{request_.global_batch, request_.sequence_length, c_.heads, c_.head_size};
    ValueId qkv = linear(name + ".qkv", "[b,s,d] [d,p,h,k] -> [b,s,p,h,k]", x, {c_.hidden, 3, c_.heads, c_.head_size},
                         normal(), {3, c_.heads, c_.head_size});
    std::vector<ValueId> parts;
    for (int64_t i = 0; i < 3; ++i) {
      std::string part = fmt::format("{}.{}", name, "qkv"[i]);
      parts.push_back(b_.reshape(part, b_.slice(part + ".slice", qkv, 2, i, 1), heads));
    }
    ValueId mixed = b_.attention(name + ".core", parts[0], parts[1], parts[2], c_.attention_dropout, document_start_);
    return linear(name + ".out", "[b,s,h,k] [h,k,d] -> [b,s,d]", mixed, {c_.heads, c_.head_size, c_.hidden},
                  residual_normal(), {c_.hidden});
  }

  ValueId mlp(const std::string& name, ValueId x) {
    ValueId up =
        linear(name + ".up", "[b,s,d] [d,f] -> [b,s,f]", x, {c_.hidden, c_.intermediate}, normal(), {c_.intermediate});
    ValueId active = b_.gelu(name + ".gelu", up, c_.gelu_form);
    return linear(name + ".down", "[b,s,f] [f,d] -> [b,s,d]", active, {c_.intermediate, c_.hidden}, residual_normal(),
                  {c_.hidden});
  }

  ValueId head(ValueId x) {
    ValueId normed = norm("head.ln", x);
    ValueId weight = c_.tied ? table_ : b_.parameter("head.weight", {c_.vocabulary, c_.hidden}, normal());
    return b_.matmul("head.logits", "[b,s,d] [v,d] -> [b,s,v]", normed, weight);
  }

  Status freeze() {
    if (!b_.status().is_ok()) return Status::ok();  // finish() tells
    for (const auto& [pattern, where] : c_.frozen)
      if (b_.freeze(pattern) == 0)
        return invalid_argument(
            "{}: '{}' matches no parameter; names are as in block.0.attention.qkv.weight, embedding.token.weight",
            where, pattern);
    return Status::ok();
  }

  const GptConfig& c_;
  const ModelRequest& request_;
  GraphBuilder b_;
  ValueId table_, document_start_, positions_;
};

}  // namespace

Result<ModelGraph> GptModel::build(const Options& options, const ModelRequest& request) const noexcept {
  try {
    ALTIPLANO_ASSIGN(GptConfig config, gpt_config(options, request));
    return GptWriter(config, request).write();
  } catch (const std::exception& error) {
    return runtime_failure("model/gpt: {}", error.what());
  }
}

}  // namespace altiplano::gpt
