// Convolution and pooling of images [n,y,x,c] (samples, rows, columns, channels) by windows that move `stride` at a
// time over an image with `padding` rows and columns of nothing on every side. Rows and columns are whole: neighbours
// would have to exchange the edges of what they hold.
#include <algorithm>

#include "framework/graph/ops/helpers.hpp"

namespace altiplano {
namespace {

using namespace ops;

int64_t stride_of(const Attributes& attributes) {
  return attributes.get_int("stride", 1);
}
int64_t padding_of(const Attributes& attributes) {
  return attributes.get_int("padding", 0);
}

Status check_image(const ValueType& image, const char* what) {
  ALTIPLANO_RETURN_IF_ERROR(check_rank(image, 4, what));
  return check_floating(Types(&image, 1));
}

/// Places of a window of `window` rows and columns.
Result<Shape> places(const ValueType& image, int64_t rows, int64_t columns, const Attributes& attributes) {
  const int64_t stride = stride_of(attributes), padding = padding_of(attributes);
  if (stride < 1) return invalid_argument("stride is {}; it must be at least 1", stride);
  if (padding < 0) return invalid_argument("padding is {}; it must not be negative", padding);
  const int64_t height = image.shape[1] + 2 * padding - rows, width = image.shape[2] + 2 * padding - columns;
  if (rows < 1 || columns < 1 || height < 0 || width < 0)
    return invalid_argument("a window of {} x {} does not fit into an image of {} x {} with padding {}", rows, columns,
                            image.shape[1], image.shape[2], padding);
  return Shape{height / stride + 1, width / stride + 1};
}

/// Multiply-adds of all places of the window, as FLOPs: `output` [n,u,v,o] of a filter [p,q,c,o].
double convolution_flops(const Shape& output, const Shape& filter) {
  return 2.0 * static_cast<double>(num_elements(output)) * static_cast<double>(filter[0] * filter[1] * filter[2]);
}

Inferred infer_conv(Types inputs, const Attributes& attributes) {
  ALTIPLANO_RETURN_IF_ERROR(check_image(inputs[0], "the image [n,y,x,c]"));
  ALTIPLANO_RETURN_IF_ERROR(check_rank(inputs[1], 4, "the filter [p,q,c,o]"));
  ALTIPLANO_RETURN_IF_ERROR(check_dtype(inputs[1], inputs[0].dtype, "the filter"));
  const Shape &x = inputs[0].shape, &w = inputs[1].shape;
  if (w[2] != x[3]) return invalid_argument("the filter takes {} channels, the image has {}", w[2], x[3]);
  ALTIPLANO_ASSIGN(const Shape at, places(inputs[0], w[0], w[1], attributes));
  return std::vector<ValueType>{{{x[0], at[0], at[1], w[3]}, inputs[0].dtype}};
}

std::vector<ValueId> conv_gradient(GradientContext& context) {
  const ValueId dz = context.output_gradient(), x = context.op().inputs[0], w = context.op().inputs[1];
  Attributes attributes = context.op().attributes;
  std::vector<ValueId> gradients(2);
  if (context.wants_input(0)) {
    attributes.set("height", context.input(0).shape[1]);
    attributes.set("width", context.input(0).shape[2]);
    gradients[0] = context.emit1("conv2d_grad_input", "x", {dz, w}, attributes);
  }
  if (context.wants_input(1)) {
    Attributes of_filter = context.op().attributes;
    of_filter.set("rows", context.input(1).shape[0]);
    of_filter.set("columns", context.input(1).shape[1]);
    gradients[1] = context.emit1("conv2d_grad_weight", "w", {dz, x}, of_filter);
  }
  return gradients;
}

OpDefinition conv2d() {
  OpDefinition definition;
  definition.kind = "conv2d";
  definition.help = "convolution by `stride` with `padding`: image [n,y,x,c], filter [p,q,c,o] -> [n,u,v,o]";
  definition.num_inputs = 2;
  definition.infer = infer_conv;
  definition.rule = [](Types, Types, const Attributes&) -> std::string {
    return "[n,y,x,c] [p,q,c,o] -> [n,u,v,o]  sum: c  whole: y,x,p,q,u,v";
  };
  definition.flops = [](Types inputs, Types outputs, const Attributes&) {
    return convolution_flops(outputs[0].shape, inputs[1].shape);
  };
  definition.gradient = conv_gradient;
  return definition;
}

Inferred infer_conv_grad_input(Types inputs, const Attributes& attributes) {
  const ValueType &dz = inputs[0], &w = inputs[1];
  ALTIPLANO_RETURN_IF_ERROR(check_image(dz, "dz [n,u,v,o]"));
  ALTIPLANO_RETURN_IF_ERROR(check_rank(w, 4, "the filter [p,q,c,o]"));
  ALTIPLANO_RETURN_IF_ERROR(check_dtype(w, dz.dtype, "the filter"));
  const ValueType x{{dz.shape[0], attributes.get_int("height"), attributes.get_int("width"), w.shape[2]}, dz.dtype};
  ALTIPLANO_ASSIGN(const Shape at, places(x, w.shape[0], w.shape[1], attributes));
  ALTIPLANO_RETURN_IF_ERROR(check_shape(dz, {dz.shape[0], at[0], at[1], w.shape[3]}, "dz [n,u,v,o]"));
  return std::vector<ValueType>{x};
}

OpDefinition conv2d_grad_input() {
  OpDefinition definition;
  definition.kind = "conv2d_grad_input";
  definition.help = "gradient of conv2d: dz [n,u,v,o], filter [p,q,c,o] -> dx [n,`height`,`width`,c]";
  definition.num_inputs = 2;
  definition.infer = infer_conv_grad_input;
  definition.rule = [](Types, Types, const Attributes&) -> std::string {
    return "[n,u,v,o] [p,q,c,o] -> [n,y,x,c]  sum: o  whole: y,x,p,q,u,v";
  };
  definition.flops = [](Types inputs, Types, const Attributes&) {
    return convolution_flops(inputs[0].shape, inputs[1].shape);
  };
  return definition;
}

Inferred infer_conv_grad_weight(Types inputs, const Attributes& attributes) {
  const ValueType &dz = inputs[0], &x = inputs[1];
  const int64_t rows = attributes.get_int("rows"), columns = attributes.get_int("columns");
  ALTIPLANO_RETURN_IF_ERROR(check_image(dz, "dz [n,u,v,o]"));
  ALTIPLANO_RETURN_IF_ERROR(check_image(x, "the image [n,y,x,c]"));
  ALTIPLANO_RETURN_IF_ERROR(check_dtype(x, dz.dtype, "the image"));
  ALTIPLANO_ASSIGN(const Shape at, places(x, rows, columns, attributes));
  ALTIPLANO_RETURN_IF_ERROR(check_shape(dz, {x.shape[0], at[0], at[1], dz.shape[3]}, "dz [n,u,v,o]"));
  return std::vector<ValueType>{{{rows, columns, x.shape[3], dz.shape[3]}, acc(dz)}};
}

OpDefinition conv2d_grad_weight() {
  OpDefinition definition;
  definition.kind = "conv2d_grad_weight";
  definition.help = "gradient of conv2d: dz [n,u,v,o], image [n,y,x,c] -> dfilter [`rows`,`columns`,c,o]";
  definition.num_inputs = 2;
  definition.infer = infer_conv_grad_weight;
  definition.rule = [](Types, Types, const Attributes&) -> std::string {
    return "[n,u,v,o] [n,y,x,c] -> [p,q,c,o]  sum: n  whole: y,x,p,q,u,v";
  };
  definition.flops = [](Types inputs, Types outputs, const Attributes&) {
    return convolution_flops(inputs[0].shape, outputs[0].shape);
  };
  return definition;
}

// pooling
// --------------------------------------------------------------------------------------------------------------

Result<Shape> pooled_shape(const ValueType& image, const Attributes& attributes) {
  const int64_t window = attributes.get_int("window");
  if (padding_of(attributes) >= std::max<int64_t>(1, window))
    return invalid_argument("padding {} is not less than the window {}", padding_of(attributes), window);
  ALTIPLANO_ASSIGN(const Shape at, places(image, window, window, attributes));
  return Shape{image.shape[0], at[0], at[1], image.shape[3]};
}

double window_flops(const Shape& pooled, const Attributes& attributes) {
  const double window = static_cast<double>(attributes.get_int("window"));
  return window * window * static_cast<double>(num_elements(pooled));
}

OpDefinition max_pool() {
  OpDefinition definition;
  definition.kind = "max_pool";
  definition.help = "maximum of each `window` x `window`, by `stride` with `padding`: image [n,y,x,c] -> [n,u,v,c]";
  definition.infer = [](Types inputs, const Attributes& attributes) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_image(inputs[0], "the image [n,y,x,c]"));
    ALTIPLANO_ASSIGN(Shape shape, pooled_shape(inputs[0], attributes));
    return std::vector<ValueType>{{std::move(shape), inputs[0].dtype}};
  };
  definition.rule = [](Types, Types, const Attributes&) -> std::string {
    return "[n,y,x,c] -> [n,u,v,c]  whole: y,x,u,v";
  };
  definition.flops = [](Types, Types outputs, const Attributes& attributes) {
    return window_flops(outputs[0].shape, attributes);
  };
  definition.gradient = [](GradientContext& context) {
    const Op& op = context.op();
    return std::vector<ValueId>{
        context.emit1("max_pool_grad", "x", {op.inputs[0], op.outputs[0], context.output_gradient()}, op.attributes)};
  };
  return definition;
}

