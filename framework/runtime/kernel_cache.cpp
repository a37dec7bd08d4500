#include "framework/runtime/kernel_cache.hpp"

#include <algorithm>

namespace altiplano {

namespace {

OperandLayout layout_of(const Program& program, const Operand& operand) {
  const Buffer& buffer = program.buffer(operand.buffer);
  return {buffer.dtype, buffer.extents, operand.origin, operand.global, operand.batch_dim};
}

void append(std::string& key, int64_t number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void append(std::string& key, const std::vector<int64_t>& numbers) {
  append(key, static_cast<int64_t>(numbers.size()));
  for (int64_t number : numbers) append(key, number);
}

/// Equal for equal requests; no text, since programs of many layers ask for thousands.
std::string key_of(const KernelRequest& request) {
  std::string key = request.kind + request.attributes.to_string();
  for (const auto* operands : {&request.inputs, &request.outputs}) {
    append(key, static_cast<int64_t>(operands->size()));
    for (const OperandLayout& o : *operands) {
      append(key, static_cast<int64_t>(o.dtype));
      for (const auto* list : {&o.extents, &o.origin, &o.global}) append(key, *list);
      append(key, o.batch_dim);
    }
  }
  return key;
}

std::string text_of(const KernelRequest& request) {
  std::string key = request.kind + request.attributes.to_string();
  for (const auto* operands : {&request.inputs, &request.outputs}) {
    key += operands == &request.inputs ? " in" : " out";
    for (const OperandLayout& o : *operands)
      key += fmt::format(" {}{}@{}/{}:{}", to_string(o.dtype), to_string(o.extents), to_string(o.origin),
                         to_string(o.global), o.batch_dim);
  }
  return key;
}

}  // namespace

KernelRequest kernel_request(const Program& program, const ComputeInstruction& instruction, uint64_t seed) {
  KernelRequest request{instruction.kind, instruction.attributes, {}, {}, seed};
  for (const Operand& operand : instruction.inputs) request.inputs.push_back(layout_of(program, operand));
  for (const Operand& operand : instruction.outputs) request.outputs.push_back(layout_of(program, operand));
  return request;
}

void KernelCache::choose(const KernelTable& table) {
  table_ = table;
  std::erase_if(kernels_, [&](const auto& entry) {
    const Made& made = entry.second;
    return !made.shape.empty() && made.form != table_.form_of(made.shape);
  });
}

Result<KernelCache::Made> KernelCache::make(KernelRequest request) {
  Made made;
  for (const OpExtension* extension : extensions_) {
    auto definitions = extension->definitions();
    bool is_theirs = std::any_of(definitions.begin(), definitions.end(),
                                 [&](const OpDefinition& d) { return d.kind == request.kind; });
    if (!is_theirs) continue;
    ALTIPLANO_ASSIGN(made.kernel, extension->make_kernel(device_kind_, request));
    return made;
  }
  ALTIPLANO_ASSIGN(const KernelForms forms, device_.forms(request));
  if (!forms.names.empty()) {
    made.shape = forms.shape;
    made.form = request.form = table_.form_of(forms.shape);
  }
  ALTIPLANO_ASSIGN(made.kernel, device_.make_kernel(request));
  return made;
}

Result<Kernel*> KernelCache::get(const Program& program, const ComputeInstruction& instruction) {
  KernelRequest request = kernel_request(program, instruction, seed_);
  std::string key = key_of(request);
  auto it = kernels_.find(key);
  if (it == kernels_.end()) {
    auto made = make(request);
    if (!made.is_ok()) return Status(made.status()).with_context("while making the kernel " + text_of(request));
    it = kernels_.emplace(key, std::move(made).value()).first;
  }
  return it->second.kernel.get();
}

}  // namespace altiplano
