#include "framework/runtime/kernel_choice.hpp"

#include <algorithm>
#include <chrono>
#include <set>

#include "framework/base/console.hpp"
#include "framework/base/date.hpp"
#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/checkpoint/restore.hpp"
#include "framework/launch/rank_environment.hpp"
#include "framework/runtime/device_buffers.hpp"

namespace altiplano {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBudget = 0.05;     // seconds per shape beyond the least rounds
constexpr double kShortCall = 2e-4;  // calls that are shorter are timed several at a time
constexpr double kLongCall = 0.05;   // longer ones need no warming up
constexpr size_t kMostRounds = 25, kLeastRounds = 2;
constexpr double kHopelessAtOnce = 2;    // times the fastest, by its own fastest call: not measured further
constexpr double kHopeless = 1.2;        // the same after the least rounds
constexpr double kClearlyFaster = 0.95;  // of the first form's time
constexpr double kSilence = 2;           // seconds of measuring before anybody is told

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// One form under test.
struct Candidate {
  std::string form;
  std::unique_ptr<Kernel> kernel;
  std::vector<double> seconds;
  int calls = 1;  ///< per sample
  bool hopeless = false;
};

class FormRace {
 public:
  FormRace(Device& device, const FormedKernel& kernel) : device_(device), kernel_(kernel), memory_(device) {}

  Result<std::vector<Candidate>> run() {
    ALTIPLANO_RETURN_IF_ERROR(prepare());
    for (Candidate& candidate : candidates_) ALTIPLANO_RETURN_IF_ERROR(warm_up(candidate));
    const auto begin = Clock::now();
    for (size_t round = 0; round < kMostRounds && (round < kLeastRounds || since(begin) < kBudget); ++round) {
      if (round > 0) drop_hopeless(round < kLeastRounds ? kHopelessAtOnce : kHopeless);
      for (Candidate& candidate : candidates_)
        if (!candidate.hopeless && needs(candidate, round)) ALTIPLANO_RETURN_IF_ERROR(sample(candidate));
    }
    return std::move(candidates_);
  }

 private:
  Status prepare() {
    int64_t workspace = 0;
    for (const std::string& form : kernel_.forms.names) {
      KernelRequest request = kernel_.request;
      request.form = form;
      ALTIPLANO_ASSIGN(auto made, device_.make_kernel(request));
      workspace = std::max(workspace, made->workspace_bytes());
      candidates_.push_back({form, std::move(made), {}});
    }
    ALTIPLANO_ASSIGN(workspace_, memory_.add(workspace));
    for (const OperandLayout& operand : kernel_.request.inputs) {
      ALTIPLANO_ASSIGN(void* memory, memory_.add(bytes_of(operand)));
      inputs_.push_back(memory);
    }
    for (const OperandLayout& operand : kernel_.request.outputs) {
      ALTIPLANO_ASSIGN(void* memory, memory_.add(bytes_of(operand)));
      outputs_.push_back(memory);
    }
    return Status::ok();
  }

  Status sample(Candidate& candidate) {
    const auto begin = Clock::now();
    for (int i = 0; i < candidate.calls; ++i)
      ALTIPLANO_RETURN_IF_ERROR(candidate.kernel->run({inputs_, outputs_, &scalars_, 0, workspace_}));
    ALTIPLANO_RETURN_IF_ERROR(device_.synchronize(StreamKind::kCompute));
    candidate.seconds.push_back(since(begin) / candidate.calls);
    return Status::ok();
  }

  /// The first call; a long one counts already.
  Status warm_up(Candidate& candidate) {
    ALTIPLANO_RETURN_IF_ERROR(sample(candidate));
    if (candidate.seconds[0] > kLongCall) return Status::ok();
    candidate.seconds.clear();
    ALTIPLANO_RETURN_IF_ERROR(sample(candidate));
    candidate.calls = static_cast<int>(std::clamp(kShortCall / candidate.seconds[0], 1.0, 1000.0));
    candidate.seconds.clear();
    return Status::ok();
  }

  /// A long call has been timed once when the first round comes.
  static bool needs(const Candidate& candidate, size_t round) { return candidate.seconds.size() <= round; }

  /// Noise makes calls slower, never faster, so a form is judged by its fastest one here.
  void drop_hopeless(double limit) {
    double best = HUGE_VAL;
    for (const Candidate& candidate : candidates_) best = std::min(best, std::ranges::min(candidate.seconds));
    // The first form is what the others are compared with.
    for (size_t i = 1; i < candidates_.size(); ++i)
      candidates_[i].hopeless = std::ranges::min(candidates_[i].seconds) > limit * best;
  }

