// The invariance comparison can fail: faults seeded into the programs of otherwise right plans, each of which it must
// notice.
#include <atomic>

#include "tests/support/invariance.hpp"
#include "tests/support/tamper.hpp"

namespace altiplano::test {

namespace {

PlanCase faulty_case(int data, int tensor, int pipeline, int zero, const std::string& schedule = "1f1b") {
  PlanCase c;
  c.degrees = {data, tensor, pipeline};
  c.zero = zero;
  c.microbatch = 4;
  c.schedule = schedule;
  c.sequence_parallel = false;
  return c;
}

/// `tamper` changes each rank's program and says whether it found what to change.
std::string noticed(const PlanCase& c, const std::function<bool(Program&)>& tamper) {
  std::atomic<int> changed = 0;
  TrainOptions options;
  options.steps = 3;
  const TrainResult& one = one_rank_run(c, DType::kF64, options);
  options.tamper = [&](Program& program) { changed += tamper(program); };
  const TrainingGraph& graph = graph_of(c);
  std::string off = difference(train(graph, plan_of(c, graph), options), one);
  BOOST_TEST(changed > 0, "nothing was tampered with");
  BOOST_TEST_MESSAGE("noticed:" << off);
  return off;
}

bool drop_all_reduce(Block& block, const std::string& label_start) {
  int at = find_instruction(block, [&](const Instruction& i) {
    const auto* what = std::get_if<CollectiveInstruction>(&i.what);
    return what && what->kind == CollectiveKind::kAllReduce && i.label.starts_with(label_start);
  });
  if (at < 0) return false;
  Instruction& instruction = block.instructions[static_cast<size_t>(at)];
  auto what = std::get<CollectiveInstruction>(instruction.what);
  // In place the rank's own part stays; else it is copied, as a backend would that is alone in its group.
  instruction.what = WaitSendInstruction{what.out};
  if (what.in != what.out) instruction.what = whole_copy(what.in, what.out, what.count).what;
  return true;
}

bool drop_copy(Block& block, const std::string& label) {
  int at = find_instruction(
      block, [&](const Instruction& i) { return i.label == label && std::holds_alternative<CopyInstruction>(i.what); });
  if (at < 0) return false;
  BufferId buffer = std::get<CopyInstruction>(block.instructions[static_cast<size_t>(at)].what).destination;
  block.instructions[static_cast<size_t>(at)].what = WaitSendInstruction{buffer};
  return true;
}

const std::string kWeight = "block.3.mlp.up.weight";

}  // namespace

BOOST_AUTO_TEST_SUITE(seeded_faults)

BOOST_AUTO_TEST_CASE(without_a_fault_nothing_is_noticed) {
  for (const PlanCase& c : {faulty_case(1, 2, 1, 0), faulty_case(2, 1, 1, 0), faulty_case(1, 1, 2, 0, "gpipe")}) {
    TrainOptions options;
    options.steps = 3;
    check_invariant(c, options);
  }
}

BOOST_AUTO_TEST_CASE(a_dropped_all_reduce_of_an_activation_is_noticed) {
  BOOST_TEST(noticed(faulty_case(1, 2, 1, 0),
                     [](Program& p) { return drop_all_reduce(block_named(p, "F"), "all_reduce block.3"); }) != "");
}

BOOST_AUTO_TEST_CASE(a_dropped_all_reduce_of_gradients_is_noticed) {
  BOOST_TEST(noticed(faulty_case(2, 1, 1, 0),
                     [](Program& p) { return drop_all_reduce(block_named(p, "U"), "all_reduce bucket"); }) != "");
}

BOOST_AUTO_TEST_CASE(a_norm_counted_twice_is_noticed) {
  auto twice = [](Program& p) {
    Block& block = block_named(p, "U");
    int at = find_instruction(block, [](const Instruction& i) { return i.label == "total " + kWeight + ".grad_norm"; });
    if (at < 0) return false;
    Instruction again = block.instructions[static_cast<size_t>(at)];
    again.after.clear();
    insert(block, static_cast<size_t>(at) + 1, again);
    return true;
  };
  BOOST_TEST(noticed(faulty_case(2, 1, 1, 0), twice) != "");
}

BOOST_AUTO_TEST_CASE(swapped_microbatches_are_noticed) {
  // Stage 0 goes back through microbatch 0 with what microbatch 1 stored, and the other way round.
  auto swap = [](Program& p) {
    if (p.stage != StageId(0)) return false;
    std::vector<TimetableEntry*> backward;
    for (TimetableEntry& entry : p.step)
      if (entry.action.kind == ActionKind::kBackward && entry.action.microbatch < 2) backward.push_back(&entry);
    std::swap(backward.at(0)->stash_slot, backward.at(1)->stash_slot);
    return true;
  };
  BOOST_TEST(noticed(faulty_case(1, 1, 2, 0, "gpipe"), swap) != "");
}

BOOST_AUTO_TEST_CASE(one_percent_of_one_gradient_is_noticed) {
  auto scale = [](Program& p) {
    const PersistentTensor* gradient = find_tensor(p, kWeight + ".gradient", TensorRole::kGradient);
    if (!gradient) return false;
    insert(block_named(p, "U"), 0, scaled(p, *gradient, 1.01));
    return true;
  };
  BOOST_TEST(noticed(faulty_case(2, 1, 1, 0), scale) != "");
  BOOST_TEST(noticed(faulty_case(1, 2, 2, 0), scale) != "");
}

BOOST_AUTO_TEST_CASE(a_stale_tied_copy_is_noticed) {
  auto stale = [](Program& p) {
    return p.stage == StageId(1) && drop_copy(block_named(p, "U"), "place embedding.token.weight");
  };
  std::string off = noticed(faulty_case(1, 1, 2, 0), stale);
  BOOST_TEST(off.find("ranks do not agree on embedding.token.weight") != std::string::npos, off);
}

BOOST_AUTO_TEST_CASE(a_tied_gradient_that_is_not_added_is_noticed) {
  auto lost = [](Program& p) {
    return p.stage == StageId(0) && drop_copy(block_named(p, "U"), "add embedding.token.weight");
  };
  BOOST_TEST(noticed(faulty_case(1, 1, 2, 0), lost) != "");
}

BOOST_AUTO_TEST_CASE(an_update_gathered_from_the_wrong_place_is_noticed) {
  auto stale = [](Program& p) { return p.rank == RankId(1) && drop_copy(block_named(p, "U"), "unpack " + kWeight); };
  BOOST_TEST(noticed(faulty_case(2, 1, 1, 1), stale) != "");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
