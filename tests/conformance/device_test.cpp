// Every device against device/reference: each op kind with odd sizes, boxes away from the origin, microbatches and
// empty extents.
//
// Inputs are rounded to their dtype first, and the reference gets the same numbers in f64, so what is measured is the
// device's own rounding. Bounds, relative to the largest element of a result: f32 kResultF32 (sums of at most a few
// hundred terms); bf16 results half a unit of the last place of bf16, 2^-9, plus what intermediate roundings add
// (kResultBf16 = 2^-7).
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <set>

#include "framework/base/random.hpp"
#include "framework/graph/op_definition.hpp"
#include "framework/kernels/bfloat16.hpp"
#include "framework/plugin/registry.hpp"
#include "tests/support/interpreter.hpp"

using namespace altiplano;

namespace {

constexpr double kResultF32 = 3e-6, kResultBf16 = 1.0 / 128;
constexpr DType T = DType::kBF16;    ///< in a case: the floating type under test
constexpr DType kAcc = DType::kF32;  ///< in a case: the accumulate type

/// What an operand's elements look like.
enum class Fill { kNormal, kPositive, kSmallIds, kLabels, kSorted };

struct Operand {
  DType dtype;
  Shape extents;
  Fill fill = Fill::kNormal;
  std::vector<int64_t> origin = {};  ///< empty: zeros
  Shape global = {};                 ///< empty: origin + extents
  int batch_dim = -1;
};

/// Inputs of a case may come from an earlier case's reference results ("lse of these scores").
struct Case {
  std::string name, kind;
  Attributes attributes;
  std::vector<Operand> inputs, outputs;
  int64_t batch_offset = 0;
  StepScalars step = {};
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.kind << " (" << c.name << ")";
}

OperandLayout layout_of(const Operand& operand, DType dtype) {
  OperandLayout layout;
  layout.dtype = dtype;
  layout.extents = operand.extents;
  layout.origin = operand.origin.empty() ? std::vector<int64_t>(operand.extents.size(), 0) : operand.origin;
  layout.global = operand.global;
  if (layout.global.empty()) {
    for (size_t i = 0; i < layout.extents.size(); ++i) layout.global.push_back(layout.origin[i] + layout.extents[i]);
  }
  layout.batch_dim = operand.batch_dim;
  return layout;
}

/// The case's types with the one under test, or all f64.
DType typed(DType dtype, DType under_test) {
  if (under_test == DType::kF64) return is_floating(dtype) ? DType::kF64 : dtype;
  return dtype == T ? under_test : dtype;
}

KernelRequest request_of(const Case& c, DType under_test) {
  KernelRequest request;
  request.kind = c.kind;
  request.attributes = c.attributes;
  if (c.attributes.has("dtype")) {
    const DType named = *dtype_from_string(c.attributes.get_string("dtype"));
    request.attributes.set("dtype", std::string(to_string(typed(named, under_test))));
  }
  request.seed = 17;
  for (const Operand& operand : c.inputs)
    request.inputs.push_back(layout_of(operand, typed(operand.dtype, under_test)));
  for (const Operand& operand : c.outputs)
    request.outputs.push_back(layout_of(operand, typed(operand.dtype, under_test)));
  return request;
}

double rounded(double value, DType dtype) {
  if (dtype == DType::kF32) return static_cast<double>(static_cast<float>(value));
  if (dtype == DType::kBF16)
    return static_cast<double>(float_from_bfloat16(bfloat16_from_float(static_cast<float>(value))));
  return value;
}

std::vector<double> elements_of(const Operand& operand, DType dtype, uint64_t stream) {
  std::vector<double> out(static_cast<size_t>(num_elements(operand.extents)));
  for (size_t i = 0; i < out.size(); ++i) {
    const double normal = random_normal(stream, 0, i), uniform = random_uniform(stream, 1, i);
    switch (operand.fill) {
      case Fill::kNormal:
        out[i] = rounded(normal, dtype);
        break;
      case Fill::kPositive:
        out[i] = rounded(0.5 + uniform, dtype);
        break;
      case Fill::kSorted:
        out[i] = rounded(3.0 + uniform, dtype);
        break;
      case Fill::kSmallIds:
        out[i] = std::floor(uniform * 11);
        break;
      case Fill::kLabels:
        out[i] = uniform < 0.25 ? -1 : std::floor(uniform * 11);
        break;
    }
  }
  return out;
}

std::vector<std::vector<double>> inputs_of(const Case& c, DType under_test) {
  std::vector<std::vector<double>> out;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    out.push_back(elements_of(c.inputs[i], typed(c.inputs[i].dtype, under_test), random_stream(i, c.kind + c.name)));
  }
  return out;
}

