// Programs that are broken on purpose are refused, each with its reason.
#include <boost/test/unit_test.hpp>

#include "framework/program/collective_order.hpp"
#include "tests/support/gpt.hpp"
#include "tests/support/plans.hpp"

namespace altiplano::test {

namespace {

std::vector<Program> sound_programs(int data, int tensor, int pipeline) {
  GptShape shape;
  shape.layers = 2, shape.batch = 4, shape.vocabulary = 32;
  TrainingGraph graph = make_gpt_training(shape);
  DegreePlanOptions options;
  options.degrees = {data, tensor, pipeline};
  return lower_plan(graph, make_plan(graph, options));
}

/// The first instruction of that type in a block of that kind.
template <typename What>
std::pair<Block*, size_t> find(Program& program, ActionKind kind) {
  for (Block& block : program.blocks) {
    if (block.kind != kind) continue;
    for (size_t i = 0; i < block.instructions.size(); ++i)
      if (std::holds_alternative<What>(block.instructions[i].what)) return {&block, i};
  }
  BOOST_FAIL("no such instruction");
  return {};
}

/// Turns an instruction into one that does nothing to others, so that indices stay.
void drop(Block& block, size_t index) {
  block.instructions[index].what = WaitSendInstruction{BufferId(0)};
}

void check_refused(const std::vector<Program>& programs, const std::string& part) {
  Status status = verify_programs(programs);
  BOOST_TEST(!status.is_ok());
  BOOST_TEST(status.message().find(part) != std::string::npos, "'" << status.message() << "' has no '" << part << "'");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(program_verifier)

BOOST_AUTO_TEST_CASE(a_receive_without_its_send_is_a_deadlock) {
  auto programs = sound_programs(1, 1, 2);
  auto [block, index] = find<SendInstruction>(programs[0], ActionKind::kForward);
  drop(*block, index);
  check_refused(programs, "deadlock");
}

BOOST_AUTO_TEST_CASE(a_send_without_its_receive_is_found) {
  auto programs = sound_programs(1, 1, 2);
  auto [block, index] = find<RecvInstruction>(programs[1], ActionKind::kForward);
  drop(*block, index);
  BOOST_TEST(!verify_programs(programs).is_ok());
}

BOOST_AUTO_TEST_CASE(two_sides_that_disagree_on_bytes_are_refused_with_both_numbers) {
  auto programs = sound_programs(1, 1, 2);
  auto [block, index] = find<RecvInstruction>(programs[1], ActionKind::kForward);
  programs[1].buffers[std::get<RecvInstruction>(block->instructions[index].what).buffer.index()].bytes -= 8;
  check_refused(programs, "bytes");
}

BOOST_AUTO_TEST_CASE(a_dropped_collective_is_found) {
  auto programs = sound_programs(1, 2, 1);
  auto [block, index] = find<CollectiveInstruction>(programs[1], ActionKind::kForward);
  drop(*block, index);
  BOOST_TEST(!verify_programs(programs).is_ok());
}

BOOST_AUTO_TEST_CASE(members_that_call_with_other_counts_are_refused_with_both) {
  auto programs = sound_programs(1, 2, 1);
  auto [block, index] = find<CollectiveInstruction>(programs[1], ActionKind::kForward);
  ++std::get<CollectiveInstruction>(block->instructions[index].what).count;
  check_refused(programs, "another rank");
}

BOOST_AUTO_TEST_CASE(overlapping_groups_called_in_conflicting_orders_are_refused) {
  // Two ranks, two groups of both: one calls a then b, the other b then a, and nobody waits in between.
  auto programs = sound_programs(1, 2, 1);
  for (Program& program : programs) {
    program.groups = {{GroupId(0), "a", {RankId(0), RankId(1)}}, {GroupId(1), "b", {RankId(1), RankId(0)}}};
    Block block;
    block.id = BlockId(0);
    for (int i : {0, 1}) {
      CollectiveInstruction call;
      call.kind = CollectiveKind::kBarrier;
      call.group = GroupId(program.rank.value == 0 ? i : 1 - i);
      call.in = call.out = BufferId(0);
      block.instructions.push_back({call, StreamKind::kCollective, {}, "call"});
    }
    program.blocks = {block};
    program.step = {{{}, BlockId(0), -1}};
  }
  Status status = check_collective_order(programs, &Program::step);
  BOOST_TEST(status.message() ==
             "programs have no one order of collectives: rank 0 comes to call of group a, rank 1 to one of group b");
}

BOOST_AUTO_TEST_CASE(a_buffer_that_leaves_its_arena_is_refused) {
  auto programs = sound_programs(1, 1, 1);
  programs[0].work_bytes = 64;
  check_refused(programs, "leaves its work arena");
}

BOOST_AUTO_TEST_CASE(buffers_that_overlap_while_both_live_are_refused) {
  auto programs = sound_programs(1, 1, 1);
  for (Buffer& buffer : programs[0].buffers)
    if (buffer.arena == Arena::kWork) buffer.offset = 0;
  check_refused(programs, "overlap while both live");
}

BOOST_AUTO_TEST_CASE(a_read_before_any_write_is_refused) {
  auto programs = sound_programs(1, 1, 1);
  auto [block, index] = find<FeedInstruction>(programs[0], ActionKind::kForward);
  drop(*block, index);
  check_refused(programs, "before anything wrote it");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
