// Cases of products, pointwise ops, dropout, normalization and attention.
#include "framework/conformance/device_cases.hpp"

namespace altiplano::conformance {
namespace {

void add_products(std::vector<DeviceCase>& cases) {
  const DeviceCase all[] = {
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

void add_pointwise(std::vector<DeviceCase>& cases) {
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

void add_dropout(std::vector<DeviceCase>& cases) {
  const Attributes attributes{{"p", 0.3}, {"stream", std::string("block.0.drop")}};
  const StepScalars step{.step = 5};
  cases.push_back({"whole", "dropout", attributes, {x({3, 5, 7})}, {x({3, 5, 7})}, 0, step});
  const CaseOperand part = box({2, 4, 5}, {4, 3, 6}, {12, 9, 13});
  cases.push_back({"box of a microbatch", "dropout", attributes, {part}, {part}, 3, step});
  cases.push_back({"not training", "dropout", attributes, {part}, {part}, 3, {.step = 5, .training = false}});
  cases.push_back({"empty", "dropout", attributes, {x({3, 0})}, {x({3, 0})}, 0, step});
}

void add_fused(std::vector<DeviceCase>& cases) {
  for (const char* form : {"tanh", "erf"}) {
    const Attributes attributes{{"approximate", std::string(form)}};
    for (const auto& [s, b] :
         {std::pair(Shape{3, 5, 7}, Shape{7}), {Shape{130, 3, 33}, Shape{3, 33}}, {Shape{0, 4}, Shape{4}}}) {
      cases.push_back({to_string(s) + form, "bias_gelu", attributes, {x(s), x(b)}, {x(s)}});
      cases.push_back({to_string(s) + form, "bias_gelu_grad", attributes, {x(s), x(b), x(s)}, {x(s)}});
    }
  }
  const Attributes drops{{"p", 0.3}, {"stream", std::string("block.0.drop")}};
  const CaseOperand part = box({2, 4, 5}, {4, 3, 6}, {12, 9, 13}), long_rows = x({70, 300});
  for (const Attributes& attributes : {Attributes{}, drops}) {
    const std::string name = attributes.has("p") ? "dropout" : "plain";
    const StepScalars step{.step = 5}, validating{.step = 5, .training = false};
    cases.push_back({name, "residual_add", attributes, {part, part, x({5})}, {part}, 3, step});
    cases.push_back({name + " not training", "residual_add", attributes, {part, part, x({5})}, {part}, 3, validating});
    cases.push_back({name + " bias of two dims", "residual_add", attributes, {part, part, x({4, 5})}, {part}, 3, step});
    cases.push_back(
        {name + " long rows", "residual_add", attributes, {long_rows, long_rows, x({300})}, {long_rows}, 0, step});
  }
}

void add_normalization(std::vector<DeviceCase>& cases) {
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
void add_attention(std::vector<DeviceCase>& cases) {
  for (int64_t causal : {0, 1}) {
    for (double dropout : {0.0, 0.4}) {
      for (const Shape& size : {Shape{2, 9, 3, 5}, Shape{1, 70, 2, 33}, Shape{1, 301, 1, 6}, Shape{0, 4, 2, 3},
                                Shape{2, 4, 0, 3}, Shape{1, 1, 1, 1}}) {
        const auto part = [&](int64_t rows) {
          return box({size[0], rows, size[2], size[3]}, {2, 0, 3, 0}, {9, rows, 7, size[3]});
        };
        const int64_t keys = causal ? size[1] : size[1] + 3;
        const std::string name = to_string(size) + (causal ? " causal" : "") + (dropout > 0 ? " dropout" : "");
        const CaseOperand q = part(size[1]), k = part(keys);
        CaseOperand lse = box({size[0], size[2], size[1]}, {2, 3, 0}, {9, 7, size[1]}, kAcc);
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
        const CaseOperand qkv =
            box({size[0], size[1], 3, size[2], size[3]}, {2, 0, 0, 3, 0}, {9, size[1], 3, 7, size[3]});
        cases.push_back(
            {name, "packed_attention", attention_attributes(causal, dropout), {qkv}, {q, lse}, 4, {.step = 3}});
        cases.push_back({name,
                         "packed_attention_grad",
                         attention_attributes(causal, dropout),
                         {qkv, q, lse, q},
                         {qkv},
                         4,
                         {.step = 3}});
        if (causal == 0 || size[1] < 9) continue;
        const CaseOperand starts = ids({size[0], size[1]});  // where each query's document starts
        const auto packed = [&](const char* kind, std::vector<CaseOperand> inputs, const CaseOperand& result) {
          inputs.push_back(starts);
          std::vector<CaseOperand> outputs = {result};
          if (outputs[0].extents == q.extents) outputs.push_back(lse);
          cases.push_back({name + " documents",
                           kind,
                           attention_attributes(causal, dropout),
                           std::move(inputs),
                           std::move(outputs),
                           4,
                           {.step = 3}});
        };
        packed("packed_attention", {qkv}, q);
        packed("packed_attention_grad", {qkv, q, lse, q}, qkv);
      }
    }
  }
}

}  // namespace

void add_compute_cases(std::vector<DeviceCase>& cases) {
  add_products(cases);
  add_pointwise(cases);
  add_dropout(cases);
  add_fused(cases);
  add_normalization(cases);
  add_attention(cases);
}

}  // namespace altiplano::conformance