Operand x(Shape extents, Fill fill = Fill::kNormal) {
  return {T, std::move(extents), fill};
}
Operand acc(Shape extents, Fill fill = Fill::kNormal) {
  return {kAcc, std::move(extents), fill};
}
Operand ids(Shape extents, Fill fill = Fill::kSmallIds) {
  return {DType::kI32, std::move(extents), fill};
}
Operand f64(Shape extents) {
  return {DType::kF64, std::move(extents)};
}
/// A box of a global tensor whose dim 0 is the batch.
Operand box(Shape extents, std::vector<int64_t> origin, Shape global, DType dtype = T) {
  return {dtype, std::move(extents), Fill::kNormal, std::move(origin), std::move(global), 0};
}

Case product(const std::string& equation, Shape a, Shape b, Shape c, DType out = T) {
  return {equation + to_string(a),
          "matmul",
          {{"equation", equation}, {"dtype", std::string(to_string(out))}},
          {x(a), x(b)},
          {{out, c}}};
}

void add_products(std::vector<Case>& cases) {
  const Case all[] = {
      product("[b,s,d] [d,f] -> [b,s,f]", {3, 5, 17}, {17, 33}, {3, 5, 33}),
      product("[b,s,f] [d,f] -> [b,s,d]", {3, 5, 17}, {33, 17}, {3, 5, 33}),
      product("[b,s,d] [b,s,f] -> [d,f]", {3, 5, 17}, {3, 5, 33}, {17, 33}, kAcc),
      product("[b,s,d] [b,s,f] -> [f,d]", {3, 5, 17}, {3, 5, 33}, {33, 17}, kAcc),
      product("[b,s,d] [d,c,h,k] -> [b,s,c,h,k]", {2, 7, 12}, {12, 3, 2, 5}, {2, 7, 3, 2, 5}),
      product("[b,s,c,h,k] [d,c,h,k] -> [b,s,d]", {2, 7, 3, 2, 5}, {12, 3, 2, 5}, {2, 7, 12}),
      product("[b,s,h,k] [h,k,d] -> [b,s,d]", {2, 7, 4, 3}, {4, 3, 13}, {2, 7, 13}),
      product("[b,s,h,k] [b,s,d] -> [h,k,d]", {2, 7, 4, 3}, {2, 7, 13}, {4, 3, 13}, kAcc),
      product("[b,s,h,k] [b,t,h,k] -> [b,h,s,t]", {2, 7, 4, 3}, {2, 9, 4, 3}, {2, 4, 7, 9}),
      product("[b,h,s,t] [b,t,h,k] -> [b,s,h,k]", {2, 4, 7, 9}, {2, 9, 4, 3}, {2, 7, 4, 3}),
      product("[h,b,m,k] [h,b,k,n] -> [h,b,m,n]", {2, 3, 5, 7}, {2, 3, 7, 4}, {2, 3, 5, 4}),
      product("[m,k,l] [l,k,n] -> [m,n]", {5, 3, 4}, {4, 3, 6}, {5, 6}),
      product("[m,k] [n,k] -> [n,m]", {5, 30}, {7, 30}, {7, 5}),
      product("[m] [n] -> [m,n]", {5}, {7}, {5, 7}),
      product("[k] [k] -> []", {19}, {19}, {}),
      product("[m,k] [k] -> [m]", {6, 19}, {19}, {6}),
      product("[m,k] [k,n] -> [m,n]", {1, 64}, {64, 64}, {1, 64}),
      product("[m,k] [k,n] -> [m,n]", {64, 64}, {64, 1}, {64, 1}),
      product("[m,k] [k,n] -> [m,n]", {0, 4}, {4, 3}, {0, 3}),
      product("[m,k] [k,n] -> [m,n]", {5, 0}, {0, 3}, {5, 3}),
      product("[m,k] [k,n] -> [m,n]", {129, 257}, {257, 65}, {129, 65}, kAcc),
  };
  cases.insert(cases.end(), std::begin(all), std::end(all));
}

