#include "framework/runtime/cluster_measurement.hpp"

#include <algorithm>
#include <ctime>

#include "framework/base/date.hpp"
#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/cluster/presets.hpp"
#include "framework/config/job_values.hpp"
#include "framework/cost/profile_file.hpp"
#include "framework/plugin/registry.hpp"
#include "framework/runtime/comm_choice.hpp"
#include "framework/runtime/exchange_measurement.hpp"
#include "framework/runtime/work_measurement.hpp"

namespace altiplano {

namespace {

constexpr double kStepSeconds = 0.5;  // of the larger steps
constexpr int kTrialSteps = 4;
constexpr std::chrono::minutes kTrialDeadline{10};  // others wait while one measures

const char* precision_name(DType type) {
  return type == DType::kF32 ? "fp32" : to_string(type);
}

/// What one rank measures while the others sleep.
struct AloneTimes {
  std::string machine, model;
  std::vector<WorkSample> samples;
  StepTrial::Times largest;  ///< of the job's type and `batch`
  int64_t batch = 1;         ///< samples of the larger steps
  double spread = 0;         ///< the largest of all trials
  double between = 0;        ///< the least of all trials
};

class ClusterMeasurement {
 public:
  ClusterMeasurement(const JobConfig& config, const RankEnvironment& environment, Rendezvous& rendezvous,
                     const std::function<void(const std::string&)>& tell)
      : config_(config), environment_(environment), rendezvous_(rendezvous), tell_(tell) {}

  Result<MeasuredCluster> run() {
    processors_ = std::max(1, num_usable_cpus() / std::max(1, environment_.threads));
    if (environment_.world_size > 1) ALTIPLANO_RETURN_IF_ERROR(connect());
    const Status status = measure();
    if (!status.is_ok()) {
      if (communicator_) communicator_->abort(status.to_string());
      return status;
    }
    if (!is_first()) return MeasuredCluster();
    return assemble();
  }

 private:
  bool is_first() const { return environment_.rank.value == 0; }
  void tell(const std::string& text) const {
    if (is_first() && tell_) tell_(text);
  }

  Status connect() {
    ALTIPLANO_ASSIGN(comm_name_, choose_comm_backend(config_.options, {environment_.world_size, 1}));
    ALTIPLANO_ASSIGN(CommBackend * backend, PluginRegistry::instance().comm(comm_name_));
    overlaps_ = (backend->capabilities() & kCommNeedsHostProgress) == 0;
    CommOptions options = job_comm_options(config_.options);
    options.deadline = kTrialDeadline;
    ALTIPLANO_ASSIGN(communicator_, backend->connect(rendezvous_, options));
    ALTIPLANO_ASSIGN(world_, group_of_first(*communicator_, environment_.world_size, "ranks that measure"));
    return Status::ok();
  }

  Status measure() {
    if (is_first()) ALTIPLANO_RETURN_IF_ERROR(measure_alone());
    if (!communicator_) return Status::ok();
    ALTIPLANO_RETURN_IF_ERROR(meet_all(*communicator_, world_));
    together_ = std::min(environment_.world_size, processors_);
    if (together_ > 1 && environment_.rank.value < together_) ALTIPLANO_RETURN_IF_ERROR(measure_together());
    ALTIPLANO_RETURN_IF_ERROR(meet_all(*communicator_, world_));
    tell(fmt::format("collectives and messages among {}", counted(environment_.world_size, "rank")));
    ALTIPLANO_ASSIGN(exchanges_, measure_exchanges(*communicator_));
    return Status::ok();
  }

  /// Steps of one type: of one sample, and of as many as take about kStepSeconds.
  Status measure_steps_of(DType type, JobDevice*& device, std::unique_ptr<StepTrial>& trial) {
    const std::string precision = precision_name(type);
    ALTIPLANO_ASSIGN(trial, StepTrial::prepare(config_, precision, 1, environment_.threads));
    device = &trial->device();
    alone_.model = trial->model();
    alone_.machine = device->machine();
    ALTIPLANO_ASSIGN(StepTrial::Times times, trial->run(kTrialSteps));
    const auto most = std::max<int64_t>(1, job_batch(config_.options, environment_.world_size)->global);
    const auto batch = std::clamp<int64_t>(static_cast<int64_t>(kStepSeconds / times.step), 1, most);
    note(times);
    if (batch > 1) {
      ALTIPLANO_ASSIGN(trial, StepTrial::prepare(config_, precision, batch, environment_.threads));
      device = &trial->device();
      ALTIPLANO_ASSIGN(times, trial->run(kTrialSteps));
      note(times);
    }
    if (type != job_dtype(config_.options)) return Status::ok();
    alone_.batch = batch;
    alone_.largest = std::move(times);
    return Status::ok();
  }

