#include "plugins/devices/cpu/attention_block.hpp"

namespace altiplano::cpu {

namespace {

/// q (or k, or v) within qkv [b,s,3,h,k].
OperandLayout part_of(OperandLayout qkv) {
  for (std::vector<int64_t>* dims : {&qkv.extents, &qkv.origin, &qkv.global}) dims->erase(dims->begin() + 2);
  return qkv;
}

}  // namespace

Result<AttentionShape> AttentionShape::from(const KernelRequest& request, size_t num_inputs) {
  AttentionShape out;
  out.packed = request.kind.starts_with("packed_");
  const size_t start_input = out.number(num_inputs);
  if (request.inputs.size() < start_input || request.inputs.size() > start_input + 1)
    return invalid_argument("device/cpu: {} with {} inputs; needs {} or {}", request.kind, request.inputs.size(),
                            start_input, start_input + 1);
  const OperandLayout& first_input = request.inputs[0];
  if (out.packed && (first_input.extents.size() != 5 || first_input.extents[2] != 3))
    return invalid_argument("device/cpu: {} of {}; needs qkv [b,s,3,h,k]", request.kind,
                            to_string(first_input.extents));
  const OperandLayout q = out.packed ? part_of(first_input) : first_input;
  const OperandLayout k = out.packed ? q : request.inputs[1], v = out.packed ? q : request.inputs[2];
  const bool rank_fits = q.extents.size() == 4 && k.extents.size() == 4 && v.extents == k.extents;
  if (!rank_fits || q.extents[0] != k.extents[0] || q.extents[2] != k.extents[2] || q.extents[3] != k.extents[3]) {
    return invalid_argument("device/cpu: {} of q {}, k {}, v {}: needs q [b,s,h,k], k and v [b,t,h,k]", request.kind,
                            to_string(q.extents), to_string(k.extents), to_string(v.extents));
  }
  const double p = request.attributes.get_float("dropout");
  if (!(p >= 0 && p < 1))
    return invalid_argument("device/cpu: {} with dropout = {}; needs 0 <= dropout < 1", request.kind, p);
  out.batch = q.extents[0], out.queries = q.extents[1], out.heads = q.extents[2], out.width = q.extents[3];
  out.keys = k.extents[1];
  out.query_origin = q.origin[1], out.key_origin = k.origin[1];
  out.scale = static_cast<float>(request.attributes.get_float("scale", 1.0));
  out.causal = request.attributes.get_int("causal") != 0;
  if (p > 0) out.dropout.emplace(request, p);
  out.query_stride = k.global[1];
  out.head_stride = out.query_stride * q.global[1];
  out.batch_stride = out.head_stride * q.global[2];
  out.first =
      q.origin[0] * out.batch_stride + q.origin[2] * out.head_stride + q.origin[1] * out.query_stride + k.origin[1];
  out.batch_moves = q.batch_dim == 0;
  if (request.inputs.size() > start_input) {
    const OperandLayout& start = request.inputs[start_input];
    if (start.dtype != DType::kI32 || start.extents != Shape{out.batch, out.queries})
      return invalid_argument("device/cpu: {} with document_start {}{}; needs i32{}", request.kind,
                              to_string(start.dtype), to_string(start.extents),
                              to_string(Shape{out.batch, out.queries}));
    out.document_start = static_cast<int>(start_input);
  }
  return out;
}

void multiply(Transposed a_is, Transposed b_is, int64_t m, int64_t n, int64_t k, float alpha, const Rows32& a,
              const Rows32& b, float beta, const Rows32& c) {
  if (m == 0 || n == 0 || k == 0) return;
  const auto letter = [](Transposed is) { return is == Transposed::kYes ? 'T' : 'N'; };
  const dnnl_status_t status = dnnl_sgemm(letter(a_is), letter(b_is), m, n, k, alpha, a.data, a.stride, b.data,
                                          b.stride, beta, c.data, c.stride);
  ALTIPLANO_ASSERT(status == dnnl_success, "dnnl_sgemm {}x{}x{}: {}", m, n, k, static_cast<int>(status));
}

void multiply_or_clear(int64_t m, int64_t n, int64_t k, const Rows32& a, const Rows32& b, const Rows32& c) {
  if (k > 0) return multiply(Transposed::kNo, Transposed::kNo, m, n, k, 1, a, b, 0, c);
  for (int64_t r = 0; r < m; ++r) std::fill_n(c.data + r * c.stride, n, 0.0f);
}

void multiply_alone() {
  omp_set_num_threads(1);
}

}  // namespace altiplano::cpu
