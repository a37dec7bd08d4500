#include "plugins/planners/dp/dp_candidates.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "framework/search/stage_program.hpp"
#include "framework/simulate/degree_choice.hpp"
#include "plugins/planners/dp/dp_costs.hpp"

namespace altiplano {

namespace {

/// Sizes of microbatches tried per degrees before those near the best of them, and the work up to which stages of
/// unlike tensor degrees are tried.
constexpr size_t kMostSizes = 8;
/// Degrees whose best is slower than the best of all by more than this are not refined.
constexpr double kRefined = 1.15;
/// Divisions that the search says to be slower by less may be as good.
constexpr double kAsGood = 1.01;
constexpr double kMostMixedWork = 2e7;
/// Sums over layers may say more than a program takes; what does not fit after all is found out when it is planned
/// completely.
constexpr double kMemorySlack = 1.03;

std::vector<int> divisors(int64_t number, int64_t most) {
  std::vector<int> out;
  for (int64_t i = 1; i <= std::min(number, most); ++i)
    if (number % i == 0) out.push_back(static_cast<int>(i));
  return out;
}

using Frontiers = std::map<int, std::vector<LayerCosts>>;  ///< by tensor degree

/// A data degree and the tensor degrees that stages may have.
struct Division {
  int data = 1;
  std::vector<int> tensors;
  std::map<int64_t, double> seconds = {};  ///< by size of microbatches that was tried; infinite: does not fit
};

class Candidates {
 public:
  Candidates(const PlanRequest& request, const GraphFacts& facts)
      : request_(request),
        facts_(facts),
        cut_bytes_(bytes_across_cuts(*request.graph, facts)),
        is_one_forward_one_backward_(request.options.get_string("schedule") == "auto" ||
                                     request.options.get_string("schedule") == "1f1b") {
    const FixedDegrees degrees = fixed_degrees(request.options);
    data_ = degrees.data;
    tensor_ = degrees.tensor;
    pipeline_ = degrees.pipeline;
  }

  Result<std::vector<DpCandidate>> run() {
    const int fixed = std::max(1, data_) * std::max(1, tensor_) * std::max(1, pipeline_);
    if (request_.num_ranks % fixed != 0 || (data_ && tensor_ && pipeline_ && fixed != request_.num_ranks))
      return no_such_degrees(request_.options, {data_, tensor_, pipeline_}, request_.num_ranks);
    for (int data : divisors(request_.num_ranks, request_.num_ranks)) {
      if ((data_ > 0 && data != data_) || request_.global_batch % data != 0) continue;
      ALTIPLANO_RETURN_IF_ERROR(add_for_data(data));
    }
    for (Division& division : divisions_)
      for (int64_t size : thinned(sizes_.at(division.data))) divide(division, size);
    refine();
    std::stable_sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
    drop_repeated();
    return std::move(found_);
  }

 private:
  Status add_for_data(int data) {
    const int units = request_.num_ranks / data;
    std::vector<int> tensors;
    for (int tensor : divisors(units, request_.cluster->devices_per_node()))
      if (tensor_ == 0 || tensor == tensor_) tensors.push_back(tensor);
    if (tensor_ > 0 && tensors.empty()) tensors = {tensor_};
    const std::vector<int64_t> sizes = microbatch_sizes(data);
    if (sizes.empty()) return Status::ok();
    Frontiers& costs = costs_[data];
    for (int tensor : tensors) {
      const MeshShape mesh{{{Axis::kData, data}, {Axis::kTensor, tensor}}};
      auto of_mesh = LayerCosts::frontier(request_, facts_, mesh, sizes.front(), sizes.back());
      if (!of_mesh.is_ok()) return of_mesh.status();
      costs.emplace(tensor, std::move(*of_mesh));
    }
    sizes_[data] = sizes;
    for (int tensor : tensors) divisions_.push_back({data, {tensor}});
    if (tensors.size() > 1 && mixed_work(units, 4 * tensors.size()) <= kMostMixedWork)
      divisions_.push_back({data, tensors});
    return Status::ok();
  }

  /// A choice among tensor degrees may end with one for all stages, which is known.
  void drop_repeated() {
    std::set<std::tuple<int, int64_t, std::vector<DpStage>>> known;
    std::erase_if(found_, [&](const DpCandidate& candidate) {
      return !known.emplace(candidate.data, candidate.microbatch, candidate.stages).second;
    });
  }

  /// Sizes between the best that was tried and its neighbours that were, halving, until none is left: what is thinned
  /// out may hold the largest that fits.
  void refine() {
    double best = std::numeric_limits<double>::infinity();
    for (const DpCandidate& candidate : found_) best = std::min(best, candidate.seconds);
    for (Division& division : divisions_)
      while (const auto size = size_near_best(division, kRefined * best)) divide(division, *size);
  }

