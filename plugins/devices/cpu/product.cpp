#include "plugins/devices/cpu/product.hpp"

#include <algorithm>
#include <optional>

#include "framework/graph/ops/einsum.hpp"

namespace altiplano::cpu {
namespace {

ProductLetter& letter_of(std::vector<ProductLetter>& letters, const std::string& name) {
  for (ProductLetter& letter : letters) {
    if (letter.name == name) return letter;
  }
  letters.push_back({name, -1, {}, {}});
  return letters.back();
}

/// All letters, those of C first and in C's order.
Result<std::vector<ProductLetter>> collect_letters(const std::string& equation,
                                                   const std::array<const Shape*, 3>& shapes) {
  ALTIPLANO_ASSIGN(const Einsum einsum, Einsum::parse(equation));
  const std::array<const std::vector<std::string>*, 3> names = {&einsum.a, &einsum.b, &einsum.c};
  std::vector<ProductLetter> letters;
  for (size_t operand : {kC, kA, kB}) {
    const Shape& shape = *shapes[operand];
    if (names[operand]->size() != shape.size()) {
      return invalid_argument("device/cpu: matmul '{}': operand {} has shape {}", equation, operand, to_string(shape));
    }
    const Shape strides = strides_of(shape);
    for (size_t i = 0; i < shape.size(); ++i) {
      ProductLetter& letter = letter_of(letters, (*names[operand])[i]);
      if (letter.extent >= 0 && letter.extent != shape[i]) {
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

Result<ProductLetters> ProductLetters::from(const std::string& equation, const Shape& a, const Shape& b,
                                            const Shape& c) {
  ALTIPLANO_ASSIGN(std::vector<ProductLetter> letters, collect_letters(equation, {&a, &b, &c}));
  ProductLetters out;
  const ProductLetter* last = nullptr;  // C's innermost letter that is no batch letter
  for (const ProductLetter& letter : letters) {
    if (letter.in[kC] && letter.in[kA] != letter.in[kB] && letter.extent != 1) last = &letter;
  }
  out.swapped = last != nullptr && last->in[kA];
  for (ProductLetter& letter : letters) {
    if (out.swapped) {
      std::swap(letter.in[kA], letter.in[kB]);
      std::swap(letter.strides[kA], letter.strides[kB]);
    }
    const bool both = letter.in[kA] && letter.in[kB];
    (!letter.in[kC] ? out.k : both ? out.batch : letter.in[kA] ? out.m : out.n).push_back(letter);
  }
  return out;
}

void ProductLetters::order_k_by(ProductOperand operand) {
  std::stable_sort(k.begin(), k.end(), [&](const ProductLetter& x, const ProductLetter& y) {
    return x.strides[operand] > y.strides[operand];
  });
}

int64_t MatrixView::num_elements() const {
  int64_t n = rows.extent * columns.extent;
  for (const ViewDim& dim : batch) n *= dim.extent;
  return n;
}

namespace {

int64_t extent_of(const std::vector<ProductLetter>& letters) {
  int64_t extent = 1;
  for (const ProductLetter& letter : letters) extent *= letter.extent;
  return extent;
}

/// The letters as one dim of the operand, if their strides nest.
std::optional<ViewDim> merge(const std::vector<ProductLetter>& letters, ProductOperand operand) {
  ViewDim out;
  bool first = true;
  for (const ProductLetter& letter : letters) {
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
bool add_packing(StridedCopy& packing, const std::vector<const std::vector<ProductLetter>*>& groups,
                 ProductOperand operand) {
  int64_t packed = 1;
  for (const auto* group : groups) packed *= extent_of(*group);
  for (const auto* group : groups) {
    for (const ProductLetter& letter : *group) {
      packed /= std::max<int64_t>(1, letter.extent);
      if (!packing.add_dim(letter.extent, letter.strides[operand], packed)) return false;
    }
  }
  return true;
}

/// Batch dims of all three operands: one merged dim where every operand allows it, else one per letter.
std::array<std::vector<ViewDim>, 3> batch_dims(const std::vector<ProductLetter>& batch) {
  std::array<std::vector<ViewDim>, 3> out;
  if (extent_of(batch) == 1) return out;
  const auto a = merge(batch, kA), b = merge(batch, kB), c = merge(batch, kC);
  if (a && b && c) return {{{*a}, {*b}, {*c}}};
  for (size_t operand : {kA, kB, kC}) {
    for (const ProductLetter& letter : batch) out[operand].push_back({letter.extent, letter.strides[operand]});
  }
  return out;
}

Result<MatrixView> view_of(const ProductLetters& letters, ProductOperand operand,
                           const std::vector<ProductLetter>& rows, const std::vector<ProductLetter>& columns,
                           std::vector<ViewDim> batch, bool must_stage, bool turned) {
  MatrixView view;
  view.batch = std::move(batch);
  const auto merged_rows = merge(rows, operand), merged_columns = merge(columns, operand);
  bool column_major = turned;
  if (!must_stage && merged_rows && merged_columns) {
    view.rows = *merged_rows, view.columns = *merged_columns;
    const bool usable = settle(view.rows, view.columns, operand == kC);
    if (usable && !turned) return view;
    column_major = turned && (!usable || view.columns.stride == 1);
  }
  view.staged = true;
  view.columns = {extent_of(columns), 1};
  view.rows = {extent_of(rows), std::max<int64_t>(1, view.columns.extent)};
  if (column_major) view.rows.stride = 1, view.columns.stride = std::max<int64_t>(1, view.rows.extent);
  int64_t stride = view.rows.extent * view.columns.extent;
  for (size_t i = view.batch.size(); i-- > 0; stride *= view.batch[i].extent) view.batch[i].stride = stride;
  const auto *outer = column_major ? &columns : &rows, *inner = column_major ? &rows : &columns;
  if (!add_packing(view.packing, {&letters.batch, outer, inner}, operand)) {
    return invalid_argument("device/cpu: matmul with more than {} dims in one operand", StridedCopy::kMaxDims);
  }
  return view;
}

Result<ProductViews> views_of(const ProductLetters& letters, std::array<bool, 3> must_stage,
                              std::array<bool, 3> turned) {
  const auto batch = batch_dims(letters.batch);
  ProductViews out;
  ALTIPLANO_ASSIGN(out.a, view_of(letters, kA, letters.m, letters.k, batch[kA], must_stage[kA], turned[kA]));
  ALTIPLANO_ASSIGN(out.b, view_of(letters, kB, letters.k, letters.n, batch[kB], must_stage[kB], turned[kB]));
  ALTIPLANO_ASSIGN(out.c, view_of(letters, kC, letters.m, letters.n, batch[kC], must_stage[kC], turned[kC]));
  out.m = extent_of(letters.m), out.n = extent_of(letters.n), out.k = extent_of(letters.k),
  out.batch = extent_of(letters.batch);
  return out;
}

}  // namespace

Result<ProductViews> plan_product(ProductLetters letters, std::array<bool, 3> must_stage, std::array<bool, 3> turned) {
  if (letters.swapped) std::swap(must_stage[kA], must_stage[kB]);
  ProductLetters by_b = letters;
  letters.order_k_by(kA);
  by_b.order_k_by(kB);
  ALTIPLANO_ASSIGN(ProductViews views, views_of(letters, must_stage, {}));
  ALTIPLANO_ASSIGN(ProductViews views_by_b, views_of(by_b, must_stage, {}));
  const auto staged = [](const ProductViews& v) { return v.a.staged + v.b.staged; };
  const bool takes_b = staged(views_by_b) < staged(views);
  if (turned != std::array<bool, 3>{}) return views_of(takes_b ? by_b : letters, must_stage, turned);
  return takes_b ? views_by_b : views;
}

namespace {

/// "n" row-major, "t" column-major, "s" staged; with what is not dense.
std::string view_text(const MatrixView& view) {
  if (view.staged) return "s";
  const bool row_major = view.columns.stride == 1;
  const int64_t leading = row_major ? view.rows.stride : view.columns.stride,
                dense = row_major ? view.columns.extent : view.rows.extent;
  std::string text = row_major ? "n" : "t";
  if (leading != dense) text += fmt::format("/{}", leading);
  int64_t stride = view.rows.extent * view.columns.extent;
  for (size_t i = view.batch.size(); i-- > 0; stride *= view.batch[i].extent)
    if (view.batch[i].stride != stride) text += fmt::format("*{}", view.batch[i].stride);
  return text;
}

}  // namespace

std::string shape_text(const ProductViews& views) {
  std::string text;
  for (const ViewDim& dim : views.a.batch) text += fmt::format("{}*", dim.extent);
  text += fmt::format("{}x{}x{} {}{}", views.m, views.n, views.k, view_text(views.a), view_text(views.b));
  const std::string result = view_text(views.c);
  return result == "n" ? text : text + ">" + result;
}

}  // namespace altiplano::cpu