  Device& device_;
  const FormedKernel& kernel_;
  DeviceBuffers memory_;
  StepScalars scalars_;
  std::vector<Candidate> candidates_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  void* workspace_ = nullptr;
};

/// Of the times of the same rounds, so that a machine that grows slower meanwhile favours nobody.
double median_ratio(const Candidate& candidate, const Candidate& first) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(candidate.seconds.size(), first.seconds.size()); ++i)
    ratios.push_back(candidate.seconds[i] / first.seconds[i]);
  return median_of(std::move(ratios));
}

/// Measures what is missing and says so when that takes a while.
class Measuring {
 public:
  Measuring(JobDevice& device, const KernelSource& source, KernelDatabase& database, size_t num_shapes)
      : device_(device), source_(source), database_(database), num_shapes_(num_shapes) {}

  /// Empty: it cannot be measured, which is noted; the first form is taken then.
  std::string best_of(const FormedKernel& kernel, KernelChoice& choice) {
    const std::string machine = device_.machine();
    const auto* known = database_.find(machine, kernel.forms.shape);
    // Another version of this program may have had other forms.
    if (known != nullptr && !source_.measure_anew && has_form(kernel.forms, known->best)) {
      choice.measurements.push_back(*known);
      return known->best;
    }
    auto measured = measure(kernel, machine);
    if (!measured) {
      choice.notices.push_back(fmt::format("kernel {} is not measured, it is made as {}: {}", kernel.forms.shape,
                                           kernel.forms.names.front(), measured.status().to_string()));
      return {};
    }
    fresh_.push_back(*measured);
    choice.measurements.push_back(*measured);
    return measured->best;
  }

  void finish(KernelChoice& choice) {
    if (fresh_.empty()) return;
    if (told_)
      source_.tell(fmt::format("{} measured in {:.1f} s", counted(static_cast<int64_t>(fresh_.size()), "kernel shape"),
                               since(begin_)));
    if (const Status stored = database_.store(fresh_); !stored.is_ok())
      choice.notices.push_back(fmt::format(
          "measured kernels are not kept, so that another start may choose others and differ in the last bits: {}",
          stored.to_string()));
  }

  static bool has_form(const KernelForms& forms, const std::string& form) {
    return std::ranges::find(forms.names, form) != forms.names.end();
  }

 private:
  Result<KernelMeasurement> measure(const FormedKernel& kernel, const std::string& machine) {
    if (fresh_.empty()) begin_ = Clock::now();
    if (!told_ && source_.tell && since(begin_) > kSilence) {
      told_ = true;
      source_.tell(fmt::format("measuring the forms of {}{}",
                               counted(static_cast<int64_t>(num_shapes_), "kernel shape"),
                               database_.path().empty() ? "" : ", once for this machine: " + database_.path()));
    }
    ALTIPLANO_ASSIGN(const auto device, device_.open_another());
    return measure_forms(*device, kernel, machine);
  }

  JobDevice& device_;
  const KernelSource& source_;
  KernelDatabase& database_;
  size_t num_shapes_;
  std::vector<KernelMeasurement> fresh_;
  Clock::time_point begin_;
  bool told_ = false;
};

/// The stored table as far as it is good here.
Result<KernelTable> usable(const KernelSource& source, const std::string& machine,
                           const std::vector<FormedKernel>& kernels, KernelChoice& choice) {
  KernelTable table = source.stored;
  if (table.is_empty()) return table;
  if (table.machine != machine) {
    choice.notices.push_back(
        fmt::format("{}: measured on another machine or with other threads ({}); the kernels are chosen anew for {}, "
                    "and results may differ in the last bits",
                    source.stored_where, table.machine, machine));
    return KernelTable();
  }
  for (const FormedKernel& kernel : kernels) {
    const std::string form = table.form_of(kernel.forms.shape);
    if (form.empty() || Measuring::has_form(kernel.forms, form)) continue;
    const std::string why = fmt::format("{}: {} has no form '{}'; valid: {}", source.stored_where, kernel.forms.shape,
                                        form, join(kernel.forms.names, ", "));
    if (source.from_plan) return invalid_argument("{}", why);
    choice.notices.push_back(why + "; it is chosen anew");
    table.forms.erase(kernel.forms.shape);
  }
  return table;
}

/// Of the checkpoint that a start would go on from. What is wrong with it is said by who reads all of it.
KernelTable table_of_checkpoint(const Options& options) {
  auto found =
      find_checkpoint(options.get_string("checkpoint.dir"), options.get_string("train.resume"), CheckLevel::kSizes);
  if (!found || !found->checkpoint) return {};
  auto plan = Plan::from_yaml(found->checkpoint->manifest().info.plan, "the checkpoint's plan");
  return plan ? plan->kernels : KernelTable();
}

