// One program of every kind of rank stands for the others.
#include <boost/test/unit_test.hpp>
#include <map>
#include <set>

#include "tests/support/gpt.hpp"
#include "tests/support/plans.hpp"

namespace altiplano::test {

namespace {

/// All that ranks of one kind share: instructions and the sizes of what they touch, in order, without peers and places.
std::string shape_of(const Program& program) {
  std::string text = fmt::format("{} {} {} {}\n", program.persistent_bytes, program.stash_slot_bytes,
                                 program.work_bytes, program.num_stash_slots);
  for (const Block& block : program.blocks) {
    text += block.name + ":";
    for (const Instruction& instruction : block.instructions) {
      text += fmt::format(" {}", instruction.what.index());
      for_each_buffer(instruction, [&](BufferId id, bool is_write) {
        text += fmt::format("{}{}", is_write ? ">" : "<", program.buffer(id).bytes);
      });
    }
    text += "\n";
  }
  return text;
}

struct Case {
  Degrees degrees;
  int zero = 1;
  bool sequence_parallel = false;
};

TrainingGraph uneven_gpt() {
  GptShape shape;
  shape.layers = 4, shape.hidden = 24, shape.heads = 12, shape.vocabulary = 36, shape.batch = 12, shape.sequence = 6;
  return make_gpt_training(shape, DType::kF32);
}

Plan plan_of(const TrainingGraph& graph, const Case& from) {
  DegreePlanOptions options;
  options.degrees = from.degrees;
  options.microbatch = 1;
  options.zero = from.zero;
  options.sequence_parallel = from.sequence_parallel;
  return make_plan(graph, options);
}

Representatives representatives_of(const TrainingGraph& graph, const Plan& plan) {
  auto kinds = lower_representatives(graph, plan, make_timetable(plan), Binding::identity(plan.num_slots()));
  BOOST_REQUIRE_MESSAGE(kinds.is_ok(), kinds.status().to_string());
  return std::move(kinds).value();
}

}  // namespace

BOOST_AUTO_TEST_CASE(ranks_of_a_kind_have_programs_that_differ_in_peers_and_places_only) {
  const TrainingGraph graph = uneven_gpt();
  for (const Case& c : {Case{{4, 1, 1}, 1}, Case{{2, 2, 2}, 1, true}, Case{{4, 3, 1}, 3}, Case{{6, 1, 2}, 2},
                        Case{{1, 4, 1}, 0}, Case{{4, 2, 2}, 3, true}, Case{{12, 1, 1}, 1}}) {
    const Plan plan = plan_of(graph, c);
    const std::vector<Program> all = lower_plan(graph, plan);
    const Representatives kinds = representatives_of(graph, plan);
    const Status status = verify_representatives(kinds.programs);
    BOOST_TEST_CONTEXT(plan.to_yaml()) {
      BOOST_TEST(status.is_ok(), status.to_string());
      std::set<RankId> seen;
      for (size_t k = 0; k < kinds.programs.size(); ++k) {
        BOOST_TEST((kinds.alike[k].at(0) == kinds.programs[k].rank));
        for (RankId rank : kinds.alike[k]) {
          BOOST_TEST(seen.insert(rank).second);
          BOOST_TEST((all[rank.index()].stage == kinds.programs[k].stage));
          BOOST_TEST(all[rank.index()].peak().value == kinds.programs[k].peak().value);
          BOOST_TEST(shape_of(all[rank.index()]) == shape_of(kinds.programs[k]));
        }
      }
      BOOST_TEST(seen.size() == all.size());
    }
  }
}

BOOST_AUTO_TEST_CASE(many_replicas_are_of_few_kinds) {
  GptShape shape;
  shape.layers = 2, shape.hidden = 64, shape.heads = 4, shape.vocabulary = 64, shape.batch = 64, shape.sequence = 8;
  const TrainingGraph graph = make_gpt_training(shape, DType::kF32);
  const Plan plan = plan_of(graph, {{32, 2, 1}, 1});
  const Representatives kinds = representatives_of(graph, plan);
  BOOST_TEST(kinds.programs.size() <= 8u);
  BOOST_TEST(verify_representatives(kinds.programs).is_ok());
}

BOOST_AUTO_TEST_CASE(what_is_wrong_with_a_kind_of_rank_is_found_without_the_others) {
  const TrainingGraph graph = uneven_gpt();
  Representatives kinds = representatives_of(graph, plan_of(graph, {{2, 2, 2}, 1}));
  std::vector<Program> late = kinds.programs;  // one rank forgets its last backward
  std::erase_if(late[0].step, [&](const TimetableEntry& entry) {
    return entry.action.kind == ActionKind::kBackward && entry.action.microbatch == 1;
  });
  BOOST_TEST(!verify_representatives(late).is_ok());
  std::vector<Program> overlapping = kinds.programs;
  for (Buffer& buffer : overlapping[0].buffers)
    if (buffer.arena == Arena::kWork) buffer.offset = 0;
  BOOST_TEST(!verify_representatives(overlapping).is_ok());
  // Without its peers' programs the proof of all says that they are missing; that of some takes them to answer.
  kinds.programs.erase(kinds.programs.begin() + 1, kinds.programs.end());
  BOOST_TEST(!verify_programs(kinds.programs).is_ok());
  BOOST_TEST(verify_representatives(kinds.programs).is_ok());
}

}  // namespace altiplano::test
