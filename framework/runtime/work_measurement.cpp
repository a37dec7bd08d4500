#include "framework/runtime/work_measurement.hpp"

#include <algorithm>

#include "framework/launch/inproc_rendezvous.hpp"
#include "framework/runtime/device_buffers.hpp"
#include "framework/runtime/job_data.hpp"
#include "framework/runtime/kernel_choice.hpp"
#include "framework/runtime/step_measurement.hpp"
#include "framework/runtime/timing.hpp"
#include "framework/simulate/program_prices.hpp"

namespace altiplano {

namespace {

/// Nothing for what is priced at nothing (feeds, fetches) and for what is done with other ranks.
std::optional<WorkSample> sample_of(const Program& program, const InstructionTime& time) {
  WorkSample sample;
  sample.calls = time.calls;
  sample.seconds = time.seconds / time.calls;
  if (const auto* compute = std::get_if<ComputeInstruction>(&time.instruction->what)) {
    const OpWork work = work_of(program, *compute);
    sample.kind = work.kind;
    sample.type = work.dtype;
    sample.flops = work.flops.value;
    sample.bytes = static_cast<double>(work.bytes.value);
    sample.smallest_dim = work.smallest_dim;
    return sample;
  }
  const auto* copy = std::get_if<CopyInstruction>(&time.instruction->what);
  if (!copy) return std::nullopt;
  sample.kind = "copy";
  sample.bytes = static_cast<double>(bytes_of(program, *copy).value);
  return sample;
}

class JobStepTrial final : public StepTrial {
 public:
  Status open(JobConfig config, const std::string& precision, int64_t batch, int threads) {
    ALTIPLANO_RETURN_IF_ERROR(plan_for_one_rank(config));
    ALTIPLANO_RETURN_IF_ERROR(config.options.set("train.precision", precision, {}));
    JobRequest request;
    request.threads = threads;
    request.batch = batch;
    ALTIPLANO_ASSIGN(job_, prepare_job(std::move(config), request));
    ALTIPLANO_RETURN_IF_ERROR(choose_job_kernels(job_, KernelStart::kFresh).status());
    ALTIPLANO_ASSIGN(BatchSource source, BatchSource::open(job_data_options(job_)));
    source_ = std::make_unique<BatchSource>(std::move(source));
    ALTIPLANO_ASSIGN(model_, RankModel::open(job_, RankEnvironment(), rendezvous_, false));
    return Status::ok();
  }

  Result<Times> run(int steps) override {
    ALTIPLANO_ASSIGN(const StepProfile warm_up, measure_steps(job_, *source_, *model_, 1));
    Times times;
    std::vector<double> seconds_of_steps;
    std::vector<std::vector<double>> seconds;  // by instruction
    size_t num_instructions = 0;
    double between = 0;
    for (int step = 0; step < steps; ++step) {
      ALTIPLANO_ASSIGN(const StepProfile profile, measure_steps(job_, *source_, *model_, 1));
      const std::vector<InstructionTime> instructions = profile.instructions();
      seconds.resize(instructions.size());
      num_instructions = 0;
      double rest = profile.steps()[0];
      for (size_t i = 0; i < instructions.size(); ++i) {
        rest -= instructions[i].seconds;
        num_instructions += static_cast<size_t>(instructions[i].calls);
        seconds[i].push_back(instructions[i].seconds);
      }
      between += rest;
      seconds_of_steps.push_back(profile.steps()[0]);
    }
    const std::vector<InstructionTime> instructions = warm_up.instructions();
    for (size_t i = 0; i < instructions.size(); ++i) {
      InstructionTime time = instructions[i];
      time.seconds = quantile(seconds[i], 0.5);
      if (auto sample = sample_of(model_->program(), time)) times.work.push_back(std::move(*sample));
    }
    times.step = quantile(seconds_of_steps, 0.5);
    times.spread = (quantile(seconds_of_steps, 0.75) - quantile(seconds_of_steps, 0.25)) / times.step;
    times.between = between / steps / static_cast<double>(std::max<size_t>(1, num_instructions));
    return times;
  }

  JobDevice& device() override { return *job_.device; }
  const std::string& model() const override { return job_.plan.model_name; }