KernelSource source_of_plan(const Job& job) {
  KernelSource source;
  source.stored = job.plan.kernels;
  source.from_plan = true;
  const std::string where = job.plan.where("kernels");  // ends with ": "
  source.stored_where = where.substr(0, where.rfind(": "));
  return source;
}

}  // namespace

Result<std::vector<FormedKernel>> formed_kernels(Device& device, const std::vector<Program>& programs, uint64_t seed) {
  std::vector<FormedKernel> found;
  std::set<std::string> seen;
  for (const Program& program : programs)
    for (const Block& block : program.blocks)
      for (const Instruction& instruction : block.instructions) {
        const auto* compute = std::get_if<ComputeInstruction>(&instruction.what);
        if (compute == nullptr) continue;
        KernelRequest request = kernel_request(program, *compute, seed);
        auto forms = device.forms(request);
        // What the device does not know is made by an extension, in one form.
        if (!forms || forms->names.empty() || !seen.insert(forms->shape).second) continue;
        found.push_back({std::move(request), std::move(forms).value()});
      }
  return found;
}

Result<KernelMeasurement> measure_forms(Device& device, const FormedKernel& kernel, const std::string& machine) {
  ALTIPLANO_ASSIGN(const std::vector<Candidate> candidates, FormRace(device, kernel).run());
  KernelMeasurement m{machine, kernel.forms.shape, {}, candidates.front().form, INT64_MAX, date_of_today()};
  double best = kClearlyFaster;
  for (const Candidate& candidate : candidates) {
    const auto [fastest, slowest] = std::ranges::minmax(candidate.seconds);
    m.times.push_back({candidate.form, median_of(candidate.seconds), fastest, slowest});
    m.rounds = std::min(m.rounds, static_cast<int64_t>(candidate.seconds.size()));
    // The fastest calls have to agree: other programs on the machine make medians of few rounds lie.
    const double ratio = median_ratio(candidate, candidates.front());
    if (ratio >= best || fastest >= kClearlyFaster * m.times.front().fastest) continue;
    best = ratio;
    m.best = candidate.form;
  }
  return m;
}

Result<KernelChoice> choose_kernels(JobDevice& device, const std::vector<Program>& programs, uint64_t seed,
                                    const KernelSource& source) {
  KernelChoice choice;
  ALTIPLANO_ASSIGN(const auto kernels, formed_kernels(device.device(), programs, seed));
  if (kernels.empty()) return choice;
  ALTIPLANO_ASSIGN(choice.table, usable(source, device.machine(), kernels, choice));
  choice.table.machine = device.machine();
  KernelDatabase database = KernelDatabase::read(source.database);
  if (!database.notice().empty()) choice.notices.push_back(database.notice() + "; it is made anew");
  Measuring measuring(device, source, database, kernels.size());
  for (const FormedKernel& kernel : kernels) {
    if (choice.table.forms.contains(kernel.forms.shape) && !source.measure_anew) continue;
    const std::string best = measuring.best_of(kernel, choice);
    choice.table.forms[kernel.forms.shape] = best.empty() ? kernel.forms.names.front() : best;
  }
  measuring.finish(choice);
  return choice;
}

Status check_plan_kernels(Job& job) {
  if (job.plan.kernels.is_empty()) return Status::ok();
  ALTIPLANO_ASSIGN(const auto kernels, formed_kernels(job.device->device(), job.programs, job.graph->seed));
  KernelChoice choice;
  ALTIPLANO_RETURN_IF_ERROR(usable(source_of_plan(job), job.device->machine(), kernels, choice).status());
  job.notices.insert(job.notices.end(), choice.notices.begin(), choice.notices.end());
  return Status::ok();
}

Result<KernelChoice> choose_job_kernels(Job& job, KernelStart start) {
  if (job.config.options.get_string("device.kernels") == "plain") {
    KernelChoice plain;
    if (!job.plan.kernels.is_empty())
      plain.notices.push_back(job.plan.where("kernels") + "not used, for device.kernels is plain");
    job.plan.kernels = {};
    job.device->kernels().choose({});
    return plain;
  }
  KernelSource source = source_of_plan(job);
  source.measure_anew = start == KernelStart::kAnew;
  source.database = kernel_database_path(process_environment);
  source.tell = [](const std::string& text) {
    flush_out();
    print_err("kernels   {}\n", text);
  };
  if (source.stored.is_empty() && start == KernelStart::kResume) {
    source.stored = table_of_checkpoint(job.config.options);
    source.from_plan = false;
    source.stored_where = "the checkpoint's kernel table";
  }
  ALTIPLANO_ASSIGN(KernelChoice choice, choose_kernels(*job.device, job.programs, job.graph->seed, source));
  job.plan.kernels = choice.table;
  job.device->kernels().choose(choice.table);
  return choice;
}

}  // namespace altiplano
