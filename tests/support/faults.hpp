#pragma once
// Programs that die or fail at a chosen call that changes a file (tests/fixtures/faults).
#include <string>
#include <vector>

#include "tests/support/temporary_directory.hpp"

namespace altiplano::test {

/// A program's calls that change files below a folder, and what happens at one of them.
struct Fault {
  std::string directory;        ///< calls below it count
  std::string mode = {};        ///< kill, torn, ENOSPC, EIO; empty: all go well
  int at = 0;                   ///< the call that goes wrong, counted from 1
  bool stays = false;           ///< all later ones too
  bool no_exchange = false;     ///< a file system that cannot exchange two names
  std::string free_bytes = {};  ///< what the file system says is free; empty: the truth
  int most_bytes = 0;           ///< that one write takes; 0: all
  int delay = 0;                ///< milliseconds that each call takes longer
  int no_locks = 0;             ///< the error that flock fails with, on every file; 0: it works
};

/// The environment that makes a command run so: "LD_PRELOAD=... FAULT_DIR=... ", to be put before it.
std::string fault_environment(const Fault& fault, const std::string& log = "");
/// Names of the counted calls of a command that goes well, in order: "pwrite", "fsync", ...
std::vector<std::string> counted_calls(const std::string& command, Fault fault);

/// One way a checkpoint comes to its place.
struct SaveScene {
  const char* name;
  int64_t step = 2;  ///< saved with fault; step 1 (and, when `again`, an earlier attempt of this step) is there before
  bool again = false, no_exchange = false;
  int64_t keep = 1;
};
const std::vector<SaveScene>& save_scenes();

/// Saves with each `stride`-th call of the scene going wrong by `mode`, and each time checks what is promised: the
/// newest complete checkpoint has the values of one step and is that of the last save that said it was done or the one
/// after; what is left out is named with its reason; the next save goes well and leaves no junk. How many were tried.
int check_interrupted_saves(const SaveScene& scene, const std::string& mode, int stride, bool stays = false);

/// Saves on a disk whose writes take `most_bytes` at most (0: all) and checks every value. How many writes it took.
int64_t save_with_short_writes(int most_bytes);

}  // namespace altiplano::test
