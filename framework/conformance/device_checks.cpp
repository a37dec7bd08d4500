// Devices: every kernel against the oracle in f64, the same bits twice, memory counted to the byte.
//
// Bounds, relative to the largest element of a result: f32 kResultF32 (sums of at most a few hundred terms); bf16
// results half a unit of the last place of bf16, 2^-9, plus what intermediate roundings add (kResultBf16 = 2^-7).
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "framework/base/text.hpp"
#include "framework/conformance/check.hpp"
#include "framework/conformance/device_cases.hpp"
#include "framework/conformance/interpreter.hpp"
#include "framework/conformance/oracle.hpp"

namespace altiplano::conformance {
namespace {

// f32: three products of 70 terms in a row (attention_grad) lose two digits.
constexpr double kResultF32 = 1e-5, kResultBf16 = 1.0 / 128;

Result<std::unique_ptr<Device>> open(DeviceBackend& backend, int threads) {
  return backend.open({.threads = threads});
}

bool has_type(const Device& device, DType dtype) {
  const auto& types = device.info().dtypes;
  return std::find(types.begin(), types.end(), dtype) != types.end();
}

/// Largest difference relative to the largest element; infinities must be equal.
double difference(const Tensor& have, const Tensor& want) {
  double largest = 0, off = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isinf(want[i])) {
      if (have[i] != want[i]) return HUGE_VAL;
      continue;
    }
    if (!std::isfinite(have[i])) return HUGE_VAL;
    largest = std::max(largest, std::abs(want[i]));
    off = std::max(off, std::abs(have[i] - want[i]));
  }
  return largest > 0 ? off / largest : off;
}

/// Whether the device has a kernel for the case. A device may know some op kinds only; the others it refuses by name.
Result<bool> has_kernel(Device& device, const DeviceCase& c, DType dtype) {
  const auto kernel = device.make_kernel(request_of(c, dtype));
  if (kernel.is_ok()) return true;
  ALTIPLANO_RETURN_IF_ERROR(must_mention(kernel.status(), {c.kind.c_str()}));
  return false;
}

/// The case once per form in which the device makes it.
Result<std::vector<DeviceCase>> in_every_form(Device& device, const DeviceCase& c, DType dtype) {
  ALTIPLANO_ASSIGN(const KernelForms forms, device.forms(request_of(c, dtype)));
  std::vector<DeviceCase> cases;
  for (const std::string& form : forms.names) {
    cases.push_back(c);
    cases.back().form = form;
  }
  if (cases.empty()) cases.push_back(c);
  return cases;
}

/// The cases the device has kernels for, in every form.
Result<std::vector<DeviceCase>> known_cases(Device& device, DType dtype) {
  std::vector<DeviceCase> known;
  for (const DeviceCase& c : device_cases()) {
    ALTIPLANO_ASSIGN(const bool is_known, has_kernel(device, c, dtype));
    if (!is_known) continue;
    ALTIPLANO_ASSIGN(const auto forms, in_every_form(device, c, dtype));
    known.insert(known.end(), forms.begin(), forms.end());
  }
  if (known.empty()) return broken("it has no kernel in {} of any op kind", to_string(dtype));
  return known;
}

/// "500 cases, 38 of 41 op kinds".
std::string count_text(const std::vector<DeviceCase>& cases) {
  std::set<std::string> kinds, all;
  for (const DeviceCase& c : cases) kinds.insert(c.kind);
  for (const DeviceCase& c : device_cases()) all.insert(c.kind);
  return fmt::format("{} cases, {} of {} op kinds", cases.size(), kinds.size(), all.size());
}

Result<std::vector<Tensor>> run_case(Device& device, const DeviceCase& c, DType dtype, const std::vector<Tensor>& in) {
  auto outputs = run_kernel(kernels_of(device), request_of(c, dtype), in, c.step, c.batch_offset);
  if (!outputs.is_ok())
    return Status(outputs.status()).with_context(fmt::format("in {} in {}", c.to_string(), to_string(dtype)));
  return outputs;
}

Status check_case(Device& device, Device& oracle, const DeviceCase& c, DType under_test) {
  const auto inputs = inputs_of(c, under_test);
  ALTIPLANO_ASSIGN(const auto want, run_case(oracle, c, DType::kF64, inputs));
  ALTIPLANO_ASSIGN(const auto have, run_case(device, c, under_test, inputs));
  const KernelRequest request = request_of(c, under_test);
  for (size_t i = 0; i < want.size(); ++i) {
    const double allowed = request.outputs[i].dtype == DType::kBF16 ? kResultBf16 : kResultF32;
    if (const double off = difference(have[i], want[i]); !(off <= allowed))
      return broken("{} in {}: output {} is off by {:.1e} of its largest element, allowed {:.0e}", c.to_string(),
                    to_string(under_test), i, off, allowed);
  }
  return Status::ok();
}

