#pragma once
// Rehearsal: programs run together with zero buffering, nothing but their messages and collectives: a send ends when
// its receive is posted, a receive when its send is posted, a collective when all members have come to it.
#include "framework/program/program.hpp"

namespace altiplano {

/// Refuses programs that wait for each other for ever, that send what nobody receives, or that disagree about a message
/// or a call, naming ranks and instructions. `list`: the entries that run in a row (step, validation). `others_answer`:
/// ranks whose programs are not here send, receive and come to collectives when they are waited for.
/// O(messages + calls + members of all calls) of the whole list, whatever else the blocks do.
Status rehearse(const std::vector<Program>& programs, std::vector<TimetableEntry> Program::*list, bool others_answer);

}  // namespace altiplano