void add_pointwise(std::vector<Case>& cases) {
  for (const Shape& s : {Shape{3, 5, 7}, Shape{1}, Shape{0, 4}, Shape{260, 129}}) {
    const std::string name = to_string(s);
    for (const char* kind : {"add", "multiply"}) cases.push_back({name, kind, {}, {x(s), x(s)}, {x(s)}});
    cases.push_back({name, "scale", {{"factor", -1.75}}, {x(s)}, {x(s)}});
    for (const char* form : {"tanh", "erf"}) {
      cases.push_back({name + form, "gelu", {{"approximate", std::string(form)}}, {x(s)}, {x(s)}});
      cases.push_back({name + form, "gelu_grad", {{"approximate", std::string(form)}}, {x(s), x(s)}, {x(s)}});
    }
    cases.push_back({name + "up", "cast", {{"dtype", std::string("f32")}}, {x(s)}, {acc(s)}});
    cases.push_back({name + "down", "cast", {{"dtype", std::string("bf16")}}, {acc(s)}, {x(s)}});
    cases.push_back({name, "fill", {{"shape", s}, {"dtype", std::string("f32")}, {"value", 0.375}}, {}, {acc(s)}});
  }
  cases.push_back({"one dim", "add_bias", {}, {x({3, 5, 7}), x({7})}, {x({3, 5, 7})}});
  cases.push_back({"three dims", "add_bias", {}, {x({2, 5, 3, 2, 4}), x({3, 2, 4})}, {x({2, 5, 3, 2, 4})}});
  cases.push_back({"empty", "add_bias", {}, {x({0, 7}), x({7})}, {x({0, 7})}});
}

void add_dropout(std::vector<Case>& cases) {
  const Attributes attributes{{"p", 0.3}, {"stream", std::string("block.0.drop")}};
  const StepScalars step{.step = 5};
  cases.push_back({"whole", "dropout", attributes, {x({3, 5, 7})}, {x({3, 5, 7})}, 0, step});
  const Operand part = box({2, 4, 5}, {4, 3, 6}, {12, 9, 13});
  cases.push_back({"box of a microbatch", "dropout", attributes, {part}, {part}, 3, step});
  cases.push_back({"not training", "dropout", attributes, {part}, {part}, 3, {.step = 5, .training = false}});
  cases.push_back({"empty", "dropout", attributes, {x({3, 0})}, {x({3, 0})}, 0, step});
}

void add_normalization(std::vector<Case>& cases) {
  const Attributes eps{{"epsilon", 1e-5}};
  for (const Shape& lead : {Shape{3, 5}, Shape{0, 2}, Shape{150, 2}}) {
    for (int64_t d : {int64_t{1}, int64_t{19}, int64_t{300}}) {
      if (d == 1 && lead[0] == 3) continue;  // every value is its own mean: only rounding noise to compare
      Shape s = lead;
      s.push_back(d);
      const std::string name = to_string(s);
      if (d > 1) cases.push_back({name, "layer_norm", eps, {x(s), x({d}), x({d})}, {x(s), acc(lead), acc(lead)}});
      cases.push_back(
          {name, "layer_norm_grad_input", {}, {x(s), x(s), x({d}), acc(lead), acc(lead, Fill::kPositive)}, {x(s)}});
      cases.push_back({name,
                       "layer_norm_grad_weight",
                       {},
                       {x(s), x(s), acc(lead), acc(lead, Fill::kPositive)},
                       {acc({d}), acc({d})}});
      cases.push_back({name, "softmax", {}, {x(s)}, {x(s)}});
      cases.push_back({name, "softmax_grad", {}, {x(s, Fill::kPositive), x(s)}, {x(s)}});
    }
  }
}

Attributes attention_attributes(int64_t causal, double dropout) {
  return {{"scale", 0.4}, {"causal", causal}, {"dropout", dropout}, {"stream", std::string("block.1.attention")}};
}

