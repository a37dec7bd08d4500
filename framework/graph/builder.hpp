#pragma once
// GraphBuilder: how model plugins write a model, as for one device. Errors are kept and returned once by finish(), so
// that a model reads as a story. Every function takes a name that becomes the op's and its output's unique name.
#include <string>
#include <vector>

#include "framework/graph/training_graph.hpp"

namespace altiplano {

class GraphBuilder {
 public:
  explicit GraphBuilder(std::string model_name);

  void layer(const std::string& name);  ///< ops added from now on belong to it
  ValueId input(const std::string& name, Shape shape, DType dtype);
  ValueId parameter(const std::string& name, Shape shape, Initializer init, bool decay = true);
  /// Frozen parameters take no gradient and no optimizer state. The pattern is a glob over names; returns how many
  /// matched.
  int freeze(const std::string& pattern);

  /// einsum of two operands: equation like "[b,s,d] [d,f] -> [b,s,f]".
  ValueId matmul(const std::string& name, const std::string& equation, ValueId a, ValueId b);
  ValueId add(const std::string& name, ValueId a, ValueId b);          ///< same shape
  ValueId add_bias(const std::string& name, ValueId x, ValueId bias);  ///< bias matches x's last dims
  ValueId gelu(const std::string& name, ValueId x, const std::string& approximate = "tanh");
  ValueId layer_norm(const std::string& name, ValueId x, ValueId weight, ValueId bias, double epsilon = 1e-5);
  ValueId dropout(const std::string& name, ValueId x, double p);  ///< p = 0 returns x itself
  ValueId embedding(const std::string& name, ValueId table, ValueId ids);
  ValueId slice(const std::string& name, ValueId x, int64_t dim, int64_t start, int64_t length);
  ValueId reshape(const std::string& name, ValueId x, Shape shape);
  /// q, k, v [b,s,h,k] -> [b,s,h,k]; causal; `dropout` on the probabilities. With `document_start` [b,s] (i32),
  /// position s sees only the positions from document_start[s] on.
  ValueId attention(const std::string& name, ValueId q, ValueId k, ValueId v, double dropout,
                    ValueId document_start = {});
  /// logits [b,s,v], labels [b,s] (negative: ignored) -> loss sum and valid token count, both f64 scalars.
  std::pair<ValueId, ValueId> cross_entropy(const std::string& name, ValueId logits, ValueId labels);
  /// Any op by kind.
  std::vector<ValueId> op(const std::string& kind, const std::string& name, std::vector<ValueId> inputs,
                          Attributes attributes = {});

  const Graph& graph() const { return graph_; }
  const Status& status() const { return status_; }  ///< the first error so far
  Result<ModelGraph> finish(std::vector<ValueId> inputs, ValueId loss_sum, ValueId token_count, ValueId logits);

  /// The first output of any op.
  ValueId op1(const std::string& kind, const std::string& name, std::vector<ValueId> inputs,
              Attributes attributes = {});

 private:
  ValueId add_source(const std::string& name, Shape shape, DType dtype, Role role);

  Graph graph_;
  LayerId layer_;
  Status status_;
};

}  // namespace altiplano