 private:
  Job job_;
  InprocRendezvous rendezvous_{std::make_shared<InprocWorld>(1), RankId(0)};
  std::unique_ptr<BatchSource> source_;
  std::unique_ptr<RankModel> model_;
};

OperandLayout whole_operand(DType type, Shape shape) {
  return {type, shape, std::vector<int64_t>(shape.size(), 0), shape, -1};
}

/// [rows, inner] x [inner, columns], as a linear layer's forward and the gradients of its input and its weights run it.
std::vector<KernelRequest> product_requests(DType type, int64_t rows, int64_t columns, int64_t inner) {
  const OperandLayout x = whole_operand(type, {rows, inner}), w = whole_operand(type, {inner, columns}),
                      y = whole_operand(type, {rows, columns});
  const auto request = [](const char* equation, const OperandLayout& a, const OperandLayout& b,
                          const OperandLayout& c) {
    KernelRequest out;
    out.kind = "matmul";
    out.attributes = {{"equation", std::string(equation)}};
    out.inputs = {a, b};
    out.outputs = {c};
    return out;
  };
  return {request("[m,k] [k,n] -> [m,n]", x, w, y), request("[m,n] [k,n] -> [m,k]", y, w, x),
          request("[m,k] [m,n] -> [k,n]", x, y, w)};
}

/// Of one call: the best form's median.
Result<double> best_seconds(JobDevice& job_device, Device& device, const KernelRequest& request) {
  ALTIPLANO_ASSIGN(KernelForms forms, device.forms(request));
  if (forms.names.empty()) forms.names = {""};  // made in one way only
  ALTIPLANO_ASSIGN(const KernelMeasurement measured, measure_forms(device, {request, forms}, job_device.machine()));
  return std::ranges::find(measured.times, measured.best, &FormTime::form)->median;
}

struct ProductSize {
  int64_t rows, columns, inner;
};
constexpr ProductSize kProductSizes[] = {{32, 32, 32},    {256, 32, 256},    {1024, 32, 1024},
                                         {128, 128, 128}, {512, 128, 512},   {2048, 128, 512},
                                         {512, 512, 512}, {1024, 512, 1024}, {2048, 512, 2048}};
constexpr int64_t kLargestCopyBytes = int64_t{1} << 24, kCopyArena = int64_t{1} << 26;

}  // namespace

Result<std::unique_ptr<StepTrial>> StepTrial::prepare(const JobConfig& config, const std::string& precision,
                                                      int64_t batch, int threads) {
  auto trial = std::make_unique<JobStepTrial>();
  ALTIPLANO_RETURN_IF_ERROR(trial->open(config, precision, batch, threads));
  return std::unique_ptr<StepTrial>(std::move(trial));
}

Result<std::vector<WorkSample>> measure_products(JobDevice& job_device, DType type) {
  std::vector<WorkSample> samples;
  ALTIPLANO_ASSIGN(const auto device, job_device.open_another());
  for (const ProductSize& size : kProductSizes) {
    WorkSample sample{"matmul",
                      type,
                      2.0 * static_cast<double>(size.rows * size.columns * size.inner),
                      0,
                      std::min({size.rows, size.columns, size.inner}),
                      1,
                      0};
    for (const KernelRequest& request : product_requests(type, size.rows, size.columns, size.inner)) {
      ALTIPLANO_ASSIGN(const double seconds, best_seconds(job_device, *device, request));
      sample.seconds += seconds / 3;
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

Result<std::vector<WorkSample>> measure_copies(Device& device) {
  DeviceBuffers memory(device);
  ALTIPLANO_ASSIGN(void* from, memory.add(kCopyArena));
  ALTIPLANO_ASSIGN(void* to, memory.add(kCopyArena));
  ALTIPLANO_RETURN_IF_ERROR(device.fill_zero(from, kCopyArena));
  ALTIPLANO_RETURN_IF_ERROR(device.fill_zero(to, kCopyArena));
  std::vector<WorkSample> samples;
  for (int64_t bytes = 4096; bytes <= kLargestCopyBytes; bytes *= 4) {
    const Box box{{0}, {bytes / 4}};
    std::vector<double> seconds;
    // Every call finds its memory as long unused as the arena is large.
    for (int64_t at = 0; at + bytes <= kCopyArena && seconds.size() < 200; at += std::max<int64_t>(bytes, 1 << 18)) {
      const auto begin = std::chrono::steady_clock::now();
      ALTIPLANO_RETURN_IF_ERROR(device.copy({box, box, box}, DType::kF32, static_cast<const char*>(from) + at,
                                            static_cast<char*>(to) + at, false));
      ALTIPLANO_RETURN_IF_ERROR(device.synchronize(StreamKind::kCompute));
      seconds.push_back(seconds_since(begin));
    }
    samples.push_back({"copy", DType::kF32, 0, 2.0 * static_cast<double>(bytes), 0, 1, quantile(seconds, 0.5)});
  }
  return samples;
}

}  // namespace altiplano