/// q, k, v as boxes of 7 heads and a batch of 9: rows from 2, heads from 3.
void add_attention(std::vector<Case>& cases) {
  for (int64_t causal : {0, 1}) {
    for (double dropout : {0.0, 0.4}) {
      for (const Shape& size :
           {Shape{2, 9, 3, 5}, Shape{1, 70, 2, 33}, Shape{0, 4, 2, 3}, Shape{2, 4, 0, 3}, Shape{1, 1, 1, 1}}) {
        const auto part = [&](int64_t rows) {
          return box({size[0], rows, size[2], size[3]}, {2, 0, 3, 0}, {9, rows, 7, size[3]});
        };
        const int64_t keys = causal ? size[1] : size[1] + 3;
        const std::string name = to_string(size) + (causal ? " causal" : "") + (dropout > 0 ? " dropout" : "");
        const Operand q = part(size[1]), k = part(keys);
        Operand lse = box({size[0], size[2], size[1]}, {2, 3, 0}, {9, 7, size[1]}, kAcc);
        cases.push_back(
            {name, "attention", attention_attributes(causal, dropout), {q, k, k}, {q, lse}, 4, {.step = 3}});
        lse.fill = Fill::kSorted;  // any lse serves: the gradient takes it as given, as do both devices
        cases.push_back({name,
                         "attention_grad",
                         attention_attributes(causal, dropout),
                         {q, k, k, q, lse, q},
                         {q, k, k},
                         4,
                         {.step = 3}});
      }
    }
  }
}

void add_embedding(std::vector<Case>& cases) {
  cases.push_back({"whole", "embedding", {}, {x({11, 6}), ids({3, 5})}, {x({3, 5, 6})}});
  Operand rows{T, {4, 6}, Fill::kNormal, {3, 0}, {11, 6}};
  cases.push_back({"box of rows", "embedding", {}, {rows, ids({3, 5})}, {x({3, 5, 6})}});
  cases.push_back({"no tokens", "embedding", {}, {x({11, 6}), ids({0, 5})}, {x({0, 5, 6})}});
  const Attributes count{{"rows", int64_t{11}}};
  cases.push_back({"whole", "embedding_grad", count, {x({3, 5, 6}), ids({3, 5})}, {acc({11, 6})}});
  cases.push_back({"wide", "embedding_grad", count, {x({40, 50, 70}), ids({40, 50})}, {acc({11, 70})}});
  rows.dtype = kAcc;
  cases.push_back({"box of rows", "embedding_grad", count, {x({3, 5, 6}), ids({3, 5})}, {rows}});
  cases.push_back({"no tokens", "embedding_grad", count, {x({0, 5, 6}), ids({0, 5})}, {acc({11, 6})}});
}

void add_loss(std::vector<Case>& cases) {
  const Shape tokens{3, 5};
  for (const auto& [name, origin, width] : {std::tuple{"whole", int64_t{0}, int64_t{11}},
                                            {"box", int64_t{4}, int64_t{5}},
                                            {"empty box", int64_t{11}, int64_t{0}}}) {
    const Operand logits{T, {3, 5, width}, Fill::kNormal, {0, 0, origin}, {3, 5, 11}};
    const Operand labels = ids(tokens, Fill::kLabels);
    cases.push_back({name, "reduce_max", {{"dims", std::vector<int64_t>{2}}}, {logits}, {acc(tokens)}});
    cases.push_back({name, "exp_sum", {}, {logits, acc(tokens)}, {acc(tokens)}});
    cases.push_back({name, "pick", {}, {logits, labels}, {acc(tokens)}});
    cases.push_back({name,
                     "cross_entropy_grad",
                     {},
                     {logits, acc(tokens), acc(tokens, Fill::kPositive), labels, acc(tokens)},
                     {logits}});
  }
  cases.push_back({"tokens",
                   "nll",
                   {},
                   {acc(tokens), acc(tokens, Fill::kPositive), acc(tokens), ids(tokens, Fill::kLabels)},
                   {acc(tokens)}});
  cases.push_back({"tokens", "count_valid", {}, {ids({7, 9}, Fill::kLabels)}, {f64({})}});
  cases.push_back({"none", "count_valid", {}, {ids({0, 9}, Fill::kLabels)}, {f64({})}});
}

