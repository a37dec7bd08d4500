// bench_step: a training step of this build beside its floor and PyTorch's, each as a user runs it: a program of its
// own, in turns. The first steps of a run, which warm up, do not count.
//
// The floor is what the machine needs for the step's products, each in its best form and alone, and for the bytes that
// everything else reads and writes at the bandwidth of the same round; attention counts with its operations at the
// products' rate. Nothing else is in it: no masks, no exponentials, no waiting.
//
//   bench_step [--model gpt6|gpt2|tiny] [--precision fp32|bf16] [--ranks N] [--threads N] [--rounds N] [--steps N]
//              [--python PROGRAM]
// --python: an interpreter that has PyTorch; without one it is not among the contestants. The distribution's libtorch
// is where it was built (one rank): with the BLAS and for the processor with which it is fastest.
#include "tests/bench/step_ops.hpp"
#include "tests/bench/training_run.hpp"

namespace altiplano::bench {
namespace {

struct Settings {
  std::string name, precision, python;
  int ranks = 1, threads = 1, rounds = 5, steps = 6;
};

/// One contestant's steps, and the most that its first rank had in memory.
struct Measured {
  std::string name;
  std::vector<double> rounds = {};  ///< median seconds of a step, by round
  double peak_bytes = 0;
};

void run_own(const Settings& s, const BenchFolder& folder, Measured& measured) {
  const TrainingRun run = run_training(folder, s.ranks, s.threads, s.steps);
  measured.rounds.push_back(run.step_seconds);
  measured.peak_bytes = run.peak_bytes;
}

/// Runs a program that prints the seconds of each step and its peak.
void run_other(const Settings& s, const std::string& program, const std::string& more, Measured& measured) {
  const BenchModel m = bench_model(s.name);
  std::vector<double> seconds;
  const auto lines = lines_of(fmt::format(
      "{} --layers {} --hidden {} --heads {} --vocabulary {} --sequence {} --batch {} --steps {} --threads {} "
      "--precision {}{}",
      program, m.layers, m.hidden, m.heads, m.vocabulary, m.sequence, m.batch, s.steps, s.threads, s.precision, more));
  for (const std::string& line : lines) {
    if (line.starts_with("peak "))
      measured.peak_bytes = std::stod(line.substr(5));
    else if (!line.empty() && std::isdigit(static_cast<unsigned char>(line[0])))
      seconds.push_back(std::stod(line));
  }
  measured.rounds.push_back(warm_median(std::move(seconds)));
}

void run_torch(const Settings& s, bool compile, Measured& measured) {
  run_other(s, s.python + " " + ALTIPLANO_BENCH_TORCH,
            fmt::format(" --ranks {}{}", s.ranks, compile ? " --compile" : ""), measured);
}

/// The program with libtorch, as the shell starts it; empty: it was not built, or knows no ranks.
std::string libtorch_program(const Settings& s) {
#ifdef ALTIPLANO_BENCH_LIBTORCH
  if (s.ranks > 1 || !std::filesystem::exists(ALTIPLANO_BENCH_LIBTORCH)) return {};
  // OpenBLAS takes processors that are newer than it for very old ones.
  const bool has_bf16 = __builtin_cpu_supports("avx512bf16") != 0, has_512 = __builtin_cpu_supports("avx512f") != 0;
  const char* processor = has_bf16 ? "Cooperlake" : has_512 ? "SkylakeX" : "Haswell";
  return fmt::format("env OPENBLAS_CORETYPE={} LD_LIBRARY_PATH={} {}", processor, ALTIPLANO_BENCH_BLAS,
                     ALTIPLANO_BENCH_LIBTORCH);
#else
  (void)s;
  return {};
#endif
}

/// What the machine needs for the ops of one rank's step.
class Floor {
 public:
  Floor(const Job& job, size_t elements) : threads_(job.device->device().info().threads), triad_(elements) {
    for (const StepOp& op : ops_of(job.programs[0], job.graph->seed)) {
      const KernelForms forms = require(job.device->device().forms(op.request));
      if (op.request.kind == "matmul" && !forms.names.empty()) {
        KernelRequest request = op.request;
        request.form = require(measure_forms(job.device->device(), {op.request, forms}, job.device->machine())).best;
        products_.push_back({std::make_unique<Bound>(job.device->device(), request), op.calls});
        product_flops_ += op.calls * op.work.flops.value;
      } else if (op.request.kind.find("attention") != std::string::npos) {
        attention_flops_ += op.calls * op.work.flops.value;
      } else {
        bytes_ += op.calls * static_cast<double>(op.work.bytes.value);
      }
    }
  }
  void measure(Measured& measured) {
    double seconds = 0;
    for (const Product& product : products_) seconds += product.calls * median_of([&] { product.kernel->run(); });
    seconds *= 1 + attention_flops_ / product_flops_;
    measured.rounds.push_back(seconds + median_of([&] { triad_.run(threads_); }) * bytes_ / triad_.bytes());
  }