Finding check_results(DeviceBackend& backend, DType under_test) {
  ALTIPLANO_ASSIGN(const auto oracle, open_oracle());
  ALTIPLANO_ASSIGN(const auto device, open(backend, 2));
  ALTIPLANO_ASSIGN(const auto cases, known_cases(*device, under_test));
  for (const DeviceCase& c : cases) ALTIPLANO_RETURN_IF_ERROR(check_case(*device, *oracle, c, under_test));
  return count_text(cases);
}

Finding check_results_f32(DeviceBackend& backend) {
  return check_results(backend, DType::kF32);
}
Finding check_results_bf16(DeviceBackend& backend) {
  return check_results(backend, DType::kBF16);
}

Finding check_info(DeviceBackend& backend) {
  ALTIPLANO_ASSIGN(const auto device, open(backend, 2));
  const DeviceInfo& info = device->info();
  if (trim(info.name).empty()) return broken("it has no name");
  if (info.threads < 1 || info.threads > 2) return broken("opened with 2 threads, it says {}", info.threads);
  if (info.memory.value <= 0) return broken("it has {} of memory", to_string(info.memory));
  if (!has_type(*device, DType::kF32)) return broken("it computes no f32");
  std::vector<std::string> types;
  for (DType dtype : info.dtypes) types.emplace_back(to_string(dtype));
  return fmt::format("{}: {}, {}", info.name, join(types, " "), to_string(info.memory));
}

Finding check_repeats(DeviceBackend& backend) {
  ALTIPLANO_ASSIGN(const auto first, open(backend, 2));
  ALTIPLANO_ASSIGN(const auto second, open(backend, 2));
  ALTIPLANO_ASSIGN(const auto cases, known_cases(*first, DType::kF32));
  for (const DeviceCase& c : cases) {
    const auto inputs = inputs_of(c, DType::kF32);
    ALTIPLANO_ASSIGN(const auto once, run_case(*first, c, DType::kF32, inputs));
    ALTIPLANO_ASSIGN(const auto again, run_case(*second, c, DType::kF32, inputs));
    if (once != again) return broken("{} gives other bits the second time", c.to_string());
  }
  return count_text(cases);
}

Finding check_thread_counts(DeviceBackend& backend) {
  ALTIPLANO_ASSIGN(const auto one, open(backend, 1));
  ALTIPLANO_ASSIGN(const auto five, open(backend, 5));
  ALTIPLANO_ASSIGN(const auto cases, known_cases(*one, DType::kF32));
  for (const DeviceCase& c : cases) {
    const auto inputs = inputs_of(c, DType::kF32);
    ALTIPLANO_ASSIGN(const auto a, run_case(*one, c, DType::kF32, inputs));
    ALTIPLANO_ASSIGN(const auto b, run_case(*five, c, DType::kF32, inputs));
    for (size_t i = 0; i < a.size(); ++i)
      if (const double off = difference(b[i], a[i]); !(off <= kResultF32))
        return broken("{} with 5 threads is off by {:.1e} from 1 thread", c.to_string(), off);
  }
  return "1 and 5 threads";
}

Finding check_dropout(DeviceBackend& backend) {
  const Attributes attributes{{"p", 0.5}, {"stream", std::string("drop")}};
  ALTIPLANO_ASSIGN(const auto device, open(backend, 2));
  const Tensor ones(6 * 4 * 5, 1.0), part_of_ones(2 * 4 * 5, 1.0);
  const CaseOperand whole = box({6, 4, 5}, {0, 0, 0}, {6, 4, 5}), part = box({2, 4, 5}, {0, 0, 0}, {6, 4, 5});
  ALTIPLANO_ASSIGN(const auto want,
                   run_case(*device, {"all", "dropout", attributes, {whole}, {whole}}, DType::kF32, {ones}));
  const auto dropped = std::count(want[0].begin(), want[0].end(), 0.0);
  if (dropped < 20 || dropped > 100) return broken("with p = 0.5, {} of 120 elements are dropped", dropped);
  for (int64_t offset : {0, 2, 4}) {
    const DeviceCase some{"some", "dropout", attributes, {part}, {part}, offset};
    ALTIPLANO_ASSIGN(const auto have, run_case(*device, some, DType::kF32, {part_of_ones}));
    if (have[0] != Tensor(want[0].begin() + offset * 20, want[0].begin() + (offset + 2) * 20))
      return broken("samples {} and {} drop other elements as a microbatch than in the whole batch", offset,
                    offset + 1);
  }
  return fmt::format("{} of 120 elements dropped", dropped);
}