Case reduction(const char* kind, Shape from, std::vector<int64_t> dims, Operand to) {
  return {to_string(from) + to_string(dims),
          kind,
          {{"dims", dims}, {"dtype", std::string(to_string(to.dtype))}},
          {x(from)},
          {to}};
}

void add_reductions(std::vector<Case>& cases) {
  for (const char* kind : {"reduce_sum", "reduce_max"}) {
    cases.push_back(reduction(kind, {3, 5, 7}, {0, 1}, acc({7})));
    cases.push_back(reduction(kind, {3, 5, 7}, {1, 2}, acc({3})));
    cases.push_back(reduction(kind, {3, 5, 7}, {1}, acc({3, 7})));
    cases.push_back(reduction(kind, {3, 5, 7}, {0, 2}, acc({5})));
    cases.push_back(reduction(kind, {3, 5, 7, 2}, {0, 2}, acc({5, 2})));
    cases.push_back(reduction(kind, {3, 0, 7}, {1}, acc({3, 7})));
    cases.push_back(reduction(kind, {3, 0}, {1}, acc({3})));
    cases.push_back(reduction(kind, {0, 7}, {1}, acc({0})));
  }
  cases.push_back(reduction("reduce_sum", {300, 2, 700}, {0, 1}, acc({700})));
  cases.push_back(reduction("reduce_sum", {3, 5}, {0, 1}, f64({})));
  cases.push_back(
      {"rows",
       "broadcast_to",
       {{"dims", std::vector<int64_t>{0, 2}}, {"sizes", std::vector<int64_t>{4, 3}}, {"dtype", std::string("f32")}},
       {x({5})},
       {acc({4, 5, 3})}});
  cases.push_back(
      {"seed",
       "broadcast_to",
       {{"dims", std::vector<int64_t>{0, 1}}, {"sizes", std::vector<int64_t>{4, 3}}, {"dtype", std::string("f32")}},
       {f64({})},
       {acc({4, 3})}});
  for (const Shape& s : {Shape{3, 5}, Shape{0}, Shape{300, 101}})
    cases.push_back({to_string(s), "sum_squares", {}, {acc(s)}, {f64({})}});
}

void add_layout(std::vector<Case>& cases) {
  cases.push_back({"split", "reshape", {{"shape", Shape{3, 5, 2, 4}}}, {x({3, 5, 8})}, {x({3, 5, 2, 4})}});
  cases.push_back({"empty", "reshape", {{"shape", Shape{0, 2, 4}}}, {x({0, 8})}, {x({0, 2, 4})}});
  for (const auto& order : {std::vector<int64_t>{0, 2, 1, 3}, {3, 2, 1, 0}, {1, 2, 3, 0}, {0, 1, 2, 3}}) {
    const Shape from{3, 4, 5, 6};
    Shape to;
    for (int64_t i : order) to.push_back(from[static_cast<size_t>(i)]);
    cases.push_back({to_string(order), "transpose", {{"permutation", order}}, {x(from)}, {x(to)}});
  }
  cases.push_back({"middle",
                   "slice",
                   {{"dim", int64_t{1}}, {"start", int64_t{2}}, {"length", int64_t{3}}},
                   {x({2, 7, 5})},
                   {x({2, 3, 5})}});
  cases.push_back({"of ids",
                   "slice",
                   {{"dim", int64_t{1}}, {"start", int64_t{2}}, {"length", int64_t{1}}},
                   {ids({2, 7})},
                   {ids({2, 1})}});
  cases.push_back({"middle",
                   "pad",
                   {{"dim", int64_t{1}}, {"before", int64_t{2}}, {"after", int64_t{1}}},
                   {x({2, 4, 5})},
                   {x({2, 7, 5})}});
  cases.push_back({"nothing",
                   "pad",
                   {{"dim", int64_t{0}}, {"before", int64_t{1}}, {"after", int64_t{2}}},
                   {x({0, 5})},
                   {x({3, 5})}});
  cases.push_back(
      {"three", "concat", {{"dim", int64_t{1}}}, {x({2, 3, 5}), x({2, 0, 5}), x({2, 4, 5})}, {x({2, 7, 5})}});
}

