#pragma once
// Edits of a Program, for seeded faults: what a bug in lowering or in a backend would do.
#include <functional>
#include <stdexcept>
#include <string>

#include "framework/program/program.hpp"

namespace altiplano::test {

inline Block& block_named(Program& program, const std::string& name) {
  for (Block& block : program.blocks)
    if (block.name == name) return block;
  throw std::runtime_error("no block " + name);
}

using InstructionTest = std::function<bool(const Instruction&)>;

/// Index of the first instruction that passes; -1.
inline int find_instruction(const Block& block, const InstructionTest& test) {
  for (size_t i = 0; i < block.instructions.size(); ++i)
    if (test(block.instructions[i])) return static_cast<int>(i);
  return -1;
}

/// The instruction does nothing any more. Indices stay.
inline void erase(Instruction& instruction, BufferId any) {
  instruction.what = FillInstruction{any}, instruction.label = "erased";
}

/// What follows moves one place on, with its dependencies.
inline void insert(Block& block, size_t at, Instruction instruction) {
  for (Instruction& other : block.instructions)
    for (int& before : other.after)
      if (static_cast<size_t>(before) >= at) ++before;
  block.instructions.insert(block.instructions.begin() + static_cast<std::ptrdiff_t>(at), std::move(instruction));
}

inline Instruction whole_copy(BufferId source, BufferId destination, int64_t count, bool add = false) {
  Box all = Box::whole({count});
  return {CopyInstruction{source, destination, {all, all, all}, add, 0, 0}, StreamKind::kCompute, {}, "tampered copy"};
}

/// A persistent tensor multiplied by `factor`, in place.
inline Instruction scaled(const Program& program, const PersistentTensor& tensor, double factor) {
  const Buffer& buffer = program.buffer(tensor.buffer);
  std::vector<int64_t> origin(buffer.extents.size(), 0);
  Operand operand{tensor.buffer, origin, buffer.extents, -1};
  return {ComputeInstruction{"scale", {{"factor", factor}}, {operand}, {operand}, BufferId(), OpId()},
          StreamKind::kCompute,
          {},
          "tampered scale"};
}

inline const PersistentTensor* find_tensor(const Program& program, const std::string& name, TensorRole role) {
  for (const PersistentTensor& tensor : program.tensors)
    if (tensor.name == name && tensor.role == role) return &tensor;
  return nullptr;
}

}  // namespace altiplano::test
