// Plan invariance (design invariant 2): every legal plan trains the same model. A pairwise cover of all settings here;
// the whole grid is in tests/slow.
#include "tests/support/invariance.hpp"

#include <algorithm>
#include <random>
#include <set>

#include "tests/support/covering_array.hpp"
#include "tests/support/plans.hpp"

namespace altiplano::test {

namespace {

// Factors of the cover, each an index into its list.
enum {
  kData,
  kTensor,
  kPipeline,
  kMicrobatches,
  kSchedule,
  kZero,
  kSequence,
  kTied,
  kOptimizer,
  kFused,
  kRecompute,
  kNumFactors
};
const std::vector<int> kDegrees = {1, 2, 3, 4, 6, 8};
const std::vector<int64_t> kMicrobatchCounts = {1, 2, 3, 4};
const std::vector<std::string> kSchedules = {"gpipe", "1f1b"}, kOptimizers = {"adamw", "sgd"};

size_t level(const Row& row, int factor) {
  return static_cast<size_t>(row[static_cast<size_t>(factor)]);
}

Degrees degrees_of(const Row& row) {
  return {kDegrees[level(row, kData)], kDegrees[level(row, kTensor)], kDegrees[level(row, kPipeline)]};
}

bool is_legal(const Row& row) {
  Degrees d = degrees_of(row);
  if (std::find(kDegrees.begin(), kDegrees.end(), d.num_ranks()) == kDegrees.end()) return false;
  if (24 / d.data % kMicrobatchCounts[level(row, kMicrobatches)] != 0) return false;
  // Settings without meaning stand at their first level.
  return (d.data > 1 || row[kZero] == 0) && (d.tensor > 1 || row[kSequence] == 0) &&
         (d.pipeline > 1 || row[kSchedule] == 0);
}

PlanCase case_of_row(const Row& row) {
  PlanCase c;
  c.degrees = degrees_of(row);
  c.microbatch = 24 / c.degrees.data / kMicrobatchCounts[level(row, kMicrobatches)];
  c.schedule = kSchedules[level(row, kSchedule)];
  c.zero = row[kZero];
  c.sequence_parallel = row[kSequence] == 1;
  c.tied = row[kTied] == 0;
  c.optimizer = kOptimizers[level(row, kOptimizer)];
  c.fused = row[kFused] == 1;
  c.recompute = row[kRecompute] == 1;
  return c;
}

std::vector<PlanCase> cover() {
  std::vector<int> levels(kNumFactors, 2);
  levels[kData] = levels[kTensor] = levels[kPipeline] = static_cast<int>(kDegrees.size());
  levels[kMicrobatches] = static_cast<int>(kMicrobatchCounts.size());
  levels[kZero] = Plan::kMostZero + 1;
  std::vector<PlanCase> cases;
  for (const Row& row : pairwise_cover(levels, is_legal)) cases.push_back(case_of_row(row));
  return cases;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plan_invariance)

BOOST_AUTO_TEST_CASE(a_cover_is_complete_and_small) {
  auto legal = [](const Row& row) { return row[0] != 2 || row[1] == 0; };
  std::vector<Row> rows = pairwise_cover({3, 3, 2, 2}, legal);
  std::set<LevelPair> covered;
  for (const Row& row : rows) {
    BOOST_TEST(legal(row));
    for (const LevelPair& pair : pairs_of(row)) covered.insert(pair);
  }
  for (const Row& row : full_grid({3, 3, 2, 2}, legal))
    for (const LevelPair& pair : pairs_of(row)) BOOST_TEST(covered.count(pair) == 1u);
  BOOST_TEST(rows.size() <= 9u);
}

BOOST_AUTO_TEST_CASE(a_pairwise_cover_of_all_settings_trains_as_one_rank) {
  auto cases = cover();
  BOOST_TEST_MESSAGE(cases.size() << " plans");
  BOOST_TEST(cases.size() >= 25u);
  TrainOptions options;
  options.steps = 3;
  options.validate = true;
  for (const PlanCase& c : cases) check_invariant(c, options);
}

// Layers as the user cuts them, also when the ends stand alone.
BOOST_AUTO_TEST_CASE(uneven_layer_splits_train_as_one_rank) {
  TrainOptions options;
  options.steps = 3;
  for (const std::vector<int64_t>& split : {std::vector<int64_t>{1, 7}, {5, 1, 2}, {1, 8, 1}, {9, 1}}) {
    PlanCase c;
    c.degrees.pipeline = static_cast<int>(split.size());
    c.degrees.tensor = split.size() == 3 ? 2 : 1;
    c.split = split;
    c.microbatch = 12;
    check_invariant(c, options);
  }
}

// Fewer microbatches than stages (field case P06).
BOOST_AUTO_TEST_CASE(fewer_microbatches_than_stages_train_as_one_rank) {
  TrainOptions options;
  options.steps = 2;
  for (const char* schedule : {"gpipe", "1f1b"}) {
    for (int64_t microbatches : {1, 2, 3}) {
      PlanCase c;
      c.degrees.pipeline = 4;
      c.schedule = schedule;
      c.microbatch = 24 / microbatches;
      check_invariant(c, options);
    }
  }
}

namespace {

/// Stages with these tensor degrees and one data degree.
Plan plan_of_meshes(const TrainingGraph& graph, int data, const std::vector<int>& tensor, bool sequence_parallel) {
  DegreePlanOptions options;
  options.degrees = {data, *std::max_element(tensor.begin(), tensor.end()), static_cast<int>(tensor.size())};
  options.microbatch = 24 / data / 3;
  options.sequence_parallel = sequence_parallel;
  Plan plan = make_plan(graph, options);
  int64_t slot = 0;
  for (size_t s = 0; s < tensor.size(); ++s) {
    PlanStage& stage = plan.stages[s];
    stage.mesh.axes = {{Axis::kData, data}, {Axis::kTensor, tensor[s]}};
    stage.slots.clear();
    for (int i = 0; i < data * tensor[s]; ++i) stage.slots.emplace_back(slot++);
  }
  Status status = verify_plan(plan, graph);
  BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
  return plan;
}

}  // namespace

BOOST_AUTO_TEST_CASE(stages_with_different_tensor_degrees_train_as_one_rank) {
  TrainOptions options;
  options.steps = 3;
  for (auto [data, tensor] :
       {std::pair{1, std::vector<int>{1, 2}}, {1, {2, 1}}, {2, {1, 2}}, {1, {4, 2, 1}}, {1, {1, 3, 2}}, {2, {2, 1}}}) {
    for (bool tied : {true, false}) {
      PlanCase c;
      c.tied = tied;
      const TrainingGraph& graph = graph_of(c);
      Plan plan = plan_of_meshes(graph, data, tensor, tied);
      std::string off = difference(train(graph, plan, options), one_rank_run(c, DType::kF64, options));
      BOOST_TEST(off.empty(), plan.to_yaml() << off);
    }
  }
}

// Who takes which slot is the allocation's affair.
BOOST_AUTO_TEST_CASE(slots_on_any_ranks_train_as_one_rank) {
  std::mt19937_64 random(5);
  for (int zero : {0, 1, 3})
    for (Degrees degrees : {Degrees{2, 2, 2}, {3, 1, 2}, {1, 2, 3}}) {
      PlanCase c;
      c.degrees = degrees;
      c.zero = degrees.data > 1 ? zero : 0;
      TrainOptions options;
      options.steps = 2;
      options.validate = true;
      options.binding = Binding::identity(degrees.num_ranks());
      std::ranges::shuffle(options.binding.rank_of_slot, random);
      check_invariant(c, options);
    }
}

BOOST_AUTO_TEST_CASE(the_same_plan_twice_gives_the_same_bits) {
  TrainOptions options;
  options.steps = 3;
  for (Degrees degrees : {Degrees{1, 1, 1}, {2, 2, 1}, {2, 1, 2}, {1, 2, 2}}) {
    PlanCase c;
    c.degrees = degrees;
    const TrainingGraph& graph = graph_of(c);
    Plan plan = plan_of(c, graph);
    BOOST_TEST(is_bit_identical(train(graph, plan, options), train(graph, plan, options)), c.to_string());
  }
}

BOOST_AUTO_TEST_CASE(recomputing_changes_memory_and_no_bit) {
  for (const char* device : {"reference", "cpu"}) {
    for (Degrees degrees : {Degrees{1, 1, 1}, {2, 1, 2}, {1, 2, 2}}) {
      TrainOptions options;
      options.steps = 2;
      options.device = device;
      PlanCase keeping;
      keeping.degrees = degrees;
      keeping.fused = true;
      PlanCase recomputing = keeping;
      recomputing.recompute = true;
      const TrainingGraph &whole = graph_of(keeping, DType::kF32), &again = graph_of(recomputing, DType::kF32);
      const TrainResult kept = train(whole, plan_of(keeping, whole), options);
      const TrainResult run = train(again, plan_of(recomputing, again), options);
      BOOST_TEST(is_bit_identical(kept, run), device << ": " << recomputing.to_string());
      BOOST_TEST(run.peak_bytes[0] < kept.peak_bytes[0], device << ": " << recomputing.to_string());
      BOOST_TEST(run.peak_bytes == run.predicted_bytes, boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(ten_steps_train_as_one_rank) {
  for (Degrees degrees : {Degrees{2, 1, 2}, {2, 2, 1}}) {
    PlanCase c;
    c.degrees = degrees;
    check_invariant(c);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