void add_optimizers(std::vector<Case>& cases) {
  const StepScalars step{.step = 3, .learning_rate = 0.01, .gradient_scale = 0.25};
  const Attributes adamw{{"beta1", 0.9}, {"beta2", 0.95}, {"epsilon", 1e-8}, {"weight_decay", 0.1}};
  const Attributes sgd{{"momentum", 0.9}, {"weight_decay", 0.1}};
  for (const Shape& s : {Shape{7, 5}, Shape{0, 5}, Shape{100, 201}}) {
    cases.push_back({to_string(s),
                     "adamw",
                     adamw,
                     {acc(s), acc(s), acc(s), acc(s, Fill::kPositive)},
                     {acc(s), acc(s), acc(s)},
                     0,
                     step});
    cases.push_back({to_string(s), "sgd", sgd, {acc(s), acc(s), acc(s)}, {acc(s), acc(s)}, 0, step});
  }
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  add_products(cases);
  add_pointwise(cases);
  add_dropout(cases);
  add_normalization(cases);
  add_attention(cases);
  add_embedding(cases);
  add_loss(cases);
  add_reductions(cases);
  add_layout(cases);
  add_optimizers(cases);
  return cases;
}

/// The devices on the search path other than the oracle.
std::vector<std::string> devices_under_test() {
  std::vector<std::string> names;
  for (const auto& info : PluginRegistry::instance().list()) {
    if (info.kind == DeviceBackend::kKind && info.refusal.empty() && info.name != "device/reference")
      names.push_back(info.name);
  }
  return names;
}

std::unique_ptr<Device> open(const std::string& name, int threads) {
  auto backend = PluginRegistry::instance().device(name);
  BOOST_REQUIRE_MESSAGE(backend.is_ok(), backend.status().to_string());
  auto device = (*backend)->open({.threads = threads});
  BOOST_REQUIRE_MESSAGE(device.is_ok(), device.status().to_string());
  return std::move(device).value();
}

/// Largest difference relative to the largest element; infinities must be equal.
double difference(const std::vector<double>& have, const std::vector<double>& want) {
  double largest = 0, off = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isinf(want[i])) {
      if (have[i] != want[i]) return HUGE_VAL;
      continue;
    }
    if (!std::isfinite(have[i])) return HUGE_VAL;
    largest = std::max(largest, std::abs(want[i]));
    off = std::max(off, std::abs(have[i] - want[i]));
  }
  return largest > 0 ? off / largest : off;
}

