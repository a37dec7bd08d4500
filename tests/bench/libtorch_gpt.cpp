// The GPT of bench_step on libtorch's C++ interface, as a distribution packages it: attention from products and a
// softmax (the releases that Debian has know no fused one), autocast for bf16, AdamW. One rank. Takes the arguments of
// torch_gpt.py and prints what that prints: the seconds of each step, one a line, and the most bytes in memory.
#include <ATen/autocast_mode.h>
#include <sys/resource.h>
#include <torch/torch.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <string>

namespace {

struct Settings {
  int64_t layers, hidden, heads, vocabulary, sequence, batch, steps, threads;
  bool bf16 = false;

  static Settings from(int argc, char** argv) {
    std::map<std::string, std::string> given;
    for (int i = 1; i + 1 < argc; i += 2) given[argv[i]] = argv[i + 1];
    const auto number = [&](const char* name) { return std::stoll(given.at(std::string("--") + name)); };
    return {number("layers"),     number("hidden"),   number("heads"),
            number("vocabulary"), number("sequence"), number("batch"),
            number("steps"),      number("threads"),  given.at("--precision") == "bf16"};
  }
};

struct BlockImpl : torch::nn::Module {
  explicit BlockImpl(const Settings& s)
      : heads(s.heads),
        before_attention(register_module("ln_1", torch::nn::LayerNorm(torch::nn::LayerNormOptions({s.hidden})))),
        before_mlp(register_module("ln_2", torch::nn::LayerNorm(torch::nn::LayerNormOptions({s.hidden})))),
        qkv(register_module("qkv", torch::nn::Linear(s.hidden, 3 * s.hidden))),
        projection(register_module("projection", torch::nn::Linear(s.hidden, s.hidden))),
        up(register_module("up", torch::nn::Linear(s.hidden, 4 * s.hidden))),
        down(register_module("down", torch::nn::Linear(4 * s.hidden, s.hidden))),
        hidden_keys(torch::ones({s.sequence, s.sequence}, torch::kBool).tril().logical_not()) {}

  torch::Tensor attend(const torch::Tensor& x) {
    const int64_t batch = x.size(0), sequence = x.size(1), hidden = x.size(2), width = hidden / heads;
    const auto parts = qkv(x).view({batch, sequence, 3, heads, width}).permute({2, 0, 3, 1, 4}).unbind(0);
    const auto scores = torch::matmul(parts[0], parts[1].transpose(-2, -1)) / std::sqrt(static_cast<double>(width));
    const auto masked = scores.masked_fill(hidden_keys, -std::numeric_limits<float>::infinity());
    const auto attended = torch::matmul(torch::softmax(masked, -1), parts[2]);
    return projection(attended.transpose(1, 2).reshape({batch, sequence, hidden}));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = x + attend(before_attention(x));
    return x + down(torch::gelu(up(before_mlp(x)), "tanh"));
  }

  int64_t heads;
  torch::nn::LayerNorm before_attention, before_mlp;
  torch::nn::Linear qkv, projection, up, down;
  torch::Tensor hidden_keys;
};
TORCH_MODULE(Block);

struct GPTImpl : torch::nn::Module {
  explicit GPTImpl(const Settings& s)
      : tokens(register_module("tokens", torch::nn::Embedding(s.vocabulary, s.hidden))),
        positions(register_module("positions", torch::nn::Embedding(s.sequence, s.hidden))),
        norm(register_module("ln", torch::nn::LayerNorm(torch::nn::LayerNormOptions({s.hidden})))),
        places(torch::arange(s.sequence)) {
    for (int64_t i = 0; i < s.layers; ++i) blocks.push_back(register_module("block" + std::to_string(i), Block(s)));
    const torch::NoGradGuard guard;
    for (auto& p : parameters())
      if (p.dim() > 1) p.normal_(0, 0.02);
  }
  torch::Tensor forward(const torch::Tensor& input, const torch::Tensor& labels) {
    auto x = tokens(input) + positions(places);
    for (Block& block : blocks) x = block(x);
    const auto logits = torch::linear(norm(x), tokens->weight);
    return torch::nn::functional::cross_entropy(logits.flatten(0, 1), labels.flatten());
  }

  torch::nn::Embedding tokens, positions;
  torch::nn::LayerNorm norm;
  torch::Tensor places;
  std::vector<Block> blocks;
};
TORCH_MODULE(GPT);

/// bf16 where autocast takes it, while this lives.
class Autocast {
 public:
  explicit Autocast(bool wanted) : wanted_(wanted) {
    if (!wanted_) return;
    at::autocast::set_autocast_cpu_dtype(at::kBFloat16);
    at::autocast::set_cpu_enabled(true);
    at::autocast::increment_nesting();
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
  ~Autocast() {
    if (!wanted_) return;
    at::autocast::clear_cache();
    at::autocast::decrement_nesting();
    at::autocast::set_cpu_enabled(false);
  }

 private:
  bool wanted_;
};

void train(const Settings& s) {
  torch::set_num_threads(static_cast<int>(s.threads));
  torch::manual_seed(1);
  GPT model(s);
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(3e-4).weight_decay(0.01));
  const auto tokens = torch::randint(s.vocabulary, {s.batch, s.sequence + 1}, torch::kLong);
  const auto input = tokens.narrow(1, 0, s.sequence), labels = tokens.narrow(1, 1, s.sequence);
  for (int64_t step = 0; step < s.steps; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    torch::Tensor loss;
    {
      const Autocast autocast(s.bf16);
      loss = model(input, labels);
    }
    loss.backward();
    torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
    optimizer.step();
    for (auto& p : model->parameters()) p.mutable_grad().reset();
    (void)loss.item<float>();
    std::printf("%.6f\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    std::fflush(stdout);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("peak %ld\n", usage.ru_maxrss * 1024);
}

}  // namespace

int main(int argc, char** argv) try {
  train(Settings::from(argc, argv));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "libtorch_gpt: %s\n", error.what());
  return 1;
}