  /// Nothing: both neighbours of the best were tried, or it takes longer than `most`.
  std::optional<int64_t> size_near_best(const Division& division, double most) const {
    const auto best = std::ranges::min_element(division.seconds, {}, [](const auto& tried) { return tried.second; });
    if (best == division.seconds.end() || best->second > most) return std::nullopt;
    const std::vector<int64_t>& sizes = sizes_.at(division.data);
    auto place = [&](int64_t size) { return std::ranges::lower_bound(sizes, size) - sizes.begin(); };
    auto between = [&](int64_t a, int64_t b) -> std::optional<int64_t> {
      if (place(b) - place(a) < 2) return std::nullopt;
      return sizes[static_cast<size_t>((place(a) + place(b)) / 2)];
    };
    const auto larger = std::next(best);
    if (larger != division.seconds.end())
      if (const auto size = between(best->first, larger->first)) return size;
    return best == division.seconds.begin() ? std::nullopt : between(std::prev(best)->first, best->first);
  }

  double mixed_work(int units, size_t options) const {
    const double layers = static_cast<double>(request_.graph->graph.layers().size());
    const double stages = std::min<double>(layers, units);
    const double o = static_cast<double>(options);
    return layers * layers * o * stages * layers * layers * units * o;
  }

  /// Samples per replica, ascending: what the job file says, or divisors of a replica's share.
  std::vector<int64_t> microbatch_sizes(int data) const {
    const int64_t share = request_.global_batch / data;
    if (request_.microbatch > 0)
      return share % request_.microbatch == 0 ? std::vector<int64_t>{request_.microbatch} : std::vector<int64_t>{};
    if (request_.accumulation > 0)
      return share % request_.accumulation == 0 ? std::vector<int64_t>{share / request_.accumulation}
                                                : std::vector<int64_t>{};
    std::vector<int64_t> sizes;
    for (int64_t number = 1; number <= std::min<int64_t>(share, Plan::kMostMicrobatches); ++number)
      if (share % number == 0) sizes.push_back(share / number);
    std::reverse(sizes.begin(), sizes.end());
    return sizes;
  }

  /// Evenly; the ends stay.
  static std::vector<int64_t> thinned(std::vector<int64_t> sizes) {
    while (sizes.size() > kMostSizes) {
      std::vector<int64_t> fewer;
      for (size_t i = 0; i < sizes.size(); ++i)
        if (i % 2 == 0 || i + 1 == sizes.size()) fewer.push_back(sizes[i]);
      sizes = std::move(fewer);
    }
    return sizes;
  }

  /// Of stages that run these layers, the most that may be left for the memory to suffice; 0: it never does. One whose
  /// microbatches are all in flight has no more with further stages.
  int most_left(const LayerCosts& costs, int first, int end, int64_t size, int microbatches) const {
    const double limit = kMemorySlack * static_cast<double>(request_.memory_per_rank.value);
    auto fits = [&](int in_flight) { return costs.bytes(first, end, size, in_flight) <= limit; };
    if (fits(microbatches)) return std::numeric_limits<int>::max();
    if (!is_one_forward_one_backward_) return 0;
    int least = 0, most = std::min(microbatches, num_layers() + 1);  // so many fit; so many do not or are not asked for
    while (most - least > 1) (fits((least + most) / 2) ? least : most) = (least + most) / 2;
    return least;
  }

  int num_layers() const { return static_cast<int>(request_.graph->graph.layers().size()); }

  void divide(Division& division, int64_t size) {
    const auto before = found_.size();
    divide(division.data, size, division.tensors, costs_.at(division.data));
    division.seconds[size] = found_.size() > before ? found_.back().seconds : std::numeric_limits<double>::infinity();
  }

  void divide(int data, int64_t size, const std::vector<int>& tensors, const Frontiers& costs) {
    const int units = request_.num_ranks / data, unit = tensors.size() == 1 ? tensors[0] : 1;
    StageQuestion question;
    question.layers = static_cast<int>(request_.graph->graph.layers().size());
    question.devices = units / unit;
    question.microbatches = static_cast<int>(request_.global_batch / data / size);
    question.most_stages = pipeline_ > 0 ? pipeline_ : question.devices;
    question.least_stages = std::max(1, pipeline_);
    question.holds_back = is_one_forward_one_backward_;
    std::vector<int> tensor_of;  // by option: a tensor degree and a point of its frontier
    std::vector<const LayerCosts*> costs_of;
    for (int tensor : tensors)
      for (const LayerCosts& point : costs.at(tensor)) {
        question.option_devices.push_back(tensor / unit);
        tensor_of.push_back(tensor);
        costs_of.push_back(&point);
      }
    question.cuts = cut_seconds(request_, cut_bytes_, {{{Axis::kData, data}, {Axis::kTensor, tensors.back()}}}, size);
    question.price = [&](int first, int end, int option) -> std::optional<StagePrice> {
      const LayerCosts& of = *costs_of[static_cast<size_t>(option)];
      return StagePrice{of.microbatch_seconds(first, end, size), of.step_seconds(first, end),
                        most_left(of, first, end, size, question.microbatches)};
    };
    if (units % unit != 0 || question.least_stages > std::min(question.layers, question.devices)) return;
    if (request_.options.has("pipeline.split")) return take_split(data, size, tensor_of, question);
    if (auto answer = divide_into_stages(question)) take_both(data, size, tensor_of, *answer, question);
  }

