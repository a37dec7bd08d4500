#include "plugins/devices/cpu/einsum.hpp"

#include <algorithm>
#include <optional>

#include "framework/base/text.hpp"

namespace altiplano::cpu {
namespace {

/// "[b,s,d]" -> names. Nothing on a wrong form.
std::optional<std::vector<std::string>> parse_operand(const std::string& text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  std::vector<std::string> names;
  const std::string inside = trim(text.substr(1, text.size() - 2));
  if (inside.empty()) return names;
  for (const std::string& name : split(inside, ',')) names.push_back(trim(name));
  return names;
}

/// "[b,s] [s] -> [b]" -> the three operands' names.
std::optional<std::array<std::vector<std::string>, 3>> parse_names(const std::string& equation) {
  const size_t arrow = equation.find("->"), middle = equation.find(']');
  if (arrow == std::string::npos || middle == std::string::npos || middle > arrow) return std::nullopt;
  std::array<std::vector<std::string>, 3> out;
  const std::string texts[3] = {trim(equation.substr(0, middle + 1)),
                                trim(equation.substr(middle + 1, arrow - middle - 1)),
                                trim(equation.substr(arrow + 2))};
  for (size_t i = 0; i < 3; ++i) {
    const auto names = parse_operand(texts[i]);
    if (!names) return std::nullopt;
    out[i] = *names;
  }
  return out;
}

EinsumLetter& letter_of(std::vector<EinsumLetter>& letters, const std::string& name) {
  for (EinsumLetter& letter : letters) {
    if (letter.name == name) return letter;
  }
  letters.push_back({name, -1, {}, {}});
  return letters.back();
}

/// All letters, those of C first and in C's order.
Result<std::vector<EinsumLetter>> collect_letters(const std::string& equation,
                                                  const std::array<const Shape*, 3>& shapes) {
  const auto names = parse_names(equation);
  if (!names)
    return invalid_argument("device/cpu: matmul equation '{}' is not of the form '[m,k] [k,n] -> [m,n]'", equation);
  std::vector<EinsumLetter> letters;
  for (size_t operand : {kC, kA, kB}) {
    const Shape& shape = *shapes[operand];
    if ((*names)[operand].size() != shape.size()) {
      return invalid_argument("device/cpu: matmul '{}': operand {} has shape {}", equation, operand, to_string(shape));
    }
    const Shape strides = strides_of(shape);
    for (size_t i = 0; i < shape.size(); ++i) {
      EinsumLetter& letter = letter_of(letters, (*names)[operand][i]);
      if (letter.in[operand] || (letter.extent >= 0 && letter.extent != shape[i])) {
        return invalid_argument("device/cpu: matmul '{}': letter {} is {} in operand {} and {} elsewhere", equation,
                                letter.name, shape[i], operand, letter.extent);
      }
      letter.extent = shape[i];
      letter.in[operand] = true;
      letter.strides[operand] = strides[i];
    }
  }
  return letters;
}

}  // namespace

Result<Einsum> Einsum::parse(const std::string& equation, const Shape& a, const Shape& b, const Shape& c) {
  ALTIPLANO_ASSIGN(std::vector<EinsumLetter> letters, collect_letters(equation, {&a, &b, &c}));
  Einsum out;
  const EinsumLetter* last = nullptr;  // C's innermost letter that is no batch letter
  for (const EinsumLetter& letter : letters) {
    if (letter.in[kC] && !letter.in[kA] && !letter.in[kB]) {
      return invalid_argument("device/cpu: matmul '{}': letter {} of the result is in no operand", equation,
                              letter.name);
    }
    if (letter.in[kC] && letter.in[kA] != letter.in[kB] && letter.extent != 1) last = &letter;
  }
  out.swapped = last != nullptr && last->in[kA];
  for (EinsumLetter& letter : letters) {
    if (out.swapped) {
      std::swap(letter.in[kA], letter.in[kB]);
      std::swap(letter.strides[kA], letter.strides[kB]);
    }
    const bool both = letter.in[kA] && letter.in[kB];
    (!letter.in[kC] ? out.k : both ? out.batch : letter.in[kA] ? out.m : out.n).push_back(letter);
  }
  return out;
}

void Einsum::order_k_by(EinsumOperand operand) {
  std::stable_sort(k.begin(), k.end(), [&](const EinsumLetter& x, const EinsumLetter& y) {
    return x.strides[operand] > y.strides[operand];
  });
}

int64_t MatrixView::num_elements() const {
  int64_t n = rows.extent * columns.extent;
  for (const ViewDim& dim : batch) n *= dim.extent;
  return n;
}

namespace {

int64_t extent_of(const std::vector<EinsumLetter>& letters) {
  int64_t extent = 1;
  for (const EinsumLetter& letter : letters) extent *= letter.extent;
  return extent;
}

/// The letters as one dim of the operand, if their strides nest.
std::optional<ViewDim> merge(const std::vector<EinsumLetter>& letters, EinsumOperand operand) {
  ViewDim out;
  bool first = true;
  for (const EinsumLetter& letter : letters) {
    const int64_t stride = letter.strides[operand];
    if (letter.extent == 1) continue;
    if (!first && out.stride != stride * letter.extent) return std::nullopt;
    out = {out.extent * letter.extent, stride};
    first = false;
  }
  return out;
}

/// Fixes strides of dims of extent 1 and tells whether oneDNN can take the matrix as it lies.
bool settle(ViewDim& rows, ViewDim& columns, bool row_major_only) {
  if (columns.extent == 1) columns.stride = 1;
  if (rows.extent == 1) rows.stride = columns.stride == 1 ? std::max<int64_t>(1, columns.extent) : 1;
  const bool row_major = columns.stride == 1 && rows.stride >= columns.extent;
  const bool column_major = rows.stride == 1 && columns.stride >= rows.extent;
  return row_major || (column_major && !row_major_only);
}

/// Appends dims of a packed row-major tensor of all letters in this order.
bool add_packing(StridedCopy& packing, const std::vector<const std::vector<EinsumLetter>*>& groups,
                 EinsumOperand operand) {
  int64_t packed = 1;
  for (const auto* group : groups) packed *= extent_of(*group);
  for (const auto* group : groups) {
    for (const EinsumLetter& letter : *group) {
      packed /= std::max<int64_t>(1, letter.extent);
      if (!packing.add_dim(letter.extent, letter.strides[operand], packed)) return false;
    }
  }
  return true;
}

/// Batch dims of all three operands: one merged dim where every operand allows it, else one per letter.
std::array<std::vector<ViewDim>, 3> batch_dims(const std::vector<EinsumLetter>& batch) {
  std::array<std::vector<ViewDim>, 3> out;
  if (extent_of(batch) == 1) return out;
  const auto a = merge(batch, kA), b = merge(batch, kB), c = merge(batch, kC);
  if (a && b && c) return {{{*a}, {*b}, {*c}}};
  for (size_t operand : {kA, kB, kC}) {
    for (const EinsumLetter& letter : batch) out[operand].push_back({letter.extent, letter.strides[operand]});
  }
  return out;
}

Result<MatrixView> view_of(const Einsum& einsum, EinsumOperand operand, const std::vector<EinsumLetter>& rows,
                           const std::vector<EinsumLetter>& columns, std::vector<ViewDim> batch, bool must_stage) {
  MatrixView view;
  view.batch = std::move(batch);
  const auto merged_rows = merge(rows, operand), merged_columns = merge(columns, operand);
  if (!must_stage && merged_rows && merged_columns) {
    view.rows = *merged_rows, view.columns = *merged_columns;
    if (settle(view.rows, view.columns, operand == kC)) return view;
  }
  view.staged = true;
  view.columns = {extent_of(columns), 1};
  view.rows = {extent_of(rows), std::max<int64_t>(1, view.columns.extent)};
  int64_t stride = view.rows.extent * view.columns.extent;
  for (size_t i = view.batch.size(); i-- > 0; stride *= view.batch[i].extent) view.batch[i].stride = stride;
  if (!add_packing(view.packing, {&einsum.batch, &rows, &columns}, operand)) {
    return invalid_argument("device/cpu: matmul with more than {} dims in one operand", StridedCopy::kMaxDims);
  }
  return view;
}

Result<ProductViews> views_of(const Einsum& einsum, std::array<bool, 3> must_stage) {
  const auto batch = batch_dims(einsum.batch);
  ProductViews out;
  ALTIPLANO_ASSIGN(out.a, view_of(einsum, kA, einsum.m, einsum.k, batch[kA], must_stage[kA]));
  ALTIPLANO_ASSIGN(out.b, view_of(einsum, kB, einsum.k, einsum.n, batch[kB], must_stage[kB]));
  ALTIPLANO_ASSIGN(out.c, view_of(einsum, kC, einsum.m, einsum.n, batch[kC], must_stage[kC]));
  out.m = extent_of(einsum.m), out.n = extent_of(einsum.n), out.k = extent_of(einsum.k),
  out.batch = extent_of(einsum.batch);
  return out;
}

}  // namespace

Result<ProductViews> plan_product(Einsum einsum, std::array<bool, 3> must_stage) {
  if (einsum.swapped) std::swap(must_stage[kA], must_stage[kB]);
  einsum.order_k_by(kA);
  ALTIPLANO_ASSIGN(ProductViews by_a, views_of(einsum, must_stage));
  einsum.order_k_by(kB);
  ALTIPLANO_ASSIGN(ProductViews by_b, views_of(einsum, must_stage));
  const auto staged = [](const ProductViews& views) { return views.a.staged + views.b.staged; };
  return staged(by_b) < staged(by_a) ? by_b : by_a;
}

}  // namespace altiplano::cpu
