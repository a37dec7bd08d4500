// Programs simulated by events: small ones worked out by hand, real ones against the simulation of their timetable and
// against each other.
#include "framework/simulate/simulate_programs.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "framework/simulate/critical_path.hpp"
#include "framework/simulate/plan_simulation.hpp"
#include "framework/simulate/simulate.hpp"
#include "framework/simulate/timeline.hpp"
#include "tests/support/gpt.hpp"
#include "tests/support/plans.hpp"

namespace altiplano::test {

namespace {

/// Copying n elements takes n seconds, so does a message of n elements and an all_reduce of n elements by two ranks.
Cluster slow_cluster(int devices) {
  Cluster cluster = test_cluster(devices);
  cluster.device.memory_bandwidth = 8;
  cluster.levels = {{"node", devices, 0, 4, 1}};
  return cluster;
}

/// A program written by hand: blocks of work, messages and calls in numbers of elements. Group 0 is all ranks, the
/// others as given.
class HandProgram {
 public:
  HandProgram(int rank, int world, const std::vector<std::vector<int>>& groups = {}) {
    program_.rank = RankId(rank);
    program_.stage = StageId(rank);
    std::vector<int> all(static_cast<size_t>(world));
    std::iota(all.begin(), all.end(), 0);
    add_group(all);
    for (const auto& ranks : groups) add_group(ranks);
    open(ActionKind::kForward);
  }

  HandProgram& open(ActionKind kind) {
    Block block;
    block.id = BlockId(static_cast<int64_t>(program_.blocks.size()));
    block.kind = kind;
    program_.blocks.push_back(block);
    return *this;
  }
  /// Runs a block as part of the step.
  HandProgram& run(int block, int microbatch = 0) {
    program_.step.push_back({{program_.blocks[static_cast<size_t>(block)].kind, microbatch, 0}, BlockId(block), -1});
    return *this;
  }

  HandProgram& work(int64_t seconds) {
    CopyInstruction copy{buffer(seconds), buffer(seconds), {}, false, 0, 0};
    copy.boxes.part = {{0}, {seconds}};
    return emit({copy, StreamKind::kCompute, {}, "work"});
  }
  /// `slot`: the buffer that is sent, which a later wait_sent(slot) names.
  HandProgram& send(int peer, int64_t elements, uint64_t tag, int slot = 0) {
    const auto known = sent_.try_emplace(slot, buffer(elements)).first;
    return emit({SendInstruction{RankId(peer), known->second, tag, tag}, StreamKind::kTransfer, {}, "send x [0:1]"});
  }
  HandProgram& wait_sent(int slot) {
    return emit({WaitSendInstruction{sent_.at(slot)}, StreamKind::kTransfer, {}, "wait"});
  }
  HandProgram& receive(int peer, int64_t elements, uint64_t tag) {
    return emit({RecvInstruction{RankId(peer), buffer(elements), tag, tag}, StreamKind::kTransfer, {}, "recv x [0:1]"});
  }
  HandProgram& all_reduce(int64_t elements, int group = 0) {
    CollectiveInstruction call;
    call.group = GroupId(group);
    call.in = call.out = buffer(elements);
    call.count = elements;
    return emit({call, StreamKind::kCollective, {}, "all_reduce y"});
  }
  /// What comes next waits for an instruction of the block by its place.
  HandProgram& after(int instruction) {
    after_.push_back(instruction);
    return *this;
  }

  const Program& program() const { return program_; }

 private:
  HandProgram& emit(Instruction instruction) {
    instruction.after = std::exchange(after_, {});
    program_.blocks.back().instructions.push_back(std::move(instruction));
    return *this;
  }
  BufferId buffer(int64_t elements) {
    Buffer buffer;
    buffer.id = BufferId(static_cast<int64_t>(program_.buffers.size()));
    buffer.extents = {elements};
    buffer.bytes = 4 * elements;
    program_.buffers.push_back(buffer);
    return buffer.id;
  }
  void add_group(const std::vector<int>& ranks) {
    ProcessGroup group{GroupId(static_cast<int64_t>(program_.groups.size())), "g", {}};
    for (int rank : ranks) group.ranks.emplace_back(rank);
    program_.groups.push_back(group);
  }

