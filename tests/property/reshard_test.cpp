// Resharding as it runs: for all pairs of specs on a mesh the instructions that BlockBuilder writes, executed by
// Executor over comm/inproc on device/reference, leave every rank with the box of the target spec.
#include <boost/test/unit_test.hpp>

#include "framework/base/random.hpp"
#include "framework/program/block_builder.hpp"
#include "framework/runtime/executor.hpp"
#include "tests/support/gpt.hpp"
#include "tests/support/plans.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/specs.hpp"

namespace altiplano::test {

namespace {

struct Pair {
  ShardingSpec from, to;
};

/// All pairs of one partial kind.
std::vector<Pair> all_pairs(size_t rank, const MeshShape& mesh) {
  std::vector<Pair> pairs;
  for (PartialKind kind : {PartialKind::kSum, PartialKind::kMax}) {
    auto specs = all_specs(rank, mesh, true, kind);
    for (const ShardingSpec& from : specs)
      for (const ShardingSpec& to : specs) {
        bool is_plain = from.partial.is_empty() && to.partial.is_empty();
        if (kind == PartialKind::kSum || !is_plain) pairs.push_back({from, to});
      }
  }
  return pairs;
}

/// Whole numbers, some negative, so that sums are exact and zeros are noticed.
double element_of(size_t pair, int64_t index) {
  return static_cast<double>(random_word(random_stream(3, "whole"), pair, static_cast<uint64_t>(index)) % 2001) - 1500;
}

/// What a device holds of element `index`: its share of the sum, or its candidate for the maximum.
double share_of(const ShardingSpec& spec, const MeshShape& mesh, int device, size_t pair, int64_t index) {
  double whole = element_of(pair, index);
  if (spec.partial.is_empty()) return whole;
  std::vector<int> members = mesh.group(device, spec.partial);
  size_t position = static_cast<size_t>(std::find(members.begin(), members.end(), device) - members.begin());
  size_t chosen = static_cast<size_t>(index) % members.size();
  if (spec.partial_kind == PartialKind::kMax)
    return position == chosen ? whole : whole - 1 - static_cast<double>(position);
  double noise = static_cast<double>(position) * 7 + 1;
  if (position != chosen) return noise;
  for (size_t other = 0; other < members.size(); ++other)
    if (other != chosen) whole -= static_cast<double>(other) * 7 + 1;
  return whole;
}

template <typename Visit>
void for_each_element(const Box& box, const Shape& shape, Visit visit) {
  for (int64_t local = 0; local < box.num_elements(); ++local) {
    int64_t rest = local, offset = 0, stride = 1;
    for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
      offset += (box.origin[d] + rest % box.extents[d]) * stride;
      rest /= box.extents[d];
    }
    visit(static_cast<size_t>(local), offset);
  }
}

/// One world of ranks that reshards a tensor along every pair in one block.
class ReshardRun {
 public:
  ReshardRun(const MeshShape& mesh, Shape shape, std::vector<Pair> pairs, bool bucketed)
      : shape_(std::move(shape)), pairs_(std::move(pairs)), bucketed_(bucketed) {
    GptShape small;
    small.layers = 1, small.batch = 4 * mesh.degree(Axis::kData);
    graph_ = make_gpt_training(small);
    DegreePlanOptions options;
    options.degrees = {mesh.degree(Axis::kData), mesh.degree(Axis::kTensor), 1};
    auto plan = plan_from_degrees(graph_, test_cluster(options.degrees.num_ranks()), options);
    BOOST_REQUIRE_MESSAGE(plan.is_ok(), plan.status().to_string());
    plan_ = *plan;
    timetable_ = make_timetable(plan_);
    binding_ = Binding::identity(plan_.num_slots());
    auto assignment = assign_shardings(graph_, plan_);
    BOOST_REQUIRE_MESSAGE(assignment.is_ok(), assignment.status().to_string());
    context_ = std::make_unique<LoweringContext>(graph_, plan_, timetable_, binding_, *assignment, options_);
    results_.resize(static_cast<size_t>(mesh.num_devices()));
  }