/// Runs an optimizer's kernel with its outputs over the inputs they alias.
Result<std::vector<Tensor>> run_in_place(Device& device, const DeviceCase& c, const std::vector<Tensor>& inputs) {
  const auto bytes = static_cast<int64_t>(inputs[0].size() * sizeof(float));
  std::vector<std::shared_ptr<void>> buffers;
  std::vector<float> host(inputs[0].size());
  std::vector<const void*> in;
  for (const Tensor& values : inputs) {
    std::transform(values.begin(), values.end(), host.begin(), [](double v) { return static_cast<float>(v); });
    ALTIPLANO_ASSIGN(void* buffer, device.allocate(bytes));
    buffers.emplace_back(buffer, [&device](void* memory) { device.free(memory); });
    ALTIPLANO_RETURN_IF_ERROR(device.copy_from_host(buffer, host.data(), bytes));
    in.push_back(buffer);
  }
  std::vector<void*> out;
  for (int alias : OpTable::instance().get(c.kind).aliases) out.push_back(buffers[static_cast<size_t>(alias)].get());
  ALTIPLANO_ASSIGN(auto kernel, device.make_kernel(request_of(c, DType::kF32)));
  ALTIPLANO_ASSIGN(void* workspace, device.allocate(kernel->workspace_bytes()));
  const Status status = kernel->run({in, out, &c.step, 0, workspace});
  device.free(workspace);
  ALTIPLANO_RETURN_IF_ERROR(status);
  std::vector<Tensor> results;
  for (void* buffer : out) {
    ALTIPLANO_RETURN_IF_ERROR(device.copy_to_host(host.data(), buffer, bytes));
    results.emplace_back(host.begin(), host.end());
  }
  return results;
}

Finding check_aliases(DeviceBackend& backend) {
  ALTIPLANO_ASSIGN(const auto device, open(backend, 2));
  int num_cases = 0;
  ALTIPLANO_ASSIGN(const auto cases, known_cases(*device, DType::kF32));
  for (const DeviceCase& c : cases) {
    if (OpTable::instance().get(c.kind).aliases.empty() || num_elements(c.inputs[0].extents) == 0) continue;
    const auto inputs = inputs_of(c, DType::kF32);
    ALTIPLANO_ASSIGN(const auto want, run_case(*device, c, DType::kF32, inputs));
    ALTIPLANO_ASSIGN(const auto have, run_in_place(*device, c, inputs));
    if (have != want) return broken("{} over its own inputs gives other bits", c.to_string());
    ++num_cases;
  }
  return fmt::format("{} cases", num_cases);
}

/// Boxes in device memory, checked on the host.
Finding check_copies(DeviceBackend& backend) {
  ALTIPLANO_ASSIGN(const auto device, open(backend, 2));
  const Box source{{2, 1, 4}, {4, 5, 6}}, destination{{0, 0, 5}, {7, 8, 7}};
  const Box part{{3, 2, 5}, {2, 3, 4}}, none{{3, 2, 5}, {2, 0, 4}};
  std::vector<float> from(static_cast<size_t>(source.num_elements())),
      want(static_cast<size_t>(destination.num_elements()), 100.0f);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
  const auto from_bytes = static_cast<int64_t>(from.size() * 4), to_bytes = static_cast<int64_t>(want.size() * 4);
  ALTIPLANO_ASSIGN(void* a, device->allocate(from_bytes));
  ALTIPLANO_ASSIGN(void* b, device->allocate(to_bytes));
  ALTIPLANO_RETURN_IF_ERROR(device->copy_from_host(a, from.data(), from_bytes));
  ALTIPLANO_RETURN_IF_ERROR(device->copy_from_host(b, want.data(), to_bytes));
  const auto at = [](const Box& box, int64_t i, int64_t j, int64_t k) {
    return static_cast<size_t>(((i - box.origin[0]) * box.extents[1] + j - box.origin[1]) * box.extents[2] + k -
                               box.origin[2]);
  };
  for (bool add : {false, true}) {
    for (int64_t i = 3; i < 5; ++i)
      for (int64_t j = 2; j < 5; ++j)
        for (int64_t k = 5; k < 9; ++k) {
          float& element = want[at(destination, i, j, k)];
          element = from[at(source, i, j, k)] + (add ? element : 0.0f);
        }
    ALTIPLANO_RETURN_IF_ERROR(device->copy({source, destination, part}, DType::kF32, a, b, add));
    ALTIPLANO_RETURN_IF_ERROR(device->copy({source, destination, none}, DType::kF32, a, b, add));
    std::vector<float> have(want.size());
    ALTIPLANO_RETURN_IF_ERROR(device->copy_to_host(have.data(), b, to_bytes));
    if (have != want) return broken("a box {} wrongly", add ? "is added" : "is copied");
  }
  if (device->copy({source, destination, source}, DType::kF32, a, b, false).is_ok())
    return broken("a copy of a part outside of the destination is accepted");
  device->free(a);
  device->free(b);
  return "copied, added, empty, out of bounds";
}