  /// Where microbatches wait for the way there and back, stages may be uneven at no cost, by the sums at least; the
  /// most even division is a candidate too where it is as good.
  void take_both(int data, int64_t size, const std::vector<int>& tensor_of, const StageAnswer& answer,
                 StageQuestion question) {
    question.holds_back = false;
    auto even = divide_into_stages(question);
    question.holds_back = is_one_forward_one_backward_;
    const auto seconds = even ? seconds_of(question, even->stages) : std::nullopt;
    if (seconds && *seconds <= kAsGood * answer.seconds) take(data, size, tensor_of, {even->stages, *seconds});
    take(data, size, tensor_of, answer);
  }

  void take(int data, int64_t size, const std::vector<int>& tensor_of, const StageAnswer& answer) {
    DpCandidate candidate{data, size, {}, answer.seconds};
    for (const ChosenStage& stage : answer.stages)
      candidate.stages.push_back({stage.first, stage.end, tensor_of[static_cast<size_t>(stage.option)]});
    found_.push_back(std::move(candidate));
  }

  /// The job file's own split, with one tensor degree and point of the frontier for all.
  void take_split(int data, int64_t size, const std::vector<int>& tensor_of, const StageQuestion& question) {
    if (question.devices != pipeline_ || question.option_devices[0] != 1) return;
    auto split = split_layers(request_.graph->graph, pipeline_, request_.options.get_ints("pipeline.split"));
    if (!split.is_ok()) return;
    for (int option = 0; option < static_cast<int>(tensor_of.size()); ++option) {
      StageAnswer answer;
      int first = 0;
      for (const auto& layers : *split) {
        answer.stages.push_back({first, first + static_cast<int>(layers.size()), option});
        first = answer.stages.back().end;
      }
      const auto seconds = seconds_of(question, answer.stages);
      if (!seconds) continue;
      answer.seconds = *seconds;
      return take(data, size, tensor_of, answer);
    }
  }

  const PlanRequest& request_;
  const GraphFacts& facts_;
  std::vector<double> cut_bytes_;
  int data_ = 0, tensor_ = 0, pipeline_ = 0;
  const bool is_one_forward_one_backward_;
  std::map<int, Frontiers> costs_;             // by data degree
  std::map<int, std::vector<int64_t>> sizes_;  // of microbatches, by data degree
  std::vector<Division> divisions_;
  std::vector<DpCandidate> found_;
};

}  // namespace

Result<std::vector<DpCandidate>> dp_candidates(const PlanRequest& request, const GraphFacts& facts) {
  return Candidates(request, facts).run();
}

Plan dp_plan(const PlanRequest& request, const DpCandidate& candidate, const std::string& planner) {
  const TrainingGraph& training = *request.graph;
  const DegreePlanOptions options = degree_options(request, planner);
  Plan plan;
  plan.model_name = training.graph.name;
  plan.graph_fingerprint = training.fingerprint;
  plan.cluster_shape = request.cluster->shape_text();
  plan.cluster_fingerprint = request.cluster->fingerprint();
  plan.global_batch = request.global_batch;
  plan.microbatch = candidate.microbatch;
  plan.num_microbatches = static_cast<int>(request.global_batch / candidate.data / candidate.microbatch);
  plan.schedule = options.schedule;
  plan.compute_dtype = training.compute_dtype;
  plan.planner = planner;
  int slot = 0;
  for (const DpStage& from : candidate.stages) {
    PlanStage stage;
    stage.name = fmt::format("s{}", plan.stages.size());
    for (int l = from.first; l < from.end; ++l) stage.layers.push_back(training.graph.layers()[static_cast<size_t>(l)]);
    stage.mesh.axes = {{Axis::kData, candidate.data}, {Axis::kTensor, from.tensor}};
    for (int i = 0; i < candidate.data * from.tensor; ++i) stage.slots.emplace_back(slot++);
    stage.zero = options.zero;
    plan.sequence_parallel = plan.sequence_parallel || (options.sequence_parallel && from.tensor > 1);
    plan.stages.push_back(std::move(stage));
  }
  state_recompute(training, plan);
  return plan;
}

}  // namespace altiplano
