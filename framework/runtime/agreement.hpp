#pragma once
// What went wrong on any rank, known to all: ranks that go on after a failure of one of them must all go on, and alike.
#include <string>

#include "framework/api/comm.hpp"

namespace altiplano {

/// Collective over `world`, and a barrier: ok when `mine` is ok on all ranks, else the failure of the lowest rank that
/// has one, its message preceded by `who` of that rank ("rank 2 (n3, local 2)"); equal on all ranks. Long messages are
/// cut. A communicator that fails says so itself, which no rank can go on from: `is_agreed` is false then.
struct Agreement {
  Status status;
  bool is_agreed = false;
};
Agreement agree(Communicator& communicator, GroupId world, const Status& mine, const std::string& who);

}  // namespace altiplano