  Program program_;
  std::vector<int> after_;
  std::map<int, BufferId> sent_;
};

std::vector<std::vector<RankId>> each_alone(const std::vector<Program>& programs) {
  std::vector<std::vector<RankId>> alike;
  for (const Program& program : programs) alike.push_back({program.rank});
  return alike;
}

ProgramSimulation simulate_all(const std::vector<Program>& programs, const Cluster& cluster) {
  auto simulation = simulate_programs(programs, each_alone(programs), cluster);
  BOOST_REQUIRE_MESSAGE(simulation.is_ok(), simulation.status().to_string());
  return std::move(simulation).value();
}

ProgramSimulation simulate_all(const std::vector<HandProgram>& by_hand) {
  std::vector<Program> programs;
  for (const HandProgram& hand : by_hand) programs.push_back(hand.program());
  return simulate_all(programs, slow_cluster(static_cast<int>(programs.size())));
}

/// Of devices that exchange data themselves: messages of more than two elements move while both ends wait.
ProgramSimulation simulate_without_overlap(const std::vector<HandProgram>& by_hand, const Sharing& sharing = {}) {
  std::vector<Program> programs;
  for (const HandProgram& hand : by_hand) programs.push_back(hand.program());
  Cluster cluster = slow_cluster(static_cast<int>(programs.size()));
  cluster.device.overlaps_communication = false;
  cluster.device.eager_messages = 8;
  DeviceCurves curves;
  curves.sharing = sharing;
  cluster.device.curves = std::make_shared<const DeviceCurves>(curves);
  return simulate_all(programs, cluster);
}

void check_parts(const RankTimeline& rank, double busy, double exposed, double bubble) {
  BOOST_TEST(rank.busy.value == busy);
  BOOST_TEST(rank.exposed.value == exposed);
  BOOST_TEST(rank.bubble.value == bubble);
}

std::vector<DegreePlanOptions> many_plans() {
  std::vector<DegreePlanOptions> all;
  for (Degrees degrees : {Degrees{1, 1, 1}, Degrees{4, 1, 1}, Degrees{1, 2, 1}, Degrees{2, 2, 1}, Degrees{1, 1, 4},
                          Degrees{2, 1, 2}, Degrees{2, 2, 2}, Degrees{1, 2, 2}})
    for (const char* schedule : {"gpipe", "1f1b"})
      for (int zero : {0, 1, 2, 3}) {
        DegreePlanOptions options;
        options.degrees = degrees;
        options.schedule = schedule;
        options.zero = zero;
        options.microbatch = zero == 0 ? 1 : 2;
        all.push_back(options);
      }
  return all;
}

TrainingGraph graph_of(bool tied, int64_t vocabulary = 32) {
  GptShape shape;
  shape.layers = 4, shape.batch = 16, shape.vocabulary = vocabulary, shape.tied = tied;
  return make_gpt_training(shape, DType::kF32);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(program_simulation)

BOOST_AUTO_TEST_CASE(a_rank_alone_takes_the_sum_of_its_work) {
  const auto s = simulate_all({HandProgram(0, 1).work(3).work(4).run(0).run(0)});
  BOOST_TEST(s.step.value == 14);
  check_parts(s.ranks[0], 14, 0, 0);
  BOOST_TEST(s.ranks[0].actions.size() == 2u);
  BOOST_TEST(s.ranks[0].actions[1].begin.value == 7);
}

BOOST_AUTO_TEST_CASE(a_step_of_nothing_takes_no_time) {
  const auto s = simulate_all({HandProgram(0, 1)});
  BOOST_TEST(s.step.value == 0);
  BOOST_TEST(critical_path(s).empty());
  BOOST_TEST(critical_path_in_words(s, {"s0"}).find("critical path, 0 us") == 0u);
}

BOOST_AUTO_TEST_CASE(a_message_travels_while_its_sender_goes_on_and_its_receiver_works) {
  // Sent at 3, there at 5; the receiver has worked until 1 and needs it then.
  const auto s = simulate_all({HandProgram(0, 2).work(3).send(1, 2, 7).work(4).run(0),
                               HandProgram(1, 2).receive(0, 2, 7).work(1).after(0).work(6).run(0)});
  BOOST_TEST(s.step.value == 11);
  check_parts(s.ranks[0], 7, 0, 4);
  check_parts(s.ranks[1], 7, 2, 2);  // 1 .. 3 nobody has sent it, 3 .. 5 it is on the wire
}

BOOST_AUTO_TEST_CASE(a_message_that_came_early_is_waited_for_by_nobody) {
  const auto s = simulate_all(
      {HandProgram(0, 2).work(1).send(1, 2, 7).run(0), HandProgram(1, 2).work(5).receive(0, 2, 7).work(1).run(0)});
  BOOST_TEST(s.step.value == 6);
  BOOST_TEST(s.ranks[1].waits.empty());
}

BOOST_AUTO_TEST_CASE(a_device_waits_for_its_host_only_while_it_has_nothing_else_to_do) {
  Cluster cluster = slow_cluster(1);
  cluster.device.dispatch = 2;
  // Small ops come every 2 seconds; while the large one runs the host gets ahead of the device.
  BOOST_TEST(simulate_all({HandProgram(0, 1).work(1).work(1).run(0).program()}, cluster).step.value == 4);
  const auto ahead =
      simulate_all({HandProgram(0, 1).work(9).open(ActionKind::kForward).work(1).run(0).run(1).program()}, cluster);
  BOOST_TEST(ahead.step.value == 10);
}

BOOST_AUTO_TEST_CASE(a_host_waits_for_messages_and_not_for_collectives) {
  Cluster cluster = slow_cluster(2);
  cluster.device.dispatch = 2;
  HandProgram sender(0, 2), receiver(1, 2), first(0, 2), second(1, 2);
  sender.work(5).send(1, 4, 7).run(0);
  receiver.receive(0, 4, 7).after(0).work(1).work(1).work(1).run(0);
  first.work(5).all_reduce(4).run(0);
  second.all_reduce(4).after(0).work(1).work(1).work(1).run(0);
  // Sent at 5, there at 9; only then the receiver's host goes on and hands over three ops.
  BOOST_TEST(simulate_all({sender.program(), receiver.program()}, cluster).ranks[1].actions[0].end.value == 9 + 3 * 2);
  // The all_reduce ends at 9, too; all three ops were handed over by then.
  BOOST_TEST(simulate_all({first.program(), second.program()}, cluster).ranks[1].actions[0].end.value == 9 + 3);
}

BOOST_AUTO_TEST_CASE(a_large_message_of_a_rank_that_sends_itself_waits_until_the_rank_waits) {
  // Sent at 3 while the receiver works until 5: it moves when the sender has worked until 10 and its step is over.
  const auto late = simulate_without_overlap(
      {HandProgram(0, 2).work(3).send(1, 4, 7).work(7).run(0), HandProgram(1, 2).work(5).receive(0, 4, 7).run(0)});
  BOOST_TEST(late.exchanges[0].begin.value == 10);
  BOOST_TEST(late.step.value == 14);
  // A small one is there before anybody asks.
  const auto small = simulate_without_overlap(
      {HandProgram(0, 2).work(3).send(1, 2, 7).work(7).run(0), HandProgram(1, 2).work(5).receive(0, 2, 7).run(0)});
  BOOST_TEST(small.exchanges[0].begin.value == 3);
  BOOST_TEST(small.ranks[1].actions[0].end.value == 5);
}

BOOST_AUTO_TEST_CASE(a_large_message_that_is_waited_for_is_handed_over_by_its_sender) {
  const auto s = simulate_without_overlap(
      {HandProgram(0, 2).work(3).send(1, 4, 7).work(7).run(0), HandProgram(1, 2).receive(0, 4, 7).work(1).run(0)});
  BOOST_TEST(s.exchanges[0].begin.value == 3);
  BOOST_TEST(s.ranks[1].actions[0].end.value == 7);   // with the message
  BOOST_TEST(s.ranks[0].actions[0].end.value == 14);  // which cannot work meanwhile
}

BOOST_AUTO_TEST_CASE(ranks_that_exchange_themselves_come_to_a_collective_when_they_need_it) {
  const std::vector<HandProgram> ranks = {HandProgram(0, 2).all_reduce(4).work(6).after(0).work(1).run(0),
                                          HandProgram(1, 2).all_reduce(4).work(6).after(0).work(1).run(0)};
  BOOST_TEST(simulate_all(ranks).step.value == 7);  // beside the work
  const auto s = simulate_without_overlap(ranks);
  BOOST_TEST(s.exchanges[0].begin.value == 6);
  BOOST_TEST(s.step.value == 11);
}

BOOST_AUTO_TEST_CASE(ranks_that_share_processors_take_turns) {
  const std::vector<HandProgram> ranks = {HandProgram(0, 3).work(6).run(0), HandProgram(1, 3).work(6).run(0),
                                          HandProgram(2, 3).work(2).run(0)};
  const auto s = simulate_without_overlap(ranks, {2, {}, {}});
  BOOST_TEST(s.step.value == 7);  // three of them on two processors until 3
  check_parts(s.ranks[0], 7, 0, 0);
  check_parts(s.ranks[2], 3, 0, 4);
  BOOST_TEST(s.ranks[2].actions[0].end.value == 3);
}

BOOST_AUTO_TEST_CASE(messages_from_one_port_follow_each_other) {
  const auto s = simulate_all({HandProgram(0, 3).work(1).send(1, 4, 7, 0).send(2, 4, 8, 1).run(0),
                               HandProgram(1, 3).receive(0, 4, 7).run(0), HandProgram(2, 3).receive(0, 4, 8).run(0)});
  BOOST_TEST(s.ranks[1].actions[0].end.value == 5);
  BOOST_TEST(s.ranks[2].actions[0].end.value == 9);
  BOOST_TEST(s.exchanges[1].held_up_by == 0);
}

BOOST_AUTO_TEST_CASE(messages_into_one_port_follow_each_other_and_directions_do_not_meet) {
  const auto s = simulate_all({HandProgram(0, 3).send(2, 4, 7).run(0), HandProgram(1, 3).work(1).send(2, 4, 8).run(0),
                               HandProgram(2, 3).receive(0, 4, 7).receive(1, 4, 8).send(0, 3, 9).run(0)});
  BOOST_TEST(s.ranks[2].actions[0].end.value == 8);
  BOOST_TEST(s.exchanges.back().begin.value == 0);  // the way out of rank 2 is free
}

BOOST_AUTO_TEST_CASE(levels_have_ports_of_their_own) {
  // Ranks 0 and 1 share a node, ranks 2 and 3 another one: what rank 0 sends inside and outside goes side by side.
  Cluster cluster = slow_cluster(2);
  cluster.levels.push_back({"network", 2, 0, 4, 1});
  std::vector<Program> programs;
  for (const HandProgram& hand :
       {HandProgram(0, 4).send(1, 4, 7, 0).send(2, 4, 8, 1).run(0), HandProgram(1, 4).receive(0, 4, 7).run(0),
        HandProgram(2, 4).receive(0, 4, 8).run(0), HandProgram(3, 4)})
    programs.push_back(hand.program());
  const auto s = simulate_all(programs, cluster);
  BOOST_TEST(s.step.value == 4);
  BOOST_TEST(s.sent_per_level == (std::vector<double>{16, 16}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_collective_begins_when_the_last_has_come_and_goes_on_beside_work) {
  const auto s = simulate_all({HandProgram(0, 2).work(1).all_reduce(4).work(2).after(1).work(1).run(0),
                               HandProgram(1, 2).work(5).all_reduce(4).after(1).work(3).run(0)});
  // 5 .. 9 on the wire. Rank 0 works until 3, then waits until 9; rank 1 waits from 5 on.
  BOOST_TEST(s.step.value == 12);
  check_parts(s.ranks[0], 4, 4, 4);
  check_parts(s.ranks[1], 8, 4, 0);
  BOOST_TEST(s.sent_per_level[0] == 32);
}

BOOST_AUTO_TEST_CASE(collectives_of_a_rank_keep_their_order) {
  // Rank 0 comes to {0, 1} first, which rank 1 joins at 6 only; {0, 2} must wait for it.
  const std::vector<std::vector<int>> groups = {{0, 1}, {0, 2}};
  const auto s = simulate_all({HandProgram(0, 3, groups).all_reduce(2, 1).all_reduce(3, 2).run(0),
                               HandProgram(1, 3, groups).work(6).all_reduce(2, 1).run(0),
                               HandProgram(2, 3, groups).all_reduce(3, 2).run(0)});
  BOOST_TEST(s.ranks[1].actions[0].end.value == 8);
  BOOST_TEST(s.ranks[2].actions[0].end.value == 11);
}

BOOST_AUTO_TEST_CASE(a_collective_waits_for_the_ports_it_takes) {
  const auto s = simulate_all({HandProgram(0, 3, {{0, 1}}).send(2, 5, 7).all_reduce(2, 1).run(0),
                               HandProgram(1, 3, {{0, 1}}).all_reduce(2, 1).run(0),
                               HandProgram(2, 3, {{0, 1}}).receive(0, 5, 7).run(0)});
  BOOST_TEST(s.ranks[1].actions[0].end.value == 7);
  check_parts(s.ranks[1], 0, 7, 0);
}

BOOST_AUTO_TEST_CASE(a_send_buffer_is_written_again_only_when_its_message_has_gone) {
  const auto s = simulate_all(
      {HandProgram(0, 2).send(1, 5, 7).wait_sent(0).work(1).run(0), HandProgram(1, 2).receive(0, 5, 7).run(0)});
  BOOST_TEST(s.ranks[0].actions[0].end.value == 6);
}

BOOST_AUTO_TEST_CASE(programs_that_wait_for_ever_are_refused) {
  std::vector<Program> programs = {HandProgram(0, 2).receive(1, 1, 7).after(0).work(1).run(0).program(),
                                   HandProgram(1, 2).receive(0, 1, 8).after(0).work(1).send(0, 1, 7).run(0).program()};
  programs[0].blocks[0].instructions.push_back({SendInstruction{RankId(1), BufferId(0), 8, 8}, {}, {}, "send"});
  auto s = simulate_programs(programs, each_alone(programs), slow_cluster(2));
  BOOST_TEST(s.status().to_string() == "programs deadlock: rank 0 waits for ever in F0");
}

BOOST_AUTO_TEST_CASE(pipelines_with_nothing_to_contend_take_what_their_timetable_takes) {
  auto& registry = PluginRegistry::instance();
  std::mt19937 random(3);
  for (int stages = 1; stages <= 4; ++stages)
    for (int microbatches = 1; microbatches <= 7; ++microbatches)
      for (const char* name : {"gpipe", "1f1b"}) {
        ScheduleRequest request;
        request.num_stages = stages;
        request.num_microbatches = microbatches;
        const Timetable table = *(**registry.schedule(name)).build(request);
        // Messages that cost something share a way out where a stage sends both ways: beyond two stages they are free.
        const int64_t message = stages <= 2 ? 1 : 0;
        SimulationCosts costs;
        std::vector<HandProgram> programs;
        for (int s = 0; s < stages; ++s) {
          const auto forward = static_cast<int64_t>(1 + random() % 5),
                     backward = static_cast<int64_t>(1 + random() % 9);
          StageCosts stage;
          stage.forward = Seconds(static_cast<double>(forward));
          stage.backward = Seconds(static_cast<double>(backward));
          costs.stages.push_back(stage);
          if (s > 0) costs.transfer.emplace_back(static_cast<double>(message));
          HandProgram program(s, stages);
          if (s > 0) program.receive(s - 1, message, 1000).after(0);
          program.work(forward);
          if (s + 1 < stages) program.send(s + 1, message, 1000, 0);
          program.open(ActionKind::kBackward);
          if (s + 1 < stages) program.receive(s + 1, message, 2000).after(0);
          program.work(backward);
          if (s > 0) program.send(s - 1, message, 2000, 1);
          for (const Action& action : table.workers[static_cast<size_t>(s)])
            program.run(action.kind == ActionKind::kForward ? 0 : 1, action.microbatch);
          programs.push_back(program);
        }
        const auto simulation = simulate_all(programs);
        const Simulation expected = *simulate_timetable(table, costs);
        BOOST_TEST(simulation.step.value == expected.step.value,
                   name << " " << stages << " stages " << microbatches << " microbatches");
        for (size_t w = 0; w < expected.timelines.size(); ++w) {
          BOOST_TEST(simulation.ranks[w].busy.value == expected.busy[w].value);
          BOOST_TEST(simulation.ranks[w].actions.back().end.value == expected.timelines[w].back().end.value);
        }
      }
}

BOOST_AUTO_TEST_CASE(one_rank_of_a_stage_says_what_all_of_them_say) {
  int num_alike = 0, num_unlike = 0;
  for (const auto& [tied, vocabulary] : {std::pair(false, 32), std::pair(true, 32), std::pair(true, 33)}) {
    const TrainingGraph graph = graph_of(tied, vocabulary);
    for (const DegreePlanOptions& options : many_plans()) {
      const Plan plan = make_plan(graph, options);
      const Cluster cluster = test_cluster(plan.num_slots());
      const auto all = simulate_all(lower_plan(graph, plan), cluster);
      LoweringOptions first;
      first.only_first_of_stage = true;
      const auto programs = lower(graph, plan, make_timetable(plan), Binding::identity(plan.num_slots()), first);
      std::vector<std::vector<RankId>> alike;
      for (const PlanStage& stage : plan.stages) {
        alike.emplace_back();
        for (SlotId slot : stage.slots) alike.back().emplace_back(slot.value);
      }
      const bool stands = stand_for_all(*programs, alike);
      const auto some = simulate_programs(*programs, alike, cluster);
      BOOST_REQUIRE_MESSAGE(some.is_ok(), some.status().to_string());
      BOOST_TEST(some->step.value == all.step.value, boost::test_tools::tolerance(stands ? 1e-12 : 1e-9));
      num_unlike += stands ? 0 : 1;
      if (!stands) continue;
      num_alike += plan.num_slots() > static_cast<int>(plan.stages.size()) ? 1 : 0;
      // The first rank's pieces are the largest of uneven ones.
      const double rounded_up = vocabulary == 33 ? 3e-3 : 1e-9;
      BOOST_TEST(some->sent_per_level[0] == all.sent_per_level[0], boost::test_tools::tolerance(rounded_up));
    }
  }
  BOOST_TEST(num_alike >= 30);
  BOOST_TEST(num_unlike >= 8);
}

BOOST_AUTO_TEST_CASE(the_parts_of_every_ranks_time_make_the_step_and_the_path_has_no_gap) {
  const TrainingGraph graph = graph_of(true);
  for (const DegreePlanOptions& options : many_plans()) {
    const Plan plan = make_plan(graph, options);
    auto s = simulate_plan(graph, plan, test_cluster(plan.num_slots()), make_timetable(plan));
    BOOST_REQUIRE_MESSAGE(s.is_ok(), s.status().to_string());
    for (const RankTimeline& rank : s->ranks) {
      BOOST_TEST((rank.busy + rank.exposed + rank.bubble).value == s->step.value, boost::test_tools::tolerance(1e-9));
      BOOST_TEST(rank.bubble.value >= 0);
    }
    double at = 0;
    for (const PathPart& part : critical_path(*s)) {
      BOOST_TEST(part.begin.value == at);
      at = part.end.value;
    }
    BOOST_TEST(at == s->step.value);
  }
}

BOOST_AUTO_TEST_CASE(the_critical_path_is_told_in_words) {
  std::vector<HandProgram> programs = {HandProgram(0, 2).work(3).send(1, 2, 7).run(0),
                                       HandProgram(1, 2).receive(0, 2, 7).after(0).work(6).run(0)};
  programs[1].open(ActionKind::kBackward).work(4).run(1);
  const auto s = simulate_all(programs);
  // `after` of the first work names the receipt, so it begins at 5.
  BOOST_TEST(critical_path_in_words(s, {"first", "second"}) ==
             "critical path, 15.00 s\n"
             "     5.00 s  first .. second: F0, of it 2.00 s in messages\n"
             "    10.00 s  second: F0 .. B0\n"
             "  computing 87 %, collectives 0 %, messages between stages 13 %; second alone 67 %\n");
}

BOOST_AUTO_TEST_CASE(the_trace_is_json_with_every_block_wait_and_exchange) {
  const auto s = simulate_all({HandProgram(0, 2).work(3).send(1, 2, 7).all_reduce(1).run(0),
                               HandProgram(1, 2).receive(0, 2, 7).after(0).work(1).all_reduce(1).run(0)});
  const auto trace = nlohmann::json::parse(chrome_trace(s, {"s\"0", "s1"}));
  std::map<std::string, int> count;
  for (const auto& event : trace.at("traceEvents")) ++count[event.value("cat", event.at("ph"))];
  BOOST_TEST(count["F"] == 2);
  BOOST_TEST(count["message"] == 1);
  BOOST_TEST(count["collective"] == 2);
  BOOST_TEST(count["wait"] == static_cast<int>(s.ranks[0].waits.size() + s.ranks[1].waits.size()));
  BOOST_TEST(trace["traceEvents"][0]["args"]["name"] == "s\"0, rank 0");
  for (const auto& event : trace["traceEvents"])
    if (event.value("cat", "") == "message") {
      BOOST_TEST(event["ts"] == 3e6);
      BOOST_TEST(event["dur"] == 2e6);
    }
}

BOOST_AUTO_TEST_CASE(the_picture_has_a_row_per_rank_a_scale_and_a_legend) {
  const auto s = simulate_all(
      {HandProgram(0, 2).work(3).send(1, 2, 7).run(0), HandProgram(1, 2).receive(0, 2, 7).after(0).work(4).run(0)});
  const std::string svg = timeline_svg(s, {"s<0>", "s1"}, "a & b");
  for (const char* part : {"<svg ", "a &amp; b", "s&lt;0&gt;, rank 0", "s1, rank 1", "exposed communication",
                           ">8.00 s<", "<title>F0: 3.00 s from 0 us</title>", "</svg>"})
    BOOST_TEST(svg.find(part) != std::string::npos, part << " is missing in\n" << svg);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
