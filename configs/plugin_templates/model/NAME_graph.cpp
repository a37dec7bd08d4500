#include "@name@_graph.hpp"

#include "framework/graph/builder.hpp"

namespace @name@_plugin {

using namespace altiplano;

/// x + down(gelu(up(norm(x)))): each position by itself.
static ValueId block(GraphBuilder& b, const std::string& name, const Config& config, ValueId x) {
  const Initializer normal{Initializer::Kind::kNormal, 0, 0.02}, ones{Initializer::Kind::kConstant, 1, 0}, zeros{};
  const int64_t hidden = config.hidden, wide = 4 * config.hidden;
  b.layer(name);
  const ValueId weight = b.parameter(name + ".ln.weight", {hidden}, ones, false);
  const ValueId bias = b.parameter(name + ".ln.bias", {hidden}, zeros, false);
  const ValueId up = b.parameter(name + ".up.weight", {hidden, wide}, normal);
  const ValueId down = b.parameter(name + ".down.weight", {wide, hidden}, normal);
  const ValueId normed = b.layer_norm(name + ".ln", x, weight, bias);
  const ValueId active = b.gelu(name + ".gelu", b.matmul(name + ".up", "[b,s,d] [d,f] -> [b,s,f]", normed, up));
  return b.add(name + ".residual", x, b.matmul(name + ".down", "[b,s,f] [f,d] -> [b,s,d]", active, down));
}

Result<ModelGraph> build_graph(const Config& config, const ModelRequest& request) {
  if (request.global_batch < 1 || request.sequence_length < 1)
    return invalid_argument("model/@name@: a batch of {} sequences of {} tokens; both must be at least 1",
                            request.global_batch, request.sequence_length);
  const Shape ids{request.global_batch, request.sequence_length};
  GraphBuilder b("@name@");
  b.layer("embedding");
  const ValueId tokens = b.input("tokens", ids, DType::kI32);
  const ValueId table = b.parameter("embedding.weight", {config.vocabulary, config.hidden},
                                    {Initializer::Kind::kNormal, 0, 0.02});
  ValueId x = b.embedding("embedding", table, tokens);
  for (int64_t i = 0; i < config.layers; ++i) x = block(b, fmt::format("block.{}", i), config, x);
  b.layer("head");
  const ValueId labels = b.input("labels", ids, DType::kI32);
  const ValueId logits = b.matmul("head.logits", "[b,s,d] [v,d] -> [b,s,v]", x, table);
  const auto [loss_sum, token_count] = b.cross_entropy("loss", logits, labels);
  return b.finish({tokens, labels}, loss_sum, token_count, logits);
}

}  // namespace @name@_plugin