  void run() {
    int ranks = plan_.num_slots();
    std::vector<Program> programs;
    for (int rank = 0; rank < ranks; ++rank) programs.push_back(write_program(rank));
    Status status = verify_programs(programs);
    BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
    status = run_ranks(
        ranks, [&](Rendezvous& rendezvous) { return run_rank(programs[rendezvous.rank().index()], rendezvous); });
    BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string());
    for (size_t p = 0; p < pairs_.size(); ++p) check(p);
  }

 private:
  BufferId persistent(Program& program, const std::string& name, const Box& box) {
    Buffer buffer;
    buffer.id = BufferId(static_cast<int64_t>(program.buffers.size()));
    buffer.name = name;
    buffer.arena = Arena::kPersistent;
    buffer.dtype = DType::kF64;
    buffer.extents = box.extents;
    buffer.bytes = box.num_elements() * size_of(DType::kF64);
    buffer.offset = program.persistent_bytes;
    program.persistent_bytes += (buffer.bytes + 63) / 64 * 64;
    program.buffers.push_back(buffer);
    program.tensors.push_back({name, TensorRole::kParameter, buffer.id, shape_, box, true, {}});
    return buffer.id;
  }

  Program write_program(int rank) {
    Program program;
    program.rank = RankId(rank);
    program.stage = StageId(0);
    program.groups = context_->groups;
    std::vector<ReshardItem> items;
    const MeshShape& mesh = context_->mesh(StageId(0));
    for (const Pair& pair : pairs_) {
      BufferId in = persistent(program, "in", local_box(pair.from, shape_, mesh, rank));
      BufferId out = persistent(program, "out", local_box(pair.to, shape_, mesh, rank));
      items.push_back({pair.from.to_string() + " -> " + pair.to.to_string(), shape_, DType::kF64, pair.from, pair.to,
                       in, out, false});
    }
    Block block;
    block.id = BlockId(0);
    block.name = "U";
    block.kind = ActionKind::kUpdate;
    BlockBuilder builder(*context_, program, rank, block);
    std::vector<ReshardItem*> together;
    for (ReshardItem& item : items) {
      if (!bucketed_) builder.reshard({&item});
      together.push_back(&item);
    }
    if (bucketed_) builder.reshard(together);
    program.work_bytes = builder.finish();
    program.blocks.push_back(std::move(block));
    program.step.push_back({{ActionKind::kUpdate, 0, 0}, BlockId(0), -1});
    return program;
  }

  Status run_rank(const Program& program, Rendezvous& rendezvous) {
    ALTIPLANO_ASSIGN(CommBackend * comm, PluginRegistry::instance().comm("inproc"));
    ALTIPLANO_ASSIGN(DeviceBackend * backend, PluginRegistry::instance().device("reference"));
    ALTIPLANO_ASSIGN(auto device, backend->open({1, rendezvous.world_size()}));
    KernelCache kernels(*device, "reference", {}, 1);
    ALTIPLANO_ASSIGN(auto communicator, comm->connect(rendezvous, {}));
    ALTIPLANO_ASSIGN(auto executor, Executor::create(program, *device, *communicator, kernels));
    int rank = rendezvous.rank().value;
    const MeshShape& mesh = context_->mesh(StageId(0));
    for (size_t p = 0; p < pairs_.size(); ++p) {
      const PersistentTensor& in = program.tensors[2 * p];
      auto* data = static_cast<double*>(executor->data(in));
      for_each_element(in.box, shape_, [&](size_t local, int64_t index) {
        data[local] = share_of(pairs_[p].from, mesh, rank, p, index);
      });
    }
    SyntheticNothing nothing;
    Status status = executor->run_step(nothing, {}, [](const StepTotals&, StepScalars&) { return true; });
    if (!status.is_ok()) {
      communicator->abort(status.to_string());
      return status;
    }
    for (const PersistentTensor& tensor : program.tensors) {
      auto* data = static_cast<const double*>(executor->data(tensor));
      results_[static_cast<size_t>(rank)].emplace_back(data, data + tensor.box.num_elements());
    }
    return Status::ok();
  }

  class SyntheticNothing : public InputSource {
    Status fill(ValueId, const Box&, void*) override { return Status::ok(); }
  };