void check_case(Device& device, Device& reference, const Case& c, DType under_test) {
  const auto inputs = inputs_of(c, under_test);
  const auto want = test::run_kernel(reference, request_of(c, DType::kF64), inputs, c.step, c.batch_offset);
  const KernelRequest request = request_of(c, under_test);
  const auto have = test::run_kernel(device, request, inputs, c.step, c.batch_offset);
  for (size_t i = 0; i < want.size(); ++i) {
    const bool narrow = request.outputs[i].dtype == DType::kBF16;
    BOOST_TEST(have[i].size() == want[i].size());
    BOOST_TEST(
        difference(have[i], want[i]) <= (narrow ? kResultBf16 : kResultF32),
        c << " in " << to_string(under_test) << ": output " << i << " is off by " << difference(have[i], want[i]));
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(device)

BOOST_AUTO_TEST_CASE(there_is_a_device_to_test) {
  BOOST_TEST(!devices_under_test().empty());
}

BOOST_AUTO_TEST_CASE(every_op_kind_has_a_case) {
  std::set<std::string> covered;
  for (const Case& c : all_cases()) covered.insert(c.kind);
  for (const std::string& kind : OpTable::instance().kinds())
    BOOST_TEST(covered.count(kind) == 1, "no case of " << kind);
}

BOOST_AUTO_TEST_CASE(every_kernel_agrees_with_the_reference_in_f32) {
  auto reference = open("device/reference", 1);
  for (const std::string& name : devices_under_test()) {
    auto device = open(name, 2);
    for (const Case& c : all_cases()) check_case(*device, *reference, c, DType::kF32);
  }
}

BOOST_AUTO_TEST_CASE(every_kernel_agrees_with_the_reference_in_bf16) {
  auto reference = open("device/reference", 1);
  for (const std::string& name : devices_under_test()) {
    auto device = open(name, 2);
    for (const Case& c : all_cases()) check_case(*device, *reference, c, DType::kBF16);
  }
}

BOOST_AUTO_TEST_CASE(the_same_kernel_gives_the_same_bits_again) {
  for (const std::string& name : devices_under_test()) {
    auto first = open(name, 2), second = open(name, 2);
    for (const Case& c : all_cases()) {
      const auto inputs = inputs_of(c, DType::kF32);
      const KernelRequest request = request_of(c, DType::kF32);
      const auto once = test::run_kernel(*first, request, inputs, c.step, c.batch_offset);
      const auto again = test::run_kernel(*second, request, inputs, c.step, c.batch_offset);
      BOOST_TEST((once == again), c << " differs from itself");
    }
  }
}

BOOST_AUTO_TEST_CASE(thread_counts_change_results_only_by_rounding) {
  for (const std::string& name : devices_under_test()) {
    auto one = open(name, 1), five = open(name, 5);
    for (const Case& c : all_cases()) {
      const auto inputs = inputs_of(c, DType::kF32);
      const KernelRequest request = request_of(c, DType::kF32);
      const auto a = test::run_kernel(*one, request, inputs, c.step, c.batch_offset);
      const auto b = test::run_kernel(*five, request, inputs, c.step, c.batch_offset);
      for (size_t i = 0; i < a.size(); ++i) BOOST_TEST(difference(b[i], a[i]) <= kResultF32, c << " with 5 threads");
    }
  }
}

BOOST_AUTO_TEST_CASE(a_microbatch_drops_what_the_whole_batch_drops) {
  const Attributes attributes{{"p", 0.5}, {"stream", std::string("drop")}};
  for (const std::string& name : devices_under_test()) {
    auto device = open(name, 2);
    const std::vector<double> ones(6 * 4 * 5, 1.0);
    const Operand whole = box({6, 4, 5}, {0, 0, 0}, {6, 4, 5}), part = box({2, 4, 5}, {0, 0, 0}, {6, 4, 5});
    const Case all{"all", "dropout", attributes, {whole}, {whole}}, some{"some", "dropout", attributes, {part}, {part}};
    const auto want = test::run_kernel(*device, request_of(all, DType::kF32), {ones})[0];
    BOOST_TEST(std::count(want.begin(), want.end(), 0.0) > 20);
    for (int64_t offset : {0, 2, 4}) {
      const std::vector<double> x(ones.begin(), ones.begin() + 40);
      const auto have = test::run_kernel(*device, request_of(some, DType::kF32), {x}, {}, offset)[0];
      BOOST_TEST((have == std::vector<double>(want.begin() + offset * 20, want.begin() + (offset + 2) * 20)));
    }
  }
}

BOOST_AUTO_TEST_CASE(optimizer_kernels_may_write_over_their_inputs) {
  for (const std::string& name : devices_under_test()) {
    auto device = open(name, 2);
    for (const Case& c : all_cases()) {
      const OpDefinition& definition = OpTable::instance().get(c.kind);
      if (definition.aliases.empty() || num_elements(c.inputs[0].extents) == 0) continue;
      const auto inputs = inputs_of(c, DType::kF32);
      const auto want = test::run_kernel(*device, request_of(c, DType::kF32), inputs, c.step);
      std::vector<void*> buffers;
      std::vector<float> host(inputs[0].size());
      for (const auto& values : inputs) {
        std::copy(values.begin(), values.end(), host.begin());
        buffers.push_back(device->allocate(static_cast<int64_t>(host.size() * sizeof(float))).value());
        BOOST_TEST(
            device->copy_from_host(buffers.back(), host.data(), static_cast<int64_t>(host.size() * sizeof(float)))
                .is_ok());
      }
      const std::vector<const void*> in(buffers.begin(), buffers.end());
      std::vector<void*> out;
      for (int alias : definition.aliases) out.push_back(buffers[static_cast<size_t>(alias)]);
      auto kernel = device->make_kernel(request_of(c, DType::kF32));
      BOOST_REQUIRE_MESSAGE(kernel.is_ok(), kernel.status().to_string());
      BOOST_TEST((*kernel)->run({in, out, &c.step}).is_ok());
      for (size_t i = 0; i < out.size(); ++i) {
        BOOST_TEST(
            device->copy_to_host(host.data(), out[i], static_cast<int64_t>(host.size() * sizeof(float))).is_ok());
        BOOST_TEST((std::vector<double>(host.begin(), host.end()) == want[i]), c << " output " << i << " in place");
      }
      for (void* buffer : buffers) device->free(buffer);
    }
  }
}

BOOST_AUTO_TEST_CASE(boxes_are_copied_and_added) {
  const Box source{{2, 1, 4}, {4, 5, 6}}, destination{{0, 0, 5}, {7, 8, 7}};
  const Box part{{3, 2, 5}, {2, 3, 4}}, none{{3, 2, 5}, {2, 0, 4}};
  for (const std::string& name : devices_under_test()) {
    auto device = open(name, 2);
    std::vector<float> from(static_cast<size_t>(source.num_elements())),
        to(static_cast<size_t>(destination.num_elements()), 100.0f);
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
    std::vector<float> want = to;
    const auto at = [](const Box& box, int64_t i, int64_t j, int64_t k) {
      return static_cast<size_t>(((i - box.origin[0]) * box.extents[1] + j - box.origin[1]) * box.extents[2] + k -
                                 box.origin[2]);
    };
    for (bool add : {false, true}) {
      for (int64_t i = 3; i < 5; ++i) {
        for (int64_t j = 2; j < 5; ++j) {
          for (int64_t k = 5; k < 9; ++k) {
            float& element = want[at(destination, i, j, k)];
            element = from[at(source, i, j, k)] + (add ? element : 0.0f);
          }
        }
      }
      BOOST_TEST(device->copy({source, destination, part}, DType::kF32, from.data(), to.data(), add).is_ok());
      BOOST_TEST(device->copy({source, destination, none}, DType::kF32, from.data(), to.data(), add).is_ok());
      BOOST_TEST((to == want));
    }
    BOOST_TEST(!device->copy({source, destination, source}, DType::kF32, from.data(), to.data(), false).is_ok());
    double scalar = 2.5, sum = 1.0;
    BOOST_TEST(device->copy({{}, {}, {}}, DType::kF64, &scalar, &sum, true).is_ok());
    BOOST_TEST(sum == 3.5);
  }
}

BOOST_AUTO_TEST_CASE(allocations_are_counted_exactly_aligned_and_zero) {
  for (const std::string& name : devices_under_test()) {
    auto device = open(name, 1);
    void* small = device->allocate(100).value();
    void* large = device->allocate(1000001).value();
    BOOST_TEST(reinterpret_cast<uintptr_t>(small) % 64 == 0u);
    BOOST_TEST(reinterpret_cast<uintptr_t>(large) % 64 == 0u);
    std::vector<char> host(1000001, 'x');
    BOOST_TEST(device->copy_to_host(host.data(), large, 1000001).is_ok());
    BOOST_TEST((host == std::vector<char>(1000001, '\0')));
    BOOST_TEST(device->allocated().value == 1000101);
    device->free(large);
    BOOST_TEST(device->allocated().value == 100);
    BOOST_TEST(device->peak_allocated().value == 1000101);
    const auto refused = device->allocate(device->info().memory.value);
    BOOST_TEST(!refused.is_ok());
    BOOST_TEST(refused.status().message().find("100 B") != std::string::npos, refused.status().message());
    device->free(small);
    BOOST_TEST(device->allocated().value == 0);
  }
}

BOOST_AUTO_TEST_CASE(what_a_device_cannot_do_is_refused_by_name) {
  for (const std::string& name : devices_under_test()) {
    auto device = open(name, 1);
    const auto unknown = device->make_kernel({.kind = "fold_paper", .attributes = {}, .inputs = {}, .outputs = {}});
    BOOST_TEST(unknown.status().message().find("fold_paper") != std::string::npos, unknown.status().message());
    const auto& dtypes = device->info().dtypes;
    if (std::find(dtypes.begin(), dtypes.end(), DType::kF64) != dtypes.end()) continue;
    const auto wide =
        device->make_kernel(request_of(product("[m,k] [k,n] -> [m,n]", {2, 3}, {3, 4}, {2, 4}), DType::kF64));
    BOOST_TEST(!wide.is_ok());
    BOOST_TEST(wide.status().message().find("f64") != std::string::npos, wide.status().message());
  }
}

BOOST_AUTO_TEST_SUITE_END()
