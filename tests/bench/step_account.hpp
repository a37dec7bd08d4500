#pragma once
// Where a step's time goes, by class of ops: counted operations and bytes, what they take, and what they would take at
// the ceilings met in the same run: the rate of the fastest product, and the bandwidth of memory.
#include <map>

#include "tests/bench/step_ops.hpp"

namespace altiplano::bench {

class StepAccount {
 public:
  void add(const StepOp& op, double seconds_of_call) {
    Class& c = classes_[class_of(op.request.kind)];
    c.calls += op.calls;
    c.seconds += op.calls * seconds_of_call;
    c.flops += op.calls * op.work.flops.value;
    c.bytes += op.calls * static_cast<double>(op.work.bytes.value);
    if (op.request.kind == "matmul") fastest_ = std::max(fastest_, op.work.flops.value / seconds_of_call);
  }
  void note_bandwidth(double bytes_per_second) { bandwidths_.push_back(bytes_per_second); }

  void print() const {
    const double bandwidth = spread_of(bandwidths_).median;
    double all = 0, all_at_ceiling = 0;
    for (const auto& [name, c] : classes_) {
      all += c.seconds;
      all_at_ceiling += at_ceiling(name, c, bandwidth);
    }
    print_out(
        "\nWhere the step goes, op by op; ceilings: {:.0f} GFLOP/s (the fastest product here), {:.1f} GB/s (triad)\n",
        fastest_ * 1e-9, bandwidth * 1e-9);
    print_out("{:<30} {:>6} {:>9} {:>7} {:>9} {:>9} {:>15} {:>12}\n", "class", "calls", "ms", "share", "GFLOP", "MB",
              "ms at ceilings", "more than it");
    for (const auto& [name, c] : classes_) print_row(name, c, at_ceiling(name, c, bandwidth), all);
    Class sum;
    for (const auto& [name, c] : classes_) sum.add(c);
    print_row("all", sum, all_at_ceiling, all);
    print_out(
        "\nProducts and attention are held against the rate of products, all else against memory; what lies in a "
        "cache is faster\nthan that. 'more than it': of the step's time, what the class takes beyond its ceiling.\n");
  }

 private:
  struct Class {
    int calls = 0;
    double seconds = 0, flops = 0, bytes = 0;
    void add(const Class& other) {
      calls += other.calls;
      seconds += other.seconds;
      flops += other.flops;
      bytes += other.bytes;
    }
  };

  static std::string class_of(const std::string& kind) {
    static const std::map<std::string, std::string> classes = {{"matmul", "products"},
                                                               {"layer_norm", "layer norm"},
                                                               {"layer_norm_grad_input", "layer norm"},
                                                               {"layer_norm_grad_weight", "layer norm"},
                                                               {"bias_gelu", "gelu"},
                                                               {"bias_gelu_grad", "gelu"},
                                                               {"add_bias", "biases and residuals"},
                                                               {"residual_add", "biases and residuals"},
                                                               {"add", "biases and residuals"},
                                                               {"reduce_sum", "sums of bias gradients"},
                                                               {"adamw", "update and gradient norm"},
                                                               {"sum_squares", "update and gradient norm"},
                                                               {"cast", "casts"},
                                                               {"embedding", "embedding"},
                                                               {"embedding_grad", "embedding"},
                                                               {"slice", "embedding"},
                                                               {"pad", "embedding"},
                                                               {"reduce_max", "loss"},
                                                               {"exp_sum", "loss"},
                                                               {"pick", "loss"},
                                                               {"nll", "loss"},
                                                               {"cross_entropy_grad", "loss"}};
    if (kind.find("attention") != std::string::npos) return "attention";
    const auto found = classes.find(kind);
    return found == classes.end() ? "others" : found->second;
  }

  double at_ceiling(const std::string& name, const Class& c, double bandwidth) const {
    const bool multiplies = name == "products" || name == "attention";
    return multiplies && fastest_ > 0 ? c.flops / fastest_ : c.bytes / bandwidth;
  }

  static void print_row(const std::string& name, const Class& c, double ceiling, double all) {
    print_out("{:<30} {:>6} {:>9.1f} {:>6.1f}% {:>9.1f} {:>9.0f} {:>15.1f} {:>11.1f}%\n", name, c.calls,
              c.seconds * 1e3, 100 * c.seconds / all, c.flops * 1e-9, c.bytes * 1e-6, ceiling * 1e3,
              100 * (c.seconds - ceiling) / all);
  }

  std::map<std::string, Class> classes_;
  std::vector<double> bandwidths_;
  double fastest_ = 0;  ///< operations a second
};

}  // namespace altiplano::bench
