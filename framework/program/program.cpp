#include "framework/program/program.hpp"

namespace altiplano {

const char* to_string(Arena arena) {
  switch (arena) {
    case Arena::kPersistent:
      return "persistent";
    case Arena::kStash:
      return "stash";
    case Arena::kWork:
      return "work";
  }
  return "?";
}

const char* to_string(MicrobatchVariant variant) {
  switch (variant) {
    case MicrobatchVariant::kAny:
      return "any";
    case MicrobatchVariant::kFirst:
      return "first";
    case MicrobatchVariant::kLater:
      return "later";
  }
  return "?";
}

namespace {

using Visit = std::function<void(BufferId, bool)>;

void visit_buffers(const ComputeInstruction& i, const Visit& visit) {
  for (const Operand& operand : i.inputs) visit(operand.buffer, false);
  if (i.workspace.is_valid()) visit(i.workspace, true);
  for (const Operand& operand : i.outputs) visit(operand.buffer, true);
}
void visit_buffers(const CollectiveInstruction& i, const Visit& visit) {
  visit(i.in, false);
  visit(i.out, true);
}
void visit_buffers(const SendInstruction& i, const Visit& visit) {
  visit(i.buffer, false);
}
void visit_buffers(const RecvInstruction& i, const Visit& visit) {
  visit(i.buffer, true);
}
void visit_buffers(const CopyInstruction& i, const Visit& visit) {
  visit(i.source, false);
  if (i.add) visit(i.destination, false);
  visit(i.destination, true);
}
void visit_buffers(const FillInstruction& i, const Visit& visit) {
  visit(i.buffer, true);
}
void visit_buffers(const FeedInstruction& i, const Visit& visit) {
  visit(i.buffer, true);
}
void visit_buffers(const WaitSendInstruction&, const Visit&) {}
void visit_buffers(const FetchInstruction& i, const Visit& visit) {
  visit(i.buffer, false);
}

std::string describe(const Program& program, const Instruction& instruction) {
  auto name = [&](BufferId id) {
    const Buffer& b = program.buffer(id);
    return fmt::format("{}+{}", b.arena == Arena::kPersistent ? "p" : b.arena == Arena::kStash ? "s" : "w", b.offset);
  };
  struct Describer {
    decltype(name)& n;
    const Program& program;
    std::string operator()(const ComputeInstruction& i) const {
      std::string text = i.kind;
      for (const Operand& o : i.inputs) text += " " + n(o.buffer);
      text += " ->";
      for (const Operand& o : i.outputs)
        text += fmt::format(" {}:{}{}", n(o.buffer), to_string(program.buffer(o.buffer).dtype),
                            to_string(Shape(program.buffer(o.buffer).extents)));
      return text;
    }
    std::string operator()(const CollectiveInstruction& i) const {
      return fmt::format("{} {} count {} {} -> {}", to_string(i.kind), program.groups[i.group.index()].name, i.count,
                         n(i.in), n(i.out));
    }
    std::string operator()(const SendInstruction& i) const {
      return fmt::format("send to {} tag {:x} {}", i.peer, i.tag, n(i.buffer));
    }
    std::string operator()(const RecvInstruction& i) const {
      return fmt::format("recv from {} tag {:x} {}", i.peer, i.tag, n(i.buffer));
    }
    std::string operator()(const CopyInstruction& i) const {
      return fmt::format("{} {} {} -> {}", i.add ? "add" : "copy", i.boxes.part.to_string(), n(i.source),
                         n(i.destination));
    }
    std::string operator()(const FillInstruction& i) const { return "zero " + n(i.buffer); }
    std::string operator()(const FeedInstruction& i) const { return "feed " + n(i.buffer); }
    std::string operator()(const WaitSendInstruction& i) const { return "wait_send " + n(i.buffer); }
    std::string operator()(const FetchInstruction& i) const { return "fetch " + n(i.buffer); }
  };
  std::string text = std::visit(Describer{name, program}, instruction.what);
  for (int before : instruction.after) text += fmt::format(" after {}", before);
  return text + "   # " + instruction.label;
}

}  // namespace

void for_each_buffer(const Instruction& instruction, const std::function<void(BufferId, bool)>& visit) {
  std::visit([&](const auto& what) { visit_buffers(what, visit); }, instruction.what);
}

std::string Program::to_string() const {
  std::string out = fmt::format("program rank {} stage {}  persistent {} + stash {} x {} + work {} = {} bytes\n", rank,
                                stage, persistent_bytes, num_stash_slots, stash_slot_bytes, work_bytes, peak().value);
  out += "step:";
  for (const TimetableEntry& entry : step)
    out += fmt::format(" {}{}", entry.action.to_string(),
                       entry.stash_slot >= 0 ? fmt::format("/{}", entry.stash_slot) : "");
  out += "\n";
  for (const Block& block : blocks) {
    out += fmt::format("block {}\n", block.name);
    for (size_t i = 0; i < block.instructions.size(); ++i)
      out += fmt::format("  {:4} {}\n", i, describe(*this, block.instructions[i]));
  }
  return out;
}

}  // namespace altiplano
