#include "plugins/devices/cpu/attention_tiles.hpp"

namespace altiplano::cpu {

Result<AttentionShape> AttentionShape::from(const KernelRequest& request, size_t start_input) {
  if (request.inputs.size() < start_input || request.inputs.size() > start_input + 1)
    return invalid_argument("device/cpu: {} with {} inputs; needs {} or {}", request.kind, request.inputs.size(),
                            start_input, start_input + 1);
  const OperandLayout &q = request.inputs[0], &k = request.inputs[1], &v = request.inputs[2];
  const bool rank_fits = q.extents.size() == 4 && k.extents.size() == 4 && v.extents == k.extents;
  if (!rank_fits || q.extents[0] != k.extents[0] || q.extents[2] != k.extents[2] || q.extents[3] != k.extents[3]) {
    return invalid_argument("device/cpu: {} of q {}, k {}, v {}: needs q [b,s,h,k], k and v [b,t,h,k]", request.kind,
                            to_string(q.extents), to_string(k.extents), to_string(v.extents));
  }
  const double p = request.attributes.get_float("dropout");
  if (!(p >= 0 && p < 1))
    return invalid_argument("device/cpu: {} with dropout = {}; needs 0 <= dropout < 1", request.kind, p);
  const auto padded = [](int64_t n) { return (n + kTile - 1) / kTile * kTile; };
  AttentionShape out;
  out.batch = q.extents[0], out.queries = q.extents[1], out.heads = q.extents[2], out.width = q.extents[3];
  out.keys = k.extents[1];
  out.padded_keys = padded(out.keys), out.padded_width = padded(out.width);
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

ALTIPLANO_CLONES void multiply_rows(int64_t n, int64_t width, const float* coefficients, int64_t coefficient_stride,
                                    const float* matrix, int64_t matrix_stride, float* out, int64_t out_stride) {
  for (int64_t j = 0; j < width; j += kTile) {
    float sums[kQueryRows][kTile] = {};
    for (int64_t i = 0; i < n; ++i) {
      const float* row = matrix + i * matrix_stride + j;
      for (int64_t r = 0; r < kQueryRows; ++r) {
        const float factor = coefficients[r * coefficient_stride + i];
#pragma omp simd
        for (int64_t c = 0; c < kTile; ++c) sums[r][c] += factor * row[c];
      }
    }
    for (int64_t r = 0; r < kQueryRows; ++r) std::copy(sums[r], sums[r] + kTile, out + r * out_stride + j);
  }
}

ALTIPLANO_CLONES void add_outer(int64_t n, int64_t width, const float* coefficients, int64_t coefficient_stride,
                                const float* rows, float* out) {
  for (int64_t i = 0; i < n; ++i) {
    float factors[kQueryRows];
    for (int64_t r = 0; r < kQueryRows; ++r) factors[r] = coefficients[r * coefficient_stride + i];
    float* to = out + i * width;
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) {
      float sum = factors[0] * rows[c];
      for (int64_t r = 1; r < kQueryRows; ++r) sum += factors[r] * rows[r * width + c];
      to[c] += sum;
    }
  }
}

}  // namespace altiplano::cpu