Finding check_allocations(DeviceBackend& backend) {
  ALTIPLANO_ASSIGN(const auto device, open(backend, 1));
  ALTIPLANO_ASSIGN(void* small, device->allocate(100));
  ALTIPLANO_ASSIGN(void* large, device->allocate(1'000'001));
  for (void* memory : {small, large})
    if (reinterpret_cast<uintptr_t>(memory) % 64 != 0) return broken("an allocation is not aligned to 64 bytes");
  std::vector<char> host(1'000'001, 'x');
  ALTIPLANO_RETURN_IF_ERROR(device->copy_to_host(host.data(), large, 1'000'001));
  if (std::any_of(host.begin(), host.end(), [](char c) { return c != 0; })) return broken("new memory is not zero");
  const auto count_is = [&](int64_t now, int64_t peak) {
    return device->allocated().value == now && device->peak_allocated().value == peak
               ? Status::ok()
               : broken("counted {} B and a peak of {} B; needed: {} and {}", device->allocated().value,
                        device->peak_allocated().value, now, peak);
  };
  ALTIPLANO_RETURN_IF_ERROR(count_is(1'000'101, 1'000'101));
  device->free(large);
  ALTIPLANO_RETURN_IF_ERROR(count_is(100, 1'000'101));
  const auto refused = device->allocate(device->info().memory.value);
  if (refused.is_ok()) return broken("more memory than there is was given");
  ALTIPLANO_RETURN_IF_ERROR(must_mention(refused.status(), {to_string(device->info().memory).c_str()}));
  device->free(small);
  ALTIPLANO_RETURN_IF_ERROR(count_is(0, 1'000'101));
  return "aligned, zero, counted";
}

/// Forms of one shape: named, different, of one workspace, and refused by name where there is no such form.
Status check_forms_of(Device& device, const DeviceCase& c, const KernelForms& forms) {
  const std::set<std::string> names(forms.names.begin(), forms.names.end());
  if (forms.shape.empty() || names.contains("")) return broken("{} has forms without a name", c.to_string());
  if (names.size() != forms.names.size()) return broken("{} has two forms of one name", c.to_string());
  KernelRequest request = request_of(c, DType::kF32);
  ALTIPLANO_ASSIGN(const auto first, device.make_kernel(request));
  for (const std::string& form : forms.names) {
    request.form = form;
    ALTIPLANO_ASSIGN(const auto kernel, device.make_kernel(request));
    if (kernel->workspace_bytes() != first->workspace_bytes())
      return broken("{} takes {} B of workspace as {} and {} B when nobody chooses", c.to_string(),
                    kernel->workspace_bytes(), form, first->workspace_bytes());
  }
  request.form = "folded";
  const auto refused = device.make_kernel(request);
  if (refused.is_ok()) return broken("{} is made in a form that it has not, folded", c.to_string());
  return must_mention(refused.status(), {"folded", forms.names.front().c_str()});
}

Finding check_forms(DeviceBackend& backend) {
  ALTIPLANO_ASSIGN(const auto device, open(backend, 2));
  std::map<std::string, std::vector<std::string>> of_shape;
  for (const DeviceCase& c : device_cases()) {
    ALTIPLANO_ASSIGN(const bool is_known, has_kernel(*device, c, DType::kF32));
    if (!is_known) continue;
    ALTIPLANO_ASSIGN(const KernelForms forms, device->forms(request_of(c, DType::kF32)));
    if (forms.names.empty()) continue;
    ALTIPLANO_RETURN_IF_ERROR(check_forms_of(*device, c, forms));
    const auto [known, is_new] = of_shape.emplace(forms.shape, forms.names);
    if (!is_new && known->second != forms.names) return broken("shape '{}' has other forms elsewhere", forms.shape);
  }
  return fmt::format("{} shapes with several forms", of_shape.size());
}

