#pragma once
// RankLowering writes the Program of one rank, block by block.
#include <span>

#include "framework/program/block_builder.hpp"

namespace altiplano {

class RankLowering {
 public:
  RankLowering(const LoweringContext& context, StageId stage, int mesh_index);
  Result<Program> run();

  /// Keeps the messages of one transfer apart that may be under way at the same time.
  enum class TagKind : uint8_t { kForward, kBackward, kValidate, kTied };

 private:
  /// A received piece on its way into a tensor.
  struct Arrival {
    std::string name;
    Box piece, whole;
    BufferId wire, into;
  };
  /// What an op adds to a parameter's gradient, as it was produced.
  struct Contribution {
    ValueId value;
    BufferId buffer;
  };
  // Persistent and stash memory.
  BufferId persistent(const std::string& name, DType dtype, const std::vector<int64_t>& extents);
  void add_tensor(const std::string& name, TensorRole role, BufferId buffer, const Shape& global,
                  const ShardingSpec& spec, bool is_home, Initializer init = {});
  void make_parameters();
  /// ZeRO stage 2: every contribution to a gradient, not their sum once a step.
  bool reduces_at_once() const { return context_.plan.stages[program_.stage.index()].zero >= 2; }
  ShardingSpec accumulator_spec(const ParameterTraining& training, ValueId contribution) const;
  void make_accumulators();
  void make_optimizer_state();
  void make_send_buffers();
  void make_stash();

  // Blocks.
  Block& open_block(const std::string& name, ActionKind kind, MicrobatchVariant variant);
  void write_forward(ActionKind kind);
  void write_backward(MicrobatchVariant variant);
  void write_reduce();
  void write_update();
  Status close_block(BlockBuilder& builder, Block& block);

  // Parts of blocks.
  void define_parameters(BlockBuilder& builder);
  void feed_inputs(BlockBuilder& builder, bool stash);
  void receive(BlockBuilder& builder, const std::vector<StageTransfer>& transfers, bool stash, TagKind kind);
  void send(BlockBuilder& builder, const std::vector<StageTransfer>& transfers, ValueId value, TagKind kind);
  void send_pieces(BlockBuilder& builder, const StageTransfer& transfer, BufferId from, TagKind kind);
  void post_receives(BlockBuilder& builder, const StageTransfer& transfer, TagKind kind, BufferId into,
                     std::vector<Arrival>& arrivals);
  void place(BlockBuilder& builder, const Arrival& arrival, bool add);
  void run_layers(BlockBuilder& builder, Phase phase, bool stash, MicrobatchVariant variant,
                  const std::vector<StageTransfer>& transfers, TagKind tag);
  std::vector<std::pair<ValueId, ShardingSpec>> gather_parameters(BlockBuilder& builder,
                                                                  std::span<const Op* const> ops);
  void run_op(BlockBuilder& builder, const Op& op, bool stash, MicrobatchVariant variant,
              std::vector<Contribution>& contributions);
  bool assigns_accumulator(ValueId contribution, MicrobatchVariant variant) const;
  BufferId output_buffer(BlockBuilder& builder, ValueId value, bool stash, MicrobatchVariant variant);
  void accumulate(BlockBuilder& builder, std::vector<Contribution>& contributions, MicrobatchVariant variant);
  void add_totals(BlockBuilder& builder, ValueId scalar, Total total);
  void reduce_totals(BlockBuilder& builder);
  void exchange_tied_gradients(BlockBuilder& builder, std::map<ValueId, BufferId>& reduced);
  void update_parameters(BlockBuilder& builder, const std::map<ValueId, BufferId>& reduced);
  void send_tied_parameters(BlockBuilder& builder);
  void emit_compute(BlockBuilder& builder, const Op& op, const std::vector<BufferId>& inputs,
                    const std::vector<BufferId>& outputs);
  Operand operand(ValueId value, BufferId buffer, const ShardingSpec& spec) const;
  void fill_step();

  bool is_first_along(const ShardingSpec& spec) const;
  const ShardingSpec& stored(ValueId value) const { return context_.assignment.stored[value.index()]; }
  const MeshShape& mesh() const { return context_.mesh(program_.stage); }

  const LoweringContext& context_;
  const Graph& graph_;
  int mesh_index_;
  RankId rank_;
  Program program_;
  int64_t work_bytes_ = 0;
  Status status_;
  std::map<ValueId, BufferId> parameter_buffers_, state_buffers_, accumulators_, stash_buffers_;
  std::map<ValueId, ShardingSpec> accumulator_specs_;
  std::map<ValueId, ValueId> parameter_of_contribution_;
  std::map<std::pair<TagKind, uint64_t>, BufferId> send_buffers_;  ///< by kind and tag
  BufferId totals_;
};

}  // namespace altiplano
