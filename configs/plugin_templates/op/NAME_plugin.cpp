// The adapter: two op kinds, @name@ and the @name@_grad that its gradient is made of, with their kernels.
#include "@name@_kernels.hpp"
#include "framework/api/op.hpp"
#include "framework/api/register.hpp"

namespace {

using namespace altiplano;

Result<std::vector<ValueType>> infer_like_first(std::span<const ValueType> inputs, const Attributes&) {
  for (const ValueType& input : inputs)
    if (!is_floating(input.dtype) || input.shape != inputs[0].shape || input.dtype != inputs[0].dtype)
      return invalid_argument("floating tensors of one shape and type are needed, got {}{} and {}{}",
                              to_string(inputs[0].dtype), to_string(inputs[0].shape), to_string(input.dtype),
                              to_string(input.shape));
  return std::vector<ValueType>{inputs[0]};
}

/// Elementwise: every dim may be split. "[a,b] -> [a,b]", or with two inputs "[a,b] [a,b] -> [a,b]".
std::string elementwise_rule(std::span<const ValueType> inputs, std::span<const ValueType>, const Attributes&) {
  std::string dims, text;
  for (size_t i = 0; i < inputs[0].shape.size(); ++i) dims += fmt::format("{}d{}", i == 0 ? "" : ",", i);
  for (size_t i = 0; i < inputs.size(); ++i) text += fmt::format("[{}] ", dims);
  return text + fmt::format("-> [{}]", dims);
}

OpDefinition elementwise(std::string kind, std::string help, int num_inputs) {
  OpDefinition definition;
  definition.kind = std::move(kind);
  definition.help = std::move(help);
  definition.num_inputs = num_inputs;
  definition.infer = infer_like_first;
  definition.rule = elementwise_rule;
  return definition;
}

template <typename T>
class ForwardKernel final : public Kernel {
 public:
  explicit ForwardKernel(int64_t n) : n_(n) {}
  Status run(const KernelCall& call) noexcept override {
    @name@_plugin::run_softsign(static_cast<const T*>(call.inputs[0]), static_cast<T*>(call.outputs[0]), n_);
    return Status::ok();
  }

 private:
  int64_t n_;
};

template <typename T>
class GradientKernel final : public Kernel {
 public:
  explicit GradientKernel(int64_t n) : n_(n) {}
  Status run(const KernelCall& call) noexcept override {
    @name@_plugin::run_softsign_gradient(static_cast<const T*>(call.inputs[0]), static_cast<const T*>(call.inputs[1]),
                                  static_cast<T*>(call.outputs[0]), n_);
    return Status::ok();
  }

 private:
  int64_t n_;
};

template <typename T>
std::unique_ptr<Kernel> kernel_of(const KernelRequest& request) {
  const int64_t n = num_elements(request.outputs[0].extents);
  if (request.kind == "@name@") return std::make_unique<ForwardKernel<T>>(n);
  return std::make_unique<GradientKernel<T>>(n);
}

class @Name@Plugin final : public OpExtension {
 public:
  std::vector<OpDefinition> definitions() const override {
    OpDefinition forward = elementwise("@name@", "x / (1 + |x|): x -> y", 1);
    forward.gradient = [](GradientContext& context) {
      return std::vector<ValueId>{
          context.emit1("@name@_grad", "x", {context.output_gradient(), context.op().inputs[0]})};
    };
    return {forward, elementwise("@name@_grad", "gradient of @name@: dy, x -> dx", 2)};
  }

  std::vector<OpSample> samples() const override {
    const ValueType x{{6, 5, 4}, DType::kF32};
    return {{"@name@", {x}, {}, 0}, {"@name@_grad", {x, x}, {}, 0}};
  }

  Result<std::unique_ptr<Kernel>> make_kernel(const std::string& device_kind,
                                              const KernelRequest& request) const noexcept override {
    if (device_kind != "reference" && device_kind != "cpu")
      return invalid_argument("op/@name@: no kernel of {} for the device {}; there are some for reference and cpu",
                              request.kind, device_kind);
    switch (request.outputs[0].dtype) {
      case DType::kF64:
        return kernel_of<double>(request);
      case DType::kF32:
        return kernel_of<float>(request);
      case DType::kBF16:
        return kernel_of<BFloat16>(request);
      default:
        return invalid_argument("op/@name@: no kernel of {} in {}", request.kind, to_string(request.outputs[0].dtype));
    }
  }
};

}  // namespace

ALTIPLANO_REGISTER_PLUGIN(altiplano::OpExtension, @Name@Plugin, ALTIPLANO_PLUGIN_NAME, ALTIPLANO_PLUGIN_VERSION, 0,
                          "the activation x / (1 + |x|)")