  void note(const StepTrial::Times& times) {
    alone_.samples.insert(alone_.samples.end(), times.work.begin(), times.work.end());
    alone_.spread = std::max(alone_.spread, times.spread);
    alone_.between = alone_.between > 0 ? std::min(alone_.between, times.between) : times.between;
  }

  Status measure_alone() {
    std::vector<DType> types = {job_dtype(config_.options)};
    for (size_t i = 0; i < types.size(); ++i) {
      tell(fmt::format("steps and products in {} on one rank", to_string(types[i])));
      std::unique_ptr<StepTrial> trial;
      JobDevice* device = nullptr;
      ALTIPLANO_RETURN_IF_ERROR(measure_steps_of(types[i], device, trial));
      ALTIPLANO_ASSIGN(const auto products, measure_products(*device, types[i]));
      alone_.samples.insert(alone_.samples.end(), products.begin(), products.end());
      if (i > 0) continue;
      ALTIPLANO_ASSIGN(const auto another, device->open_another());
      ALTIPLANO_ASSIGN(const auto copies, measure_copies(*another));
      alone_.samples.insert(alone_.samples.end(), copies.begin(), copies.end());
      for (DType other : device->device().info().dtypes)
        if ((other == DType::kF32 || other == DType::kBF16) && other != types[0]) types.push_back(other);
    }
    return Status::ok();
  }

  /// The same steps on several ranks at a time.
  Status measure_together() {
    tell(fmt::format("the same steps on {} at a time", counted(together_, "rank")));
    ALTIPLANO_ASSIGN(const GroupId group, group_of_first(*communicator_, together_, "ranks that work together"));
    ALTIPLANO_RETURN_IF_ERROR(share_batch());
    ALTIPLANO_ASSIGN(auto trial, StepTrial::prepare(config_, precision_name(job_dtype(config_.options)), alone_.batch,
                                                    environment_.threads));
    ALTIPLANO_RETURN_IF_ERROR(meet_all(*communicator_, group));
    ALTIPLANO_ASSIGN(const StepTrial::Times times, trial->run(kTrialSteps));
    ALTIPLANO_RETURN_IF_ERROR(meet_all(*communicator_, group));
    if (is_first()) slowdown_ = fit_slowdown(alone_.largest.work, times.work);
    return Status::ok();
  }

  /// Rank 0 found it.
  Status share_batch() {
    for (int rank = 1; rank < together_; ++rank) {
      if (!is_first() && environment_.rank.value != rank) continue;
      ALTIPLANO_ASSIGN(
          const Event event,
          is_first()
              ? communicator_->send(RankId(rank), 1, &alone_.batch, sizeof(alone_.batch), StreamKind::kTransfer, {})
              : communicator_->recv(RankId(0), 1, &alone_.batch, sizeof(alone_.batch), StreamKind::kTransfer, {}));
      ALTIPLANO_RETURN_IF_ERROR(communicator_->wait(event));
    }
    return Status::ok();
  }

  Result<MeasuredCluster> assemble() const {
    ALTIPLANO_ASSIGN(Cluster cluster, load_cluster("this-machine"));
    describe_device(cluster.device);
    if (communicator_) describe_level(cluster.levels[0]);
    const std::string date = date_of_today();
    cluster.device.source = fmt::format(
        "measured {} by altiplano profile --cluster on {}: steps of {} of 1 and {} samples, products, copies{}; spread "
        "of steps {:.0f} %",
        date, alone_.machine, alone_.model, alone_.batch,
        communicator_ ? fmt::format(", and exchanges of {} by {}", counted(environment_.world_size, "rank"), comm_name_)
                      : "",
        100 * alone_.spread);
    ALTIPLANO_RETURN_IF_ERROR(Cluster::from_yaml(cluster.to_yaml(), "what was measured").status());
    return MeasuredCluster{alone_.machine, date, alone_.spread, std::move(cluster)};
  }