/// Memory that somebody else made: counted, computed in, left as it is.
Finding check_adoption(DeviceBackend& backend) {
  ALTIPLANO_ASSIGN(const auto device, open(backend, 1));
  std::vector<float> memory(64, 3.0F);
  const auto bytes = static_cast<int64_t>(memory.size() * sizeof(float));
  const Status adopted = device->adopt(memory.data(), bytes);
  if (!device->info().is_host_memory && adopted.is_ok()) return broken("it adopts memory that it cannot reach");
  if (!adopted.is_ok()) return "refused";
  if (device->allocated().value != bytes || device->peak_allocated().value != bytes)
    return broken("{} B adopted, counted {} B and a peak of {} B", bytes, device->allocated().value,
                  device->peak_allocated().value);
  if (device->adopt(memory.data(), device->info().memory.value).is_ok())
    return broken("more memory than there is was adopted");
  const Box whole{{0}, {32}};
  ALTIPLANO_RETURN_IF_ERROR(device->copy({whole, whole, whole}, DType::kF32, memory.data(), memory.data() + 32, true));
  device->free(memory.data());
  if (device->allocated().value != 0) return broken("{} B are counted after free", device->allocated().value);
  if (memory.front() != 3.0F || memory.back() != 6.0F) return broken("copies in adopted memory go wrong");
  return "counted, computed in, given back";
}

Finding check_refusals(DeviceBackend& backend) {
  ALTIPLANO_ASSIGN(const auto device, open(backend, 1));
  const auto unknown = device->make_kernel({.kind = "fold_paper", .attributes = {}, .inputs = {}, .outputs = {}});
  if (unknown.is_ok()) return broken("it has a kernel for fold_paper");
  ALTIPLANO_RETURN_IF_ERROR(must_mention(unknown.status(), {"fold_paper"}));
  if (has_type(*device, DType::kF64)) return "fold_paper";
  const auto wide =
      device->make_kernel(request_of(product("[m,k] [k,n] -> [m,n]", {2, 3}, {3, 4}, {2, 4}), DType::kF64));
  if (wide.is_ok()) return broken("f64 is not among its types, yet it makes a kernel in it");
  ALTIPLANO_RETURN_IF_ERROR(must_mention(wide.status(), {"f64"}));
  return "fold_paper, f64";
}

/// No kernel of these kinds: nothing to check.
std::string lacks_kernels(const Subject& subject, std::initializer_list<const char*> kinds) {
  auto device = open(subject.as<DeviceBackend>(), 1);
  if (!device.is_ok()) return "";
  for (const DeviceCase& c : device_cases())
    for (const char* kind : kinds)
      if (c.kind == kind && (*device)->make_kernel(request_of(c, DType::kF32)).is_ok()) return "";
  return fmt::format("it has no kernel of {}", join({kinds.begin(), kinds.end()}, " or "));
}

std::string no_dropout(const Subject& subject) {
  return lacks_kernels(subject, {"dropout"});
}
std::string no_optimizer(const Subject& subject) {
  return lacks_kernels(subject, {"adamw", "sgd"});
}
std::string no_bf16(const Subject& subject) {
  auto device = open(subject.as<DeviceBackend>(), 1);
  return device.is_ok() && !has_type(**device, DType::kBF16) ? "bf16 is not among its types" : "";
}

}  // namespace

std::vector<Check> device_checks() {
  std::vector<Check> checks = {
      check_of<DeviceBackend>("it says its name, threads, memory and types", check_info),
      check_of<DeviceBackend>("every kernel agrees with the oracle in f32; other kinds are refused by name",
                              check_results_f32),
      check_of<DeviceBackend>("every kernel agrees with the oracle in bf16; other kinds are refused by name",
                              check_results_bf16),
      check_of<DeviceBackend>("the same kernel gives the same bits again", check_repeats),
      check_of<DeviceBackend>("thread counts change results only by rounding", check_thread_counts),
      check_of<DeviceBackend>("a microbatch drops what the whole batch drops", check_dropout),
      check_of<DeviceBackend>("optimizer kernels may write over their inputs", check_aliases),
      check_of<DeviceBackend>("boxes are copied and added", check_copies),
      check_of<DeviceBackend>("allocations are aligned, zero and counted to the byte", check_allocations),
      check_of<DeviceBackend>("memory that others made is adopted, counted and left as it is", check_adoption),
      check_of<DeviceBackend>("what it cannot do is refused by name", check_refusals),
      check_of<DeviceBackend>("the forms of a kernel have names and one workspace", check_forms),
  };
  checks[2].not_owed = no_bf16;
  checks[5].not_owed = no_dropout;
  checks[6].not_owed = no_optimizer;
  return checks;
}

}  // namespace altiplano::conformance