OpDefinition max_pool_grad() {
  OpDefinition definition;
  definition.kind = "max_pool_grad";
  definition.help = "gradient of max_pool, to the first maximum: image [n,y,x,c], pooled, dpooled [n,u,v,c] -> dx";
  definition.num_inputs = 3;
  definition.infer = [](Types inputs, const Attributes& attributes) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_image(inputs[0], "the image [n,y,x,c]"));
    ALTIPLANO_ASSIGN(const Shape shape, pooled_shape(inputs[0], attributes));
    for (const ValueType& pooled : inputs.subspan(1)) {
      ALTIPLANO_RETURN_IF_ERROR(check_shape(pooled, shape, "what was pooled and its gradient"));
      ALTIPLANO_RETURN_IF_ERROR(check_dtype(pooled, inputs[0].dtype, "what was pooled and its gradient"));
    }
    return std::vector<ValueType>{inputs[0]};
  };
  definition.rule = [](Types, Types, const Attributes&) -> std::string {
    return "[n,y,x,c] [n,u,v,c] [n,u,v,c] -> [n,y,x,c]  whole: y,x,u,v";
  };
  definition.flops = [](Types inputs, Types, const Attributes& attributes) {
    return window_flops(inputs[1].shape, attributes);
  };
  return definition;
}