  void describe_device(DeviceModel& device) const {
    DeviceCurves curves = fit_curves(alone_.samples);
    device.memory_bandwidth = curves.memory.back().value;
    device.peak_flops.clear();
    for (const ProductCurve& curve : curves.products)
      for (const CurvePoint& point : curve.points)
        device.peak_flops[curve.type] = std::max(device.peak_flops[curve.type], point.value);
    device.matmul_efficiency = 1;
    device.op_overhead = std::max(0.0, alone_.between);
    curves.sharing.processors = processors_;
    if (together_ > 1) {
      curves.sharing.compute = {{static_cast<double>(together_), slowdown_.compute}};
      curves.sharing.memory = {{static_cast<double>(together_), slowdown_.memory}};
    }
    device.curves = std::make_shared<const DeviceCurves>(std::move(curves));
    if (!communicator_) return;
    device.overlaps_communication = overlaps_;
    device.eager_messages = overlaps_ ? 0 : exchanges_.eager_messages;
  }

  void describe_level(Level& level) const {
    level.fanout = processors_;
    for (const ExchangeCurve& curve : exchanges_.curves) {
      if (curve.kind) continue;
      level.latency = curve.points.front().value;
      level.bandwidth = curve.points.back().size / curve.points.back().value;
    }
    level.curves = std::make_shared<const LevelCurves>(LevelCurves{{}, exchanges_.curves});
  }

  const JobConfig& config_;
  const RankEnvironment& environment_;
  Rendezvous& rendezvous_;
  const std::function<void(const std::string&)>& tell_;
  int processors_ = 1, together_ = 1;
  bool overlaps_ = true;
  std::string comm_name_;
  std::unique_ptr<Communicator> communicator_;
  GroupId world_;
  AloneTimes alone_;
  SlowdownFit slowdown_;
  ExchangeTimes exchanges_;
};

/// The first, the middle and the last point of a curve.
std::vector<CurvePoint> some_points(const Curve& curve) {
  std::vector<CurvePoint> points = {curve.front()};
  if (curve.size() > 2) points.push_back(curve[curve.size() / 2]);
  if (curve.size() > 1) points.push_back(curve.back());
  return points;
}

std::string rates_in_words(const Curve& curve, bool by_flops) {
  std::vector<std::string> parts;
  for (const CurvePoint& point : some_points(curve))
    parts.push_back(by_flops ? fmt::format("{:.3g} GFLOP/s at {:.3g} MFLOP", point.value * 1e-9, point.size * 1e-6)
                             : fmt::format("{:.3g} GB/s at {:.3g} KiB", point.value * 1e-9, point.size / 1024));
  return join(parts, ", ");
}

}  // namespace

Result<MeasuredCluster> measure_cluster(const JobConfig& config, const RankEnvironment& environment,
                                        Rendezvous& rendezvous, const std::function<void(const std::string&)>& tell) {
  return ClusterMeasurement(config, environment, rendezvous, tell).run();
}

std::string measured_in_words(const MeasuredCluster& measured) {
  const DeviceCurves& curves = *measured.cluster.device.curves;
  std::string text = fmt::format("machine   {}\nstart     {:.2g} us of every op\n", measured.machine,
                                 measured.cluster.device.op_overhead * 1e6);
  for (const ProductCurve& curve : curves.products)
    text += fmt::format("products  {}, about {} at their smallest: {}\n", to_string(curve.type), curve.smallest_dim,
                        rates_in_words(curve.points, true));
  text += fmt::format("copies    {}\n", rates_in_words(curves.memory, false));
  for (const OpCurve& curve : curves.ops)
    text +=
        fmt::format("{:<9} {}: {}\n", curve.kind, to_string(curve.type), rates_in_words(curve.points, curve.by_flops));
  if (!curves.sharing.compute.empty())
    text +=
        fmt::format("sharing   {:.0f} at work: arithmetic takes {:.2f}x, memory {:.2f}x as long\n",
                    curves.sharing.compute[0].size, curves.sharing.compute[0].value, curves.sharing.memory[0].value);
  const Level& level = measured.cluster.levels[0];
  for (const ExchangeCurve& curve : level.curves ? level.curves->measured : std::vector<ExchangeCurve>()) {
    std::vector<std::string> parts;
    for (const CurvePoint& point : some_points(curve.points))
      parts.push_back(fmt::format("{:.3g} us for {:.3g} KiB", point.value * 1e6, point.size / 1024));
    text += fmt::format("{} {}: {}\n", curve.kind ? to_string(*curve.kind) : "message", counted(curve.ranks, "rank"),
                        join(parts, ", "));
  }
  return text;
}

std::string cluster_database_path() {
  return profile_path(process_environment, "clusters.h5");
}

}  // namespace altiplano
