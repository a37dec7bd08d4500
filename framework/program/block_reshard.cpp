// BlockBuilder's resharding: how each step of a path becomes copies and collectives. Tensors lie exactly (uneven blocks
// are just shorter); only wire buffers are padded to equal pieces, and padding is never unpacked.
#include <algorithm>

#include "framework/program/arena.hpp"
#include "framework/program/block_builder.hpp"

namespace altiplano {

namespace {

/// Tensors with equal signatures share their collectives.
std::string path_signature(const std::vector<ReshardStep>& path, DType dtype) {
  std::string text = to_string(dtype);
  for (const ReshardStep& step : path) {
    text += fmt::format("/{}", to_string(step.kind));
    for (Axis axis : kAllAxes)
      if (step.axes.contains(axis)) text += fmt::format(" {}", to_string(axis));
    if (!step.before.partial.is_empty() && step.before.partial_kind == PartialKind::kMax) text += " max";
  }
  return text;
}

/// From this size on a tensor whose pieces need no packing is not put into a bucket, which would copy them.
constexpr int64_t kAloneBytes = 256 << 10;

ReduceKind reduce_of(const ReshardStep& step) {
  return step.before.partial_kind == PartialKind::kMax ? ReduceKind::kMax : ReduceKind::kSum;
}

CollectiveKind collective_of(ReshardKind kind) {
  switch (kind) {
    case ReshardKind::kAllGather:
      return CollectiveKind::kAllGather;
    case ReshardKind::kReduceScatter:
      return CollectiveKind::kReduceScatter;
    case ReshardKind::kAllToAll:
      return CollectiveKind::kAllToAll;
    default:
      return CollectiveKind::kAllReduce;
  }
}

/// Whether splitting `whole` along `dim` gives pieces that lie one after the other in memory.
bool splits_contiguously(const Box& whole, int dim) {
  for (int d = 0; d < dim; ++d)
    if (whole.extents[static_cast<size_t>(d)] != 1) return false;
  return true;
}

}  // namespace

void BlockBuilder::reshard(std::vector<ReshardItem*> items) {
  std::map<std::string, std::vector<Move>> by_path;
  std::vector<std::string> order;
  for (ReshardItem* item : items) {
    auto path = reshard_path(item->from, item->to, item->shape, mesh_);
    ALTIPLANO_ASSERT(path.is_ok(), "{}: {}", item->name, path.status().to_string());
    std::string signature = path_signature(*path, item->dtype);
    Move move{item, std::move(*path), item->in};
    if (needs_no_packing(move)) signature += "/alone " + item->name;
    if (!by_path.count(signature)) order.push_back(signature);
    by_path[signature].push_back(std::move(move));
  }
  for (const std::string& signature : order) {
    std::vector<Move> bucket;
    int64_t bytes = 0;
    for (Move& move : by_path[signature]) {
      bytes += num_elements(padded_extents(move.item->from, move.item->shape, mesh_)) *
               size_of(move.item->dtype);  // the same on all ranks
      bucket.push_back(std::move(move));
      if (bytes < context_.options.bucket_bytes) continue;
      run(std::move(bucket));
      bucket.clear();
      bytes = 0;
    }
    if (!bucket.empty()) run(std::move(bucket));
  }
}

bool BlockBuilder::is_even(const Move& move, size_t s, const std::vector<int>& members) const {
  const ReshardStep& step = move.path[s];
  const ShardingSpec& split = step.kind == ReshardKind::kAllGather ? step.before : step.after;
  const int64_t own = mine(move, split).num_elements();
  return std::ranges::all_of(members, [&](int m) { return box(move, split, m).num_elements() == own; });
}

bool BlockBuilder::needs_no_packing(const Move& move) const {
  const ReshardItem& item = *move.item;
  auto elements = [&](const ShardingSpec& spec) { return num_elements(padded_extents(spec, item.shape, mesh_)); };
  if (std::max(elements(item.from), elements(item.to)) * size_of(item.dtype) < kAloneBytes) return false;
  return !move.path.empty() && std::ranges::all_of(move.path, [&](const ReshardStep& step) {
    const auto s = static_cast<size_t>(&step - move.path.data());
    if (step.kind != ReshardKind::kAllGather && step.kind != ReshardKind::kReduceScatter) return false;
    const ShardingSpec& whole = step.kind == ReshardKind::kAllGather ? step.after : step.before;
    return is_even(move, s, mesh_.group(mesh_index_, {step.axis})) && splits_contiguously(mine(move, whole), step.dim);
  });
}

void BlockBuilder::run(std::vector<Move> moves) {
  for (size_t s = 0; s < moves[0].path.size(); ++s) {
    switch (moves[0].path[s].kind) {
      case ReshardKind::kSlice:
        for (Move& move : moves) slice(move, s);
        break;
      case ReshardKind::kToPartial:
        for (Move& move : moves) to_partial(move, s);
        break;
      case ReshardKind::kAllReduce:
        all_reduce(moves, s);
        break;
      default:
        exchange(moves, s);
        break;
    }
  }
  for (Move& move : moves) {
    ReshardItem& item = *move.item;
    if (item.out.is_valid() && item.out != move.at) {
      Box whole = mine(move, normalized(item.to, mesh_));
      copy(move.at, whole, item.out, whole, whole, false, "copy " + item.name);
    } else {
      item.out = move.at;
    }
  }
}

BufferId BlockBuilder::destination(const Move& move, size_t s) {
  if (move.is_last(s) && move.item->out.is_valid()) return move.item->out;
  const ShardingSpec& after = move.path[s].after;
  return work_buffer(move.item->name + " " + after.to_string(), move.item->dtype, mine(move, after).extents);
}

void BlockBuilder::slice(Move& move, size_t s) {
  Box before = mine(move, move.path[s].before), after = mine(move, move.path[s].after);
  BufferId to = destination(move, s);
  copy(move.at, before, to, after, after, false, "slice " + move.item->name);
  move.at = to;
}

void BlockBuilder::to_partial(Move& move, size_t s) {
  if (move.path[s].after.partial_kind == PartialKind::kMax) return;  // a maximum of equals is itself
  auto coordinates = mesh_.coordinates(mesh_index_);
  bool is_first = true;
  for (Axis axis : kAllAxes)
    is_first = is_first && (!move.path[s].axes.contains(axis) || coordinates[static_cast<size_t>(axis)] == 0);
  if (is_first) return;  // it keeps the value as it is
  BufferId to = destination(move, s);
  emit({FillInstruction{to}, StreamKind::kCompute, {}, "to_partial " + move.item->name});
  move.at = to;
}

/// When all tensors lie side by side (a bucket laid out as such), a buffer that covers them all. Ids tell, not offsets:
/// a neighbour that is empty on this rank only would hide that other ranks have something in between.
std::optional<BufferId> BlockBuilder::adjacent_range(const std::vector<Move>& moves) {
  if (moves.size() < 2) return std::nullopt;
  for (size_t i = 0; i < moves.size(); ++i) {
    const Buffer& buffer = program_.buffer(moves[i].at);
    if (buffer.arena != Arena::kPersistent || !moves[i].item->may_overwrite) return std::nullopt;
    if (i > 0 && buffer.id.index() != moves[i - 1].at.index() + 1) return std::nullopt;
  }
  const Buffer& first = program_.buffer(moves.front().at);
  const Buffer& last = program_.buffer(moves.back().at);
  Buffer range = first;
  range.id = BufferId(static_cast<int64_t>(program_.buffers.size()));
  range.name = fmt::format("bucket of {} from {}", moves.size(), first.name);
  range.bytes = last.offset + last.bytes - first.offset;
  range.extents = {range.bytes / size_of(range.dtype)};
  program_.buffers.push_back(range);
  return range.id;
}

void BlockBuilder::all_reduce(std::vector<Move>& moves, size_t s) {
  const ReshardStep& step = moves[0].path[s];
  std::vector<RankId> ranks;
  for (int member : mesh_.group(mesh_index_, step.axes)) ranks.push_back(context_.rank_at(program_.stage, member));
  GroupId group = context_.find_group(ranks);
  auto reduce = [&](BufferId in, BufferId out, const std::string& name) {
    CollectiveInstruction what{CollectiveKind::kAllReduce,
                               reduce_of(step),
                               group,
                               in,
                               out,
                               program_.buffer(in).bytes / size_of(program_.buffer(in).dtype)};
    emit({what, StreamKind::kCollective, {}, "all_reduce " + name});
  };
  if (auto range = adjacent_range(moves)) {
    // The range stands for all its tensors: they are pending together.
    std::string name = program_.buffer(*range).name;
    reduce(*range, *range, name);
    for (Move& move : moves) pending_[move.at] = static_cast<int>(block_.instructions.size()) - 1;
    return;
  }
  for (Move& move : moves) {
    BufferId to =
        move.item->may_overwrite && !(move.is_last(s) && move.item->out.is_valid()) ? move.at : destination(move, s);
    reduce(move.at, to, move.item->name);
    move.at = to;
  }
}

/// Elements of the padded piece that one pair of members exchanges for this tensor.
int64_t BlockBuilder::chunk_elements(const Move& move, size_t s, const std::vector<int>& members) const {
  const ReshardStep& step = move.path[s];
  int64_t chunk = 0;
  for (int member : members) {
    if (step.kind == ReshardKind::kAllGather) chunk = std::max(chunk, box(move, step.before, member).num_elements());
    if (step.kind == ReshardKind::kReduceScatter) chunk = std::max(chunk, box(move, step.after, member).num_elements());
    if (step.kind != ReshardKind::kAllToAll) continue;
    for (int other : members)
      if (auto piece = intersect(box(move, step.before, member), box(move, step.after, other)))
        chunk = std::max(chunk, piece->num_elements());
  }
  return chunk;
}

void BlockBuilder::pack(const Move& move, size_t s, const std::vector<int>& members, BufferId wire, int64_t offset,
                        int64_t stride) {
  const ReshardStep& step = move.path[s];
  Box before = mine(move, step.before);
  for (size_t k = 0; k < members.size(); ++k) {
    if (step.kind == ReshardKind::kAllGather && k > 0) break;  // the same piece goes to everybody
    Box piece = step.kind == ReshardKind::kAllGather ? before : box(move, step.after, members[k]);
    auto part = intersect(before, piece);
    if (!part || part->is_empty()) continue;
    copy(move.at, before, wire, *part, *part, false, "pack " + move.item->name, 0,
         offset + static_cast<int64_t>(k) * stride);
  }
}

void BlockBuilder::unpack(Move& move, size_t s, const std::vector<int>& members, BufferId wire, int64_t offset,
                          int64_t stride) {
  const ReshardStep& step = move.path[s];
  Box after = mine(move, step.after);
  BufferId to = destination(move, s);
  for (size_t k = 0; k < members.size(); ++k) {
    if (step.kind == ReshardKind::kReduceScatter && k > 0) break;  // only the own piece came
    Box piece = step.kind == ReshardKind::kReduceScatter ? after : box(move, step.before, members[k]);
    auto part = intersect(after, piece);
    if (!part || part->is_empty()) continue;
    copy(wire, *part, to, after, *part, false, "unpack " + move.item->name, offset + static_cast<int64_t>(k) * stride,
         0);
  }
  move.at = to;
}

void BlockBuilder::exchange(std::vector<Move>& moves, size_t s) {
  const ReshardStep& step = moves[0].path[s];
  std::vector<int> members = mesh_.group(mesh_index_, {step.axis});
  std::vector<RankId> ranks;
  for (int member : members) ranks.push_back(context_.rank_at(program_.stage, member));
  DType dtype = moves[0].item->dtype;
  auto n = static_cast<int64_t>(members.size());

  std::vector<int64_t> offsets;
  int64_t stride = 0;
  bool is_padded = false;
  for (const Move& move : moves) {
    int64_t chunk = chunk_elements(move, s, members);
    offsets.push_back(stride * size_of(dtype));
    stride += chunk;
    const ShardingSpec& split = step.kind == ReshardKind::kAllGather ? move.path[s].before : move.path[s].after;
    for (int member : members)
      is_padded = is_padded || box(move, split, member).num_elements() != chunk || step.kind == ReshardKind::kAllToAll;
  }
  bool many_in = step.kind != ReshardKind::kAllGather, many_out = step.kind != ReshardKind::kReduceScatter;
  // One tensor whose even pieces lie in order needs no packing on the side that has them all; the other side is a piece
  // already.
  bool is_direct = moves.size() == 1 && !is_padded;
  bool direct_in = is_direct && (!many_in || splits_contiguously(mine(moves[0], step.before), step.dim));
  bool direct_out = is_direct && (!many_out || splits_contiguously(mine(moves[0], step.after), step.dim));
  std::string label = fmt::format("{} {}{}", to_string(step.kind), moves[0].item->name,
                                  moves.size() > 1 ? fmt::format(" and {} more", moves.size() - 1) : "");

  BufferId in = direct_in ? moves[0].at : work_buffer("wire " + label, dtype, {many_in ? n * stride : stride});
  if (!direct_in) {
    if (is_padded || moves.size() > 1) emit({FillInstruction{in}, StreamKind::kCompute, {}, "clear " + label});
    for (size_t i = 0; i < moves.size(); ++i) pack(moves[i], s, members, in, offsets[i], stride * size_of(dtype));
  }
  BufferId out =
      direct_out ? destination(moves[0], s) : work_buffer("wire out " + label, dtype, {many_out ? n * stride : stride});
  CollectiveInstruction what{collective_of(step.kind), reduce_of(step), context_.find_group(ranks), in, out, stride};
  emit({what, StreamKind::kCollective, {}, label});
  if (direct_out) {
    moves[0].at = out;
    return;
  }
  for (size_t i = 0; i < moves.size(); ++i) unpack(moves[i], s, members, out, offsets[i], stride * size_of(dtype));
}

}  // namespace altiplano
