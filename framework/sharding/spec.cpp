#include "framework/sharding/spec.hpp"

#include <algorithm>
#include <tuple>

#include "framework/base/text.hpp"

namespace altiplano {

AxisSet ShardingSpec::split_axes() const {
  AxisSet set;
  for (const auto& dim : dims)
    for (Axis axis : dim) set.insert(axis);
  return set;
}

ShardingSpec ShardingSpec::resolved() const {
  ShardingSpec spec = *this;
  spec.partial = {};
  spec.partial_kind = PartialKind::kSum;
  return spec;
}

static std::string axes_text(const AxisList& axes) {
  std::string text;
  for (Axis axis : axes) text += (text.empty() ? "{" : ", ") + std::string(to_string(axis));
  return text + "}";
}

std::string ShardingSpec::to_string() const {
  std::string text = "[";
  for (size_t d = 0; d < dims.size(); ++d) text += (d == 0 ? "" : ", ") + (dims[d].empty() ? "-" : axes_text(dims[d]));
  text += "]";
  if (partial.is_empty()) return text;
  AxisList axes;
  for (Axis axis : kAllAxes)
    if (partial.contains(axis)) axes.push_back(axis);
  return text + (partial_kind == PartialKind::kSum ? " sum" : " max") + axes_text(axes);
}

bool ShardingSpec::operator==(const ShardingSpec& other) const {
  return dims == other.dims && partial == other.partial && (partial.is_empty() || partial_kind == other.partial_kind);
}

bool ShardingSpec::operator<(const ShardingSpec& other) const {
  PartialKind mine = partial.is_empty() ? PartialKind::kSum : partial_kind;
  PartialKind theirs = other.partial.is_empty() ? PartialKind::kSum : other.partial_kind;
  return std::tie(dims, partial, mine) < std::tie(other.dims, other.partial, theirs);
}

namespace {

/// Reads a spec's text character by character; `fail` points at the place.
class SpecParser {
 public:
  explicit SpecParser(std::string_view text) : text_(text) {}

  Result<ShardingSpec> parse() {
    ShardingSpec spec;
    if (!take('[')) return fail("expected '['");
    if (!take(']')) {
      do {
        if (take('-')) {
          spec.dims.emplace_back();
        } else {
          ALTIPLANO_ASSIGN(auto axes, parse_axes());
          spec.dims.push_back(std::move(axes));
        }
      } while (take(','));
      if (!take(']')) return fail("expected ',' or ']'");
    }
    skip_blank();
    if (at_ == text_.size()) return spec;
    if (take_word("sum"))
      spec.partial_kind = PartialKind::kSum;
    else if (take_word("max"))
      spec.partial_kind = PartialKind::kMax;
    else
      return fail("expected 'sum', 'max' or the end");
    ALTIPLANO_ASSIGN(auto axes, parse_axes());
    for (Axis axis : axes) spec.partial.insert(axis);
    skip_blank();
    if (at_ != text_.size()) return fail("expected the end");
    return spec;
  }

 private:
  Result<AxisList> parse_axes() {
    AxisList axes;
    if (!take('{')) return fail("expected '-' or '{'");
    do {
      skip_blank();
      size_t start = at_;
      while (at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_]))) ++at_;
      auto axis = axis_from_string(text_.substr(start, at_ - start));
      if (!axis) return fail("expected an axis (" + axis_names() + ")");
      if (axes.size() == kAllAxes.size()) return fail("expected '}', for there are no more axes");
      axes.push_back(*axis);
    } while (take(','));
    if (!take('}')) return fail("expected ',' or '}'");
    return axes;
  }
  void skip_blank() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip_blank();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  Status fail(const std::string& what) const {
    return invalid_argument("sharding '{}': column {}: {}", text_, at_ + 1, what);
  }
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Result<ShardingSpec> ShardingSpec::parse(std::string_view text) {
  ALTIPLANO_ASSIGN(auto spec, SpecParser(text).parse());
  ALTIPLANO_RETURN_IF_ERROR(check_spec(spec, Shape(spec.dims.size(), 1)));
  return spec;
}

ShardingSpec normalized(ShardingSpec spec, const MeshShape& mesh) {
  for (AxisList& dim : spec.dims) {
    AxisList left;
    for (Axis axis : dim)
      if (mesh.degree(axis) > 1) left.push_back(axis);
    dim = left;
  }
  spec.partial = spec.partial & mesh.active();
  if (spec.partial.is_empty()) spec.partial_kind = PartialKind::kSum;
  return spec;
}

Status check_spec(const ShardingSpec& spec, const Shape& shape) {
  if (spec.dims.size() != shape.size())
    return invalid_argument("sharding {} has {} dims, the tensor {} has {}", spec.to_string(), spec.dims.size(),
                            to_string(shape), shape.size());
  AxisSet seen = spec.partial;
  for (const auto& dim : spec.dims) {
    for (Axis axis : dim) {
      if (seen.contains(axis))
        return invalid_argument("sharding {} uses axis {} twice", spec.to_string(), to_string(axis));
      seen.insert(axis);
    }
  }
  return Status::ok();
}

Box local_box(const ShardingSpec& spec, const Shape& shape, const MeshShape& mesh, int index) {
  auto coordinates = mesh.coordinates(index);
  Box box = Box::whole(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t block = shape[d];
    for (Axis axis : spec.dims[d]) {
      int degree = mesh.degree(axis);
      block = (block + degree - 1) / degree;
      int64_t begin = block * coordinates[static_cast<size_t>(axis)];
      // Clip inside the block of the axes before this one; late blocks may be short or empty.
      int64_t parent_end = box.origin[d] + box.extents[d];
      begin = std::min(box.origin[d] + begin, parent_end);
      box.extents[d] = std::min(block, parent_end - begin);
      box.origin[d] = begin;
    }
  }
  return box;
}

Shape padded_extents(const ShardingSpec& spec, const Shape& shape, const MeshShape& mesh) {
  Shape extents = shape;
  for (size_t d = 0; d < shape.size(); ++d)
    for (Axis axis : spec.dims[d]) extents[d] = (extents[d] + mesh.degree(axis) - 1) / mesh.degree(axis);
  return extents;
}

}  // namespace altiplano
