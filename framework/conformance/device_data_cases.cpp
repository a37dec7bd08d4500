// Cases of embeddings, losses, reductions, layout changes and optimizers.
#include "framework/conformance/device_cases.hpp"

namespace altiplano::conformance {
namespace {

void add_embedding(std::vector<DeviceCase>& cases) {
  cases.push_back({"whole", "embedding", {}, {x({11, 6}), ids({3, 5})}, {x({3, 5, 6})}});
  CaseOperand rows{kTested, {4, 6}, Fill::kNormal, {3, 0}, {11, 6}};
  cases.push_back({"box of rows", "embedding", {}, {rows, ids({3, 5})}, {x({3, 5, 6})}});
  cases.push_back({"no tokens", "embedding", {}, {x({11, 6}), ids({0, 5})}, {x({0, 5, 6})}});
  const Attributes count{{"rows", int64_t{11}}};
  cases.push_back({"whole", "embedding_grad", count, {x({3, 5, 6}), ids({3, 5})}, {acc({11, 6})}});
  cases.push_back({"wide", "embedding_grad", count, {x({40, 50, 70}), ids({40, 50})}, {acc({11, 70})}});
  rows.dtype = kAcc;
  cases.push_back({"box of rows", "embedding_grad", count, {x({3, 5, 6}), ids({3, 5})}, {rows}});
  cases.push_back({"no tokens", "embedding_grad", count, {x({0, 5, 6}), ids({0, 5})}, {acc({11, 6})}});
}

void add_loss(std::vector<DeviceCase>& cases) {
  const Shape tokens{3, 5};
  for (const auto& [name, origin, width] : {std::tuple{"whole", int64_t{0}, int64_t{11}},
                                            {"box", int64_t{4}, int64_t{5}},
                                            {"empty box", int64_t{11}, int64_t{0}}}) {
    const CaseOperand logits{kTested, {3, 5, width}, Fill::kNormal, {0, 0, origin}, {3, 5, 11}};
    const CaseOperand labels = ids(tokens, Fill::kLabels);
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

DeviceCase reduction(const char* kind, Shape from, std::vector<int64_t> dims, CaseOperand to) {
  return {to_string(from) + to_string(dims),
          kind,
          {{"dims", dims}, {"dtype", std::string(to_string(to.dtype))}},
          {x(from)},
          {to}};
}

void add_reductions(std::vector<DeviceCase>& cases) {
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

void add_layout(std::vector<DeviceCase>& cases) {
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

void add_optimizers(std::vector<DeviceCase>& cases) {
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

}  // namespace

void add_data_cases(std::vector<DeviceCase>& cases) {
  add_embedding(cases);
  add_loss(cases);
  add_reductions(cases);
  add_layout(cases);
  add_optimizers(cases);
}

}  // namespace altiplano::conformance
