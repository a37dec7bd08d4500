// RankLowering: pieces of tensors to and from other stages.
#include "framework/program/rank_lowering.hpp"

namespace altiplano {

namespace {

/// A transfer's tags, apart by kind; the microbatch is added at run time (below 2^20).
uint64_t wire_tag(uint64_t tag, RankLowering::TagKind kind) {
  return (tag << 24) | (static_cast<uint64_t>(kind) << 20);
}

}  // namespace

void RankLowering::make_send_buffers() {
  auto make = [&](const std::vector<StageTransfer>& transfers, std::vector<TagKind> kinds) {
    for (const StageTransfer& transfer : transfers) {
      for (size_t i = 0; i < transfer.pieces.size(); ++i) {
        if (transfer.pieces[i].source != rank_.value) continue;
        BufferId buffer =
            persistent(fmt::format("send {} to {}", graph_.value(transfer.value).name, transfer.pieces[i].destination),
                       transfer.dtype, transfer.pieces[i].box.extents);
        for (TagKind kind : kinds) send_buffers_[{kind, transfer.first_tag + i}] = buffer;
      }
    }
  };
  make(context_.forward, {TagKind::kForward, TagKind::kValidate});
  make(context_.backward, {TagKind::kBackward});
  make(context_.gradients, {TagKind::kTied});
  make(context_.parameters, {TagKind::kTied});
}

/// Each piece is packed into a send buffer of its own, which is free again once its last message was taken.
void RankLowering::send_pieces(BlockBuilder& builder, const StageTransfer& transfer, BufferId from, TagKind kind) {
  Box whole = local_box(normalized(transfer.from_spec, mesh()), transfer.shape, mesh(), mesh_index_);
  for (size_t i = 0; i < transfer.pieces.size(); ++i) {
    const BoxTransfer& piece = transfer.pieces[i];
    if (piece.source != rank_.value) continue;
    BufferId wire = send_buffers_.at({kind, transfer.first_tag + i});
    std::string label = fmt::format("send {} {}", graph_.value(transfer.value).name, piece.box.to_string());
    builder.emit({WaitSendInstruction{wire}, StreamKind::kTransfer, {}, "wait for " + label});
    builder.copy(from, whole, wire, piece.box, piece.box, false, "pack " + label);
    SendInstruction what{RankId(piece.destination), wire, wire_tag(transfer.first_tag + i, kind),
                         wire_tag(transfer.first_tag, kind)};
    builder.emit({what, StreamKind::kTransfer, {}, label});
  }
}

/// A piece that is all of the destination arrives there directly, others in a buffer from which place() takes them.
void RankLowering::post_receives(BlockBuilder& builder, const StageTransfer& transfer, TagKind kind, BufferId into,
                                 std::vector<Arrival>& arrivals) {
  Box whole = local_box(normalized(transfer.to_spec, mesh()), transfer.shape, mesh(), mesh_index_);
  for (size_t i = 0; i < transfer.pieces.size(); ++i) {
    const BoxTransfer& piece = transfer.pieces[i];
    if (piece.destination != rank_.value) continue;
    std::string label = fmt::format("recv {} {}", graph_.value(transfer.value).name, piece.box.to_string());
    bool is_direct = piece.box == whole && kind != TagKind::kTied;
    BufferId wire = is_direct ? into : builder.work_buffer(label, transfer.dtype, piece.box.extents);
    RecvInstruction what{RankId(piece.source), wire, wire_tag(transfer.first_tag + i, kind),
                         wire_tag(transfer.first_tag, kind)};
    builder.emit({what, StreamKind::kTransfer, {}, label});
    arrivals.push_back({graph_.value(transfer.value).name, piece.box, whole, wire, into});
  }
}

void RankLowering::place(BlockBuilder& builder, const Arrival& arrival, bool add) {
  if (arrival.wire == arrival.into) return;
  builder.copy(arrival.wire, arrival.piece, arrival.into, arrival.whole, arrival.piece, add,
               (add ? "add " : "place ") + arrival.name);
}

}  // namespace altiplano
