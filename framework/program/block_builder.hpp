#pragma once
// BlockBuilder writes the instructions of one block of one rank: knows which version (spec) of a value lies in which
// buffer, reshards on demand, and at the end lays its work buffers out by lifetime.
#include <map>
#include <optional>

#include "framework/program/lowering_context.hpp"
#include "framework/sharding/reshard.hpp"

namespace altiplano {

/// One tensor to bring from one spec to another inside a block.
struct ReshardItem {
  std::string name;
  Shape shape;  ///< block shape
  DType dtype = DType::kF32;
  ShardingSpec from, to;
  BufferId in;
  BufferId out;                ///< where the result must end up; invalid: anywhere (set on return)
  bool may_overwrite = false;  ///< `in` may be used for the result (gradient accumulators)
};

class BlockBuilder {
 public:
  BlockBuilder(const LoweringContext& context, Program& program, int mesh_index, Block& block);

  BufferId work_buffer(const std::string& name, DType dtype, const std::vector<int64_t>& extents);
  int emit(Instruction instruction);
  int copy(BufferId source, const Box& source_box, BufferId destination, const Box& destination_box, const Box& part,
           bool add, const std::string& label, int64_t source_offset = 0, int64_t destination_offset = 0);

  /// Makes a version of a value known.
  void define(ValueId value, const ShardingSpec& spec, BufferId buffer) { versions_[{value, spec}] = buffer; }
  void forget(ValueId value, const ShardingSpec& spec) { versions_.erase({value, spec}); }
  bool has(ValueId value, const ShardingSpec& spec) const { return versions_.count({value, spec}) != 0; }
  /// The buffer of `value` in `spec`, resharded from the stored version when there is none yet. `out`: where it must
  /// end up.
  BufferId version(ValueId value, const ShardingSpec& stored, const ShardingSpec& spec, BufferId out = BufferId());

  /// Reshards several tensors; those with the same path share their collectives (buckets).
  void reshard(std::vector<ReshardItem*> items);

  /// Lays out work buffers; returns the bytes the block needs of the work arena.
  int64_t finish();

  int mesh_index() const { return mesh_index_; }

 private:
  /// A tensor under way: where it is now and the steps it takes.
  struct Move {
    ReshardItem* item;
    std::vector<ReshardStep> path;
    BufferId at;
    bool is_last(size_t s) const { return s + 1 == path.size(); }
  };
  /// Whether its pieces are exchanged where they lie when it goes alone.
  bool needs_no_packing(const Move& move) const;
  bool is_even(const Move& move, size_t s, const std::vector<int>& members) const;
  void run(std::vector<Move> moves);
  void slice(Move& move, size_t s);
  void to_partial(Move& move, size_t s);
  void all_reduce(std::vector<Move>& moves, size_t s);
  void exchange(std::vector<Move>& moves, size_t s);
  int64_t chunk_elements(const Move& move, size_t s, const std::vector<int>& members) const;
  void pack(const Move& move, size_t s, const std::vector<int>& members, BufferId wire, int64_t offset, int64_t stride);
  void unpack(Move& move, size_t s, const std::vector<int>& members, BufferId wire, int64_t offset, int64_t stride);
  BufferId destination(const Move& move, size_t s);
  std::optional<BufferId> adjacent_range(const std::vector<Move>& moves);
  Box box(const Move& move, const ShardingSpec& spec, int index) const {
    return local_box(spec, move.item->shape, mesh_, index);
  }
  Box mine(const Move& move, const ShardingSpec& spec) const { return box(move, spec, mesh_index_); }

  const LoweringContext& context_;
  Program& program_;
  const MeshShape& mesh_;
  int mesh_index_;
  Block& block_;
  std::map<std::pair<ValueId, ShardingSpec>, BufferId> versions_;
  std::map<BufferId, int> pending_;  ///< buffers an asynchronous instruction still writes or reads
  size_t first_buffer_;              ///< work buffers of this block start here
};

}  // namespace altiplano