  /// The out boxes of each group along the partial axes combine to the whole; the in boxes are as they were.
  void check(size_t p) {
    const MeshShape& mesh = context_->mesh(StageId(0));
    const auto& [from, to] = pairs_[p];
    bool right = true, untouched = true;
    for (int device = 0; device < mesh.num_devices(); ++device) {
      const auto& mine = results_[static_cast<size_t>(device)];
      for_each_element(local_box(from, shape_, mesh, device), shape_, [&](size_t local, int64_t index) {
        untouched = untouched && mine[2 * p][local] == share_of(from, mesh, device, p, index);
      });
      Box box = local_box(to, shape_, mesh, device);
      for_each_element(box, shape_, [&](size_t local, int64_t index) {
        bool is_max = to.partial_kind == PartialKind::kMax;
        double combined = is_max ? -1e300 : 0;
        for (int member : mesh.group(device, to.partial)) {
          double value = results_[static_cast<size_t>(member)][2 * p + 1][local];
          combined = is_max ? std::max(combined, value) : combined + value;
        }
        if (to.partial.is_empty()) combined = mine[2 * p + 1][local];
        right = right && combined == element_of(p, index);
      });
    }
    std::string name =
        fmt::format("{} {} -> {} on {}", to_string(shape_), from.to_string(), to.to_string(), mesh.to_string());
    BOOST_TEST(right, name << " gives wrong values");
    BOOST_TEST(untouched, name << " changed its source");
  }

  Shape shape_;
  std::vector<Pair> pairs_;
  bool bucketed_;
  TrainingGraph graph_;
  Plan plan_;
  Timetable timetable_;
  Binding binding_;
  LoweringOptions options_;
  std::unique_ptr<LoweringContext> context_;
  std::vector<std::vector<std::vector<double>>> results_;  ///< [rank][tensor]
};

const std::vector<Shape> kShapes = {{}, {1}, {5}, {8}, {3, 4}, {1, 7}, {5, 2}};

}  // namespace

BOOST_AUTO_TEST_SUITE(resharding)

BOOST_AUTO_TEST_CASE(every_pair_of_specs_reshards_to_the_right_boxes) {
  for (const MeshShape& mesh : test_meshes())
    for (const Shape& shape : kShapes) ReshardRun(mesh, shape, all_pairs(shape.size(), mesh), false).run();
}

BOOST_AUTO_TEST_CASE(tensors_that_share_a_collective_do_not_mix) {
  for (const MeshShape& mesh : test_meshes()) {
    for (const Shape& shape : {Shape{5}, Shape{3, 4}}) {
      auto pairs = all_pairs(shape.size(), mesh);
      auto twice = pairs;
      twice.insert(twice.end(), pairs.begin(), pairs.end());
      ReshardRun(mesh, shape, twice, true).run();
    }
  }
}

BOOST_AUTO_TEST_CASE(three_dims_reshard_too) {
  MeshShape mesh{{{Axis::kData, 2}, {Axis::kTensor, 2}}};
  ReshardRun(mesh, {3, 2, 5}, all_pairs(3, mesh), false).run();
}

BOOST_AUTO_TEST_CASE(a_path_ends_where_it_should_and_costs_nothing_between_equals) {
  for (const MeshShape& mesh : test_meshes()) {
    for (const auto& [from, to] : all_pairs(2, mesh)) {
      auto path = reshard_path(from, to, {6, 4}, mesh);
      BOOST_REQUIRE_MESSAGE(path.is_ok(), path.status().to_string());
      if (normalized(from, mesh) == normalized(to, mesh)) {
        BOOST_TEST(path->empty());
        continue;
      }
      BOOST_TEST((path->front().before == normalized(from, mesh)));
      BOOST_TEST((path->back().after == normalized(to, mesh)));
      for (size_t i = 1; i < path->size(); ++i) BOOST_TEST(((*path)[i].before == (*path)[i - 1].after));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_partial_sum_is_no_partial_max) {
  MeshShape mesh{{{Axis::kData, 2}, {Axis::kTensor, 2}}};
  auto path = reshard_path(*ShardingSpec::parse("[-] sum{data}"), *ShardingSpec::parse("[-] max{tensor}"), {4}, mesh);
  BOOST_TEST(path.status().message() ==
             "no reshard from [-] sum{data} to [-] max{tensor}: a partial sum is no partial max");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace altiplano::test
