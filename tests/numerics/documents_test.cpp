// Packed documents: attention stays within each, every plan trains them alike, and a sample of several documents is the
// same as each document alone.
#include <atomic>
#include <cmath>

#include "tests/support/interpreter.hpp"
#include "tests/support/invariance.hpp"
#include "tests/support/tamper.hpp"

namespace altiplano::test {

namespace {

PlanCase packed_case(Degrees degrees, int number) {
  PlanCase c;
  c.degrees = degrees;
  c.microbatch = 24 / degrees.data / (1 + number % 3);
  c.schedule = number % 2 == 0 ? "1f1b" : "gpipe";
  c.zero = number / 2 % 4;
  c.sequence_parallel = number % 3 != 1;
  c.tied = number % 4 != 3;
  c.packed = true;
  return c;
}

/// A model of one sample (or one sample per document) of `length` tokens.
TrainingGraph small_gpt(int64_t batch, int64_t length, bool packed, bool restarts) {
  return make_gpt_training({.layers = 2,
                            .hidden = 8,
                            .heads = 2,
                            .vocabulary = 11,
                            .batch = batch,
                            .sequence = length,
                            .packed = packed,
                            .restarts_positions = restarts});
}

const std::vector<std::vector<double>> kDocuments = {{3, 1, 4, 1, 5}, {9, 2, 6}, {5, 3, 5, 8}};
constexpr int64_t kLength = 12;  // the documents' tokens together

/// Labels are the tokens one later, within each document; its last label is 0, as an end of text would be.
void append_document(const std::vector<double>& document, std::vector<double>& tokens, std::vector<double>& labels) {
  tokens.insert(tokens.end(), document.begin(), document.end());
  labels.insert(labels.end(), document.begin() + 1, document.end());
  labels.push_back(0);
}

void set_input(const TrainingGraph& graph, Values& values, const char* name, std::vector<double> data) {
  ValueId id = graph.graph.find_value(name);
  if (id.is_valid()) values[id] = std::move(data);
}

/// All documents in one sample.
Values packed_values(const TrainingGraph& graph) {
  Values values = initial_values(graph);
  std::vector<double> tokens, labels, start, positions;
  for (const auto& document : kDocuments) {
    const auto begin = static_cast<double>(tokens.size());
    append_document(document, tokens, labels);
    for (size_t i = 0; i < document.size(); ++i) {
      start.push_back(begin);
      positions.push_back(static_cast<double>(i));
    }
  }
  set_input(graph, values, "tokens", tokens);
  set_input(graph, values, "labels", labels);
  set_input(graph, values, kDocumentStartInput, start);
  set_input(graph, values, kPositionsInput, positions);
  return values;
}

/// Each document in a sample of its own, filled up with what counts nowhere.
Values separate_values(const TrainingGraph& graph) {
  Values values = initial_values(graph);
  std::vector<double> tokens, labels;
  for (const auto& document : kDocuments) {
    append_document(document, tokens, labels);
    const size_t whole = (tokens.size() + kLength - 1) / kLength * kLength;
    tokens.resize(whole, 7);
    labels.resize(whole, -1);
  }
  set_input(graph, values, "tokens", tokens);
  set_input(graph, values, "labels", labels);
  return values;
}

struct LossAndGradients {
  double loss_sum = 0, token_count = 0;
  std::map<std::string, std::vector<double>> gradients;
};

LossAndGradients run(const std::string& device_name, const TrainingGraph& graph, Values values) {
  std::unique_ptr<Device> device = open_device(device_name);
  Values all = run_graph(*device, graph.graph, std::move(values), {{}, graph.seed});
  LossAndGradients result{all.at(graph.loss_sum)[0], all.at(graph.token_count)[0], {}};
  for (const ParameterTraining& p : graph.parameters) {
    std::vector<double>& sum = result.gradients[graph.graph.value(p.parameter).name];
    for (ValueId contribution : p.contributions) {
      const std::vector<double>& part = all.at(contribution);
      sum.resize(part.size());
      for (size_t i = 0; i < part.size(); ++i) sum[i] += part[i];
    }
  }
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(documents)

BOOST_AUTO_TEST_CASE(packed_documents_are_the_same_as_each_document_alone) {
  const TrainingGraph packed = small_gpt(1, kLength, true, true), alone = small_gpt(3, kLength, false, false);
  const LossAndGradients one = run("reference", packed, packed_values(packed));
  const LossAndGradients three = run("reference", alone, separate_values(alone));
  BOOST_TEST(one.token_count == 12);
  BOOST_TEST(three.token_count == 12);
  BOOST_CHECK_SMALL(one.loss_sum - three.loss_sum, 1e-12);
  BOOST_CHECK_SMALL(largest_difference(one.gradients, three.gradients), 1e-12);
  // Without the option the same tokens are another sample: the comparison can fail.
  const TrainingGraph concatenated = small_gpt(1, kLength, false, false);
  const LossAndGradients other = run("reference", concatenated, packed_values(concatenated));
  BOOST_CHECK_GT(largest_difference(other.gradients, three.gradients), 1e-6);
}

BOOST_AUTO_TEST_CASE(no_document_sees_another_when_positions_count_through_the_sample) {
  const TrainingGraph graph = small_gpt(1, kLength, true, false);
  BOOST_TEST(!graph.graph.find_value(kPositionsInput).is_valid());
  Values values = packed_values(graph), changed = values;
  std::vector<double>& labels = values[graph.inputs[1]];
  std::fill(labels.begin(), labels.begin() + 8, -1);  // only the last document counts
  changed[graph.inputs[1]] = labels;
  for (size_t i = 0; i < 8; ++i) changed[graph.inputs[0]][i] = static_cast<double>(10 - i);
  const LossAndGradients before = run("reference", graph, values), after = run("reference", graph, changed);
  BOOST_TEST(before.token_count == 4);
  BOOST_TEST(before.loss_sum == after.loss_sum);
  BOOST_TEST((before.gradients == after.gradients));
}

// Longer than a tile of keys, so that documents begin and end inside tiles and across them.
BOOST_AUTO_TEST_CASE(the_cpu_agrees_with_the_reference_on_long_packed_samples) {
  const GptShape shape{
      .layers = 1, .hidden = 16, .heads = 2, .batch = 2, .sequence = 101, .dropout = 0.2, .packed = true};
  const TrainingGraph graph = make_gpt_training(shape, DType::kF32);
  Values values = initial_values(graph), batch = random_batch(graph, 11, 5, 7);
  std::vector<double>& start = batch[graph.graph.find_value(kDocumentStartInput)];
  std::vector<double>& positions = batch[graph.graph.find_value(kPositionsInput)];
  for (size_t i = 0; i < start.size(); ++i) {  // documents of 37, 41 and 23 tokens, shifted by the sample
    const int64_t at = static_cast<int64_t>(i % 101), shift = static_cast<int64_t>(i / 101) * 5;
    const int64_t begin = at >= 78 - shift ? 78 - shift : at >= 37 - shift ? 37 - shift : 0;
    start[i] = static_cast<double>(begin);
    positions[i] = static_cast<double>(at - begin);
  }
  values.merge(batch);
  const LossAndGradients reference = run("reference", graph, values), cpu = run("cpu", graph, values);
  BOOST_CHECK_SMALL((cpu.loss_sum - reference.loss_sum) / reference.loss_sum, 1e-5);
  BOOST_CHECK_SMALL(largest_difference(cpu.gradients, reference.gradients), 1e-4);
  // bf16 rounds every product to 2^-9, relative; a loss of two samples averages most of it away.
  const TrainingGraph half = make_gpt_training(shape, DType::kBF16);
  const LossAndGradients rounded = run("cpu", half, values);
  BOOST_CHECK_SMALL((rounded.loss_sum - reference.loss_sum) / reference.loss_sum, 1e-3);
}

BOOST_AUTO_TEST_CASE(every_plan_trains_packed_documents_as_one_rank) {
  TrainOptions options;
  options.steps = 2;
  options.validate = true;
  int number = 0;
  for (Degrees degrees : {Degrees{2, 1, 1}, {1, 2, 1}, {1, 1, 4}, {2, 2, 1}, {1, 3, 1}, {2, 2, 2}})
    check_invariant(packed_case(degrees, number++), options);
}

// The embedding and the head alone on their stages: those that hold no block need no documents.
BOOST_AUTO_TEST_CASE(stages_without_blocks_train_packed_documents_as_one_rank) {
  TrainOptions options;
  options.steps = 2;
  PlanCase c = packed_case({1, 2, 3}, 0);
  c.split = {1, 8, 1};
  check_invariant(c, options);
}

// Every stage is fed by itself: one that is fed another microbatch's documents is found out.
BOOST_AUTO_TEST_CASE(a_stage_that_is_fed_the_wrong_documents_is_noticed) {
  PlanCase c = packed_case({1, 1, 2}, 0);
  c.microbatch = 8;
  TrainOptions options;
  options.steps = 2;
  const TrainResult& one = one_rank_run(c, DType::kF64, options);
  std::atomic<int> changed = 0;
  options.tamper = [&](Program& program) {
    if (program.stage != StageId(1)) return;
    Block& block = block_named(program, "F");
    int at = find_instruction(block, [](const Instruction& i) { return i.label == "feed document_start"; });
    if (at < 0) return;
    std::get<FeedInstruction>(block.instructions[static_cast<size_t>(at)].what).box.origin[0] += 8;
    ++changed;
  };
  const TrainingGraph& graph = graph_of(c);
  const std::string off = difference(train(graph, plan_of(c, graph), options), one);
  BOOST_TEST(changed == 1);
  BOOST_TEST(off.find("loss off by") != std::string::npos, off);
}

BOOST_AUTO_TEST_CASE(every_plan_trains_packed_documents_on_the_cpu_within_rounding) {
  TrainOptions options;
  options.device = "cpu";
  options.steps = 2;
  options.validate = true;
  options.learning_rate = 3e-4;
  int number = 0;
  for (Degrees degrees : {Degrees{2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {2, 2, 2}})
    check_invariant(packed_case(degrees, number++), options, DType::kF32, {1e-5, 1e-4, 0.2, true});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