OpDefinition mean_pool() {
  OpDefinition definition;
  definition.kind = "mean_pool";
  definition.help = "mean over rows and columns: image [n,y,x,c] -> [n,c]";
  definition.infer = [](Types inputs, const Attributes&) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_image(inputs[0], "the image [n,y,x,c]"));
    return std::vector<ValueType>{{{inputs[0].shape[0], inputs[0].shape[3]}, inputs[0].dtype}};
  };
  definition.rule = [](Types, Types, const Attributes&) -> std::string { return "[n,y,x,c] -> [n,c]  whole: y,x"; };
  definition.flops = [](Types inputs, Types, const Attributes&) {
    return static_cast<double>(num_elements(inputs[0].shape));
  };
  definition.gradient = [](GradientContext& context) {
    const Shape& image = context.input(0).shape;
    return std::vector<ValueId>{
        context.emit1("mean_pool_grad", "x", {context.output_gradient()}, {{"height", image[1]}, {"width", image[2]}})};
  };
  return definition;
}

OpDefinition mean_pool_grad() {
  OpDefinition definition;
  definition.kind = "mean_pool_grad";
  definition.help = "gradient of mean_pool: dmean [n,c] -> dx [n,`height`,`width`,c]";
  definition.infer = [](Types inputs, const Attributes& attributes) -> Inferred {
    ALTIPLANO_RETURN_IF_ERROR(check_rank(inputs[0], 2, "dmean [n,c]"));
    ALTIPLANO_RETURN_IF_ERROR(check_floating(inputs));
    const int64_t height = attributes.get_int("height"), width = attributes.get_int("width");
    if (height < 1 || width < 1) return invalid_argument("an image of {} x {}; both are at least 1", height, width);
    return std::vector<ValueType>{{{inputs[0].shape[0], height, width, inputs[0].shape[1]}, inputs[0].dtype}};
  };
  definition.rule = [](Types, Types, const Attributes&) -> std::string { return "[n,c] -> [n,y,x,c]  whole: y,x"; };
  return definition;
}

}  // namespace

void add_convolution_ops(std::vector<OpDefinition>& out) {
  for (auto* make : {conv2d, conv2d_grad_input, conv2d_grad_weight, max_pool, max_pool_grad, mean_pool, mean_pool_grad})
    out.push_back(make());
}

}  // namespace altiplano