 private:
  struct Product {
    std::unique_ptr<Bound> kernel;
    int calls;
  };
  static double median_of(const std::function<void()>& run) {
    std::vector<Contestant> alone = {{"", run}};
    race(alone, 3, 0.0);
    return spread_of(alone[0].seconds).median;
  }

  int threads_;
  Triad triad_;
  std::vector<Product> products_;
  double product_flops_ = 0, attention_flops_ = 0, bytes_ = 0;
};

void print(const std::vector<Measured>& contestants, double tokens) {
  print_out("{:<34} {:>24} {:>10} {:>24} {:>10}\n", "who", "ms a step (quartiles)", "tokens/s", "its time / ours",
            "peak MiB");
  const Measured& own = contestants.front();
  for (const Measured& m : contestants) {
    std::vector<double> ratios;
    for (size_t i = 0; i < m.rounds.size(); ++i) ratios.push_back(m.rounds[i] / own.rounds[i]);
    const Spread spread = spread_of(m.rounds);
    print_out("{:<34} {:>24} {:>10.0f} {:>24} {:>10}\n", m.name, to_string(spread, 1e3, 1), tokens / spread.median,
              &m == &own ? "" : to_string(spread_of(ratios), 1, 2),
              m.peak_bytes > 0 ? fmt::format("{:.0f}", m.peak_bytes / (1 << 20)) : "-");
  }
}

int run(int argc, char** argv) {
  const Settings s{argument(argc, argv, "model", "gpt6"),
                   argument(argc, argv, "precision", "fp32"),
                   argument(argc, argv, "python", ""),
                   std::stoi(argument(argc, argv, "ranks", "1")),
                   std::stoi(argument(argc, argv, "threads", "2")),
                   std::stoi(argument(argc, argv, "rounds", "5")),
                   std::stoi(argument(argc, argv, "steps", "6"))};
  if (s.steps <= kWarmUpSteps)
    require(invalid_argument("--steps {}: the first {} only warm up; at least {}", s.steps, kWarmUpSteps,
                             kWarmUpSteps + 1));
  const BenchModel model = bench_model(s.name);
  const BenchFolder folder;
  folder.write("job.yaml", job_text(model, s.precision, s.ranks, folder));
  write_data(folder);
  JobRequest request;
  request.threads = s.threads;
  request.num_ranks = s.ranks;
  const Job job = require(prepare_job(load(folder), request));
  Floor floor(job, s.name == "tiny" ? 1 << 16 : 1 << 24);
  print_out("{}, {}, {} rank{} of {} thread{}, {}\n\n", s.name, s.precision, s.ranks, s.ranks == 1 ? "" : "s",
            s.threads, s.threads == 1 ? "" : "s", job.device->machine());
  flush_out();

  std::vector<Measured> contestants = {{"altiplano"}, {"floor"}};
  if (!s.python.empty()) {
    contestants.push_back({"PyTorch"});
    contestants.push_back({"PyTorch, compiled"});
  }
  const std::string libtorch = libtorch_program(s);
  if (!libtorch.empty()) contestants.push_back({"libtorch of the distribution"});
  for (int round = 0; round < s.rounds; ++round) {
    run_own(s, folder, contestants[0]);
    floor.measure(contestants[1]);
    if (!s.python.empty())
      for (size_t i : {2u, 3u}) run_torch(s, i == 3, contestants[i]);
    if (!libtorch.empty()) run_other(s, libtorch, "", contestants.back());
  }
  print(contestants, static_cast<double>(model.batch * model.sequence));
  return 0;
}

}  // namespace
}  // namespace altiplano::bench

int main(int argc, char** argv) {
  return altiplano::bench::run(argc, argv);
}
