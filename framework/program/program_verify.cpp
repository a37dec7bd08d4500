// The program verifier: what has to hold before a single step runs.
#include <algorithm>
#include <set>

#include "framework/program/arena.hpp"
#include "framework/program/collective_order.hpp"
#include "framework/program/program.hpp"
#include "framework/program/rehearsal.hpp"

namespace altiplano {

namespace {

Status fail(const Program& program, const Block& block, size_t index, const std::string& what) {
  return invalid_argument("program of rank {}, block {}, instruction {} ({}): {}", program.rank, block.name, index,
                          block.instructions[index].label, what);
}

// ---- one program ----

Status check_arenas(const Program& program) {
  for (const Buffer& buffer : program.buffers) {
    int64_t limit = buffer.arena == Arena::kPersistent ? program.persistent_bytes
                    : buffer.arena == Arena::kStash    ? program.stash_slot_bytes
                                                       : program.work_bytes;
    if (buffer.offset < 0 || buffer.offset + buffer.bytes > limit)
      return invalid_argument("program of rank {}: buffer {} [{}, {}) leaves its {} arena of {} bytes", program.rank,
                              buffer.name, buffer.offset, buffer.offset + buffer.bytes, to_string(buffer.arena), limit);
  }
  return Status::ok();
}

/// Work buffers of a block that live at the same time must not overlap.
Status check_overlaps(const Program& program, const Block& block) {
  std::vector<const Buffer*> buffers;
  for (const Buffer& buffer : program.buffers)
    if (buffer.arena == Arena::kWork && buffer.block == block.id && buffer.bytes > 0) buffers.push_back(&buffer);
  std::sort(buffers.begin(), buffers.end(), [](const Buffer* a, const Buffer* b) { return a->offset < b->offset; });
  for (size_t i = 0; i < buffers.size(); ++i) {
    for (size_t j = i + 1; j < buffers.size() && buffers[j]->offset < buffers[i]->offset + buffers[i]->bytes; ++j) {
      if (buffers[i]->last_use < buffers[j]->first_use || buffers[j]->last_use < buffers[i]->first_use) continue;
      return invalid_argument("program of rank {}, block {}: buffers {} and {} overlap while both live", program.rank,
                              block.name, buffers[i]->name, buffers[j]->name);
    }
  }
  return Status::ok();
}

/// Every work buffer is written before it is read, inside its block; what B reads of the stash F wrote.
Status check_definitions(const Program& program, const std::set<BufferId>& stashed, const Block& block) {
  std::set<BufferId> written;
  for (size_t i = 0; i < block.instructions.size(); ++i) {
    Status status;
    for_each_buffer(block.instructions[i], [&](BufferId id, bool is_write) {
      const Buffer& buffer = program.buffer(id);
      if (is_write) {
        written.insert(id);
        return;
      }
      if (!status.is_ok() || buffer.bytes == 0 || buffer.arena == Arena::kPersistent || written.count(id)) return;
      if (buffer.arena == Arena::kStash && stashed.count(id) && block.kind != ActionKind::kForward) return;
      status = fail(program, block, i, fmt::format("reads {} before anything wrote it", buffer.name));
    });
    ALTIPLANO_RETURN_IF_ERROR(status);
    for (int before : block.instructions[i].after)
      if (before < 0 || static_cast<size_t>(before) >= i)
        return fail(program, block, i, "waits for a later instruction");
  }
  return Status::ok();
}

}  // namespace

Status verify_program(const Program& program) {
  ALTIPLANO_RETURN_IF_ERROR(check_arenas(program));
  std::set<BufferId> stashed;
  for (const Block& block : program.blocks) {
    if (block.kind != ActionKind::kForward) continue;
    for (const Instruction& instruction : block.instructions)
      for_each_buffer(instruction, [&](BufferId id, bool is_write) {
        if (is_write) stashed.insert(id);
      });
  }
  for (const Block& block : program.blocks) {
    ALTIPLANO_RETURN_IF_ERROR(check_overlaps(program, block));
    ALTIPLANO_RETURN_IF_ERROR(check_definitions(program, stashed, block));
  }
  return Status::ok();
}

namespace {

Status verify_all(const std::vector<Program>& programs, bool others_answer) {
  for (const Program& program : programs) ALTIPLANO_RETURN_IF_ERROR(verify_program(program));
  for (auto list : {&Program::step, &Program::validation}) {
    ALTIPLANO_RETURN_IF_ERROR(rehearse(programs, list, others_answer));
    ALTIPLANO_RETURN_IF_ERROR(check_collective_order(programs, list));
  }
  return Status::ok();
}

}  // namespace

Status verify_programs(const std::vector<Program>& programs) {
  return verify_all(programs, false);
}

Status verify_representatives(const std::vector<Program>& programs) {
  return verify_all(programs, true);
}

}  // namespace altiplano
