#include "framework/runtime/executor.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <span>
#include <thread>

#include "framework/base/random.hpp"
#include "framework/kernels/bfloat16.hpp"

namespace altiplano {

/// What is looked up once per instruction.
struct Executor::Prepared {
  Kernel* kernel = nullptr;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  Box box;  ///< of a feed: where the microbatch's part lies
};

Executor::Executor(const Program& program, Device& device, Communicator& communicator)
    : program_(program), device_(device), communicator_(communicator) {}

Executor::~Executor() {
  for (void* arena : arenas_)
    if (arena) device_.free(arena);
  for (void* arena : registered_) communicator_.free_registered(arena);
}

Result<std::unique_ptr<Executor>> Executor::create(const Program& program, Device& device, Communicator& communicator,
                                                   KernelCache& kernels) {
  std::unique_ptr<Executor> executor(new Executor(program, device, communicator));
  ALTIPLANO_RETURN_IF_ERROR(executor->allocate());
  ALTIPLANO_RETURN_IF_ERROR(executor->prepare(kernels));
  return executor;
}

namespace {

/// A communicator may do all of it, waiting included, before it returns.
bool is_for_peers(const Instruction& instruction) {
  const auto& what = instruction.what;
  return std::holds_alternative<CollectiveInstruction>(what) || std::holds_alternative<SendInstruction>(what) ||
         std::holds_alternative<RecvInstruction>(what) || std::holds_alternative<WaitSendInstruction>(what);
}

/// The arenas that collectives read or write: only these must be where peers reach them.
std::set<Arena> arenas_of_collectives(const Program& program) {
  std::set<Arena> arenas;
  for (const Block& block : program.blocks)
    for (const Instruction& instruction : block.instructions)
      if (const auto* collective = std::get_if<CollectiveInstruction>(&instruction.what))
        for (BufferId buffer : {collective->in, collective->out}) arenas.insert(program.buffer(buffer).arena);
  return arenas;
}

}  // namespace

Status Executor::allocate() {
  const std::set<Arena> shared = arenas_of_collectives(program_);
  int64_t bytes[3] = {program_.persistent_bytes, program_.stash_slot_bytes * program_.num_stash_slots,
                      program_.work_bytes};
  for (int i = 0; i < 3; ++i) {
    if (bytes[i] == 0) continue;
    auto memory = shared.count(static_cast<Arena>(i)) ? allocate_shared_arena(bytes[i]) : device_.allocate(bytes[i]);
    if (!memory.is_ok())
      return Status(memory.status())
          .with_context(
              fmt::format("while allocating the {} arena of rank {}", to_string(static_cast<Arena>(i)), program_.rank));
    arenas_[i] = *memory;
  }
  return Status::ok();
}

Result<void*> Executor::allocate_shared_arena(int64_t bytes) {
  const bool may_share = device_.info().is_host_memory && communicator_.world_size() > 1 &&
                         Bytes(bytes) <= device_.info().memory - device_.allocated();
  void* memory = may_share ? communicator_.allocate_registered(bytes) : nullptr;
  if (memory == nullptr) return device_.allocate(bytes);
  if (device_.adopt(memory, bytes).is_ok()) {
    registered_.push_back(memory);
    return memory;
  }
  communicator_.free_registered(memory);
  return device_.allocate(bytes);
}

Status Executor::prepare(KernelCache& kernels) {
  for (const PersistentTensor& tensor : program_.tensors)
    if (tensor.role == TensorRole::kTotals) totals_ = &tensor;
  for (const ProcessGroup& group : program_.groups) {
    bool is_member = std::find(group.ranks.begin(), group.ranks.end(), program_.rank) != group.ranks.end();
    if (!is_member) {
      groups_.emplace_back();
      continue;
    }
    ALTIPLANO_ASSIGN(GroupId id, communicator_.create_group(group.ranks, group.name));
    groups_.push_back(id);
  }
  size_t longest = 0, host_bytes = 64;
  for (const Block& block : program_.blocks) {
    std::vector<Prepared> list(block.instructions.size());
    for (size_t i = 0; i < block.instructions.size(); ++i) {
      const auto& what = block.instructions[i].what;
      if (const auto* compute = std::get_if<ComputeInstruction>(&what)) {
        ALTIPLANO_ASSIGN(list[i].kernel, kernels.get(program_, *compute));
        list[i].inputs.resize(compute->inputs.size());
        list[i].outputs.resize(compute->outputs.size());
      }
      if (const auto* feed = std::get_if<FeedInstruction>(&what)) {
        list[i].box = feed->box;
        host_bytes = std::max(host_bytes, static_cast<size_t>(program_.buffer(feed->buffer).bytes));
      }
      if (const auto* fetch = std::get_if<FetchInstruction>(&what))
        host_bytes = std::max(host_bytes, static_cast<size_t>(program_.buffer(fetch->buffer).bytes));
    }
    longest = std::max(longest, list.size());
    prepared_.push_back(std::move(list));
  }
  events_.resize(longest);
  last_send_.resize(program_.buffers.size());
  host_.resize(host_bytes);
  return Status::ok();
}

void* Executor::pointer(BufferId id, int slot) const {
  const Buffer& buffer = program_.buffer(id);
  char* base = static_cast<char*>(arenas_[static_cast<size_t>(buffer.arena)]);
  if (!base) return nullptr;  // an arena of nothing: all its buffers are empty
  return base + buffer.offset + (buffer.arena == Arena::kStash ? slot * program_.stash_slot_bytes : 0);
}

void* Executor::data(const PersistentTensor& tensor) {
  return pointer(tensor.buffer, 0);
}

Status Executor::run_step(InputSource& input, StepScalars scalars, const Decide& decide, bool wants_stop) {
  communicator_.set_step(scalars.step);
  scalars.training = true;
  if (wants_stop) {
    double one = 1;
    auto* totals = static_cast<double*>(data(*totals_));
    ALTIPLANO_RETURN_IF_ERROR(
        device_.copy_from_host(totals + static_cast<size_t>(Total::kStopRequests), &one, sizeof(one)));
  }
  return run(program_.step, input, scalars, decide);
}

Result<StepTotals> Executor::run_validation(InputSource& input) {
  StepScalars scalars;
  scalars.training = false;
  StepTotals result;
  ALTIPLANO_RETURN_IF_ERROR(run(program_.validation, input, scalars, [&](const StepTotals& totals, StepScalars&) {
    result = totals;
    return true;
  }));
  return result;
}

Result<NotFinite> Executor::find_not_finite(InputSource& input, StepScalars scalars) {
  NotFiniteSearch search(program_, device_);
  search_ = &search;
  const Status status = run_step(input, scalars, [](const StepTotals&, StepScalars&) { return false; });
  search_ = nullptr;
  ALTIPLANO_RETURN_IF_ERROR(status);
  return search.first();
}

Status Executor::run(const std::vector<TimetableEntry>& entries, InputSource& input, StepScalars& scalars,
                     const Decide& decide) {
  for (const TimetableEntry& entry : entries) {
    Status status = run_block(entry, input, scalars, decide);
    if (!status.is_ok())
      return status.with_context(
          fmt::format("in {} of step {} on rank {}", entry.action.to_string(), scalars.step, program_.rank));
  }
  Status sent = finish_sends();
  tell_move(false);
  if (!sent.is_ok()) sent.with_context(fmt::format("at the end of step {} on rank {}", scalars.step, program_.rank));
  return sent;
}

/// Peers take every message of a step within the same step, so this waits for nobody's next one; a rank that stops
/// after a step has left nothing behind that a peer still needs.
Status Executor::finish_sends() {
  for (Event& event : last_send_) {
    if (event.is_done()) continue;
    tell_move(true);
    ALTIPLANO_RETURN_IF_ERROR(communicator_.wait(event));
    event = {};
  }
  return Status::ok();
}

Status Executor::run_block(const TimetableEntry& entry, InputSource& input, StepScalars& scalars,
                           const Decide& decide) {
  const Block& block = program_.blocks[entry.block.index()];
  std::fill(events_.begin(), events_.end(), Event{});
  size_t index = 0;
  for (bool ends = false; index < block.instructions.size() && !ends; ++index) {
    const Instruction& instruction = block.instructions[index];
    const InstructionClock clock(profile_, entry.block, index);
    for (int before : instruction.after) {
      ALTIPLANO_RETURN_IF_ERROR(
          wait(events_[static_cast<size_t>(before)], block.instructions[static_cast<size_t>(before)].label));
      events_[static_cast<size_t>(before)] = {};
    }
    tell_move(is_for_peers(instruction));
    auto ended = issue(instruction, prepared_[entry.block.index()][index], index, entry, input, scalars, decide);
    if (!ended.is_ok()) return Status(ended.status()).with_context(instruction.label);
    ends = *ended;
  }
  for (size_t i = 0; i < index; ++i)
    if (!events_[i].is_done()) ALTIPLANO_RETURN_IF_ERROR(wait(events_[i], block.instructions[i].label));
  return Status::ok();
}

void Executor::tell_move(bool waits) const {
  if (report_ != nullptr) report_->move(waits);
}

Status Executor::wait(Event event, const std::string& label) {
  tell_move(true);
  Status status = communicator_.wait(event);
  if (!status.is_ok()) status.with_context(label);
  return status;
}

Result<bool> Executor::issue(const Instruction& instruction, Prepared& prepared, size_t index,
                             const TimetableEntry& entry, InputSource& input, StepScalars& scalars,
                             const Decide& decide) {
  int slot = entry.stash_slot;
  auto microbatch = static_cast<uint64_t>(entry.action.microbatch);
  if (const auto* compute_what = std::get_if<ComputeInstruction>(&instruction.what)) {
    ALTIPLANO_RETURN_IF_ERROR(compute(instruction, *compute_what, prepared, entry, scalars));
  } else if (const auto* copy = std::get_if<CopyInstruction>(&instruction.what)) {
    const char* from = static_cast<const char*>(pointer(copy->source, slot)) + copy->source_offset;
    char* to = static_cast<char*>(pointer(copy->destination, slot)) + copy->destination_offset;
    ALTIPLANO_RETURN_IF_ERROR(device_.copy(copy->boxes, program_.buffer(copy->source).dtype, from, to, copy->add));
  } else if (const auto* collective = std::get_if<CollectiveInstruction>(&instruction.what)) {
    CollectiveCall call{collective->kind,
                        collective->reduce,
                        program_.buffer(collective->in).dtype,
                        pointer(collective->in, slot),
                        pointer(collective->out, slot),
                        collective->count,
                        0};
    ALTIPLANO_ASSIGN(events_[index],
                     communicator_.collective(groups_[collective->group.index()], call, instruction.stream, {}));
  } else if (const auto* send = std::get_if<SendInstruction>(&instruction.what)) {
    ALTIPLANO_ASSIGN(last_send_[send->buffer.index()],
                     communicator_.send(send->peer, send->tag + microbatch, pointer(send->buffer, slot),
                                        program_.buffer(send->buffer).bytes, instruction.stream, {}));
  } else if (const auto* recv = std::get_if<RecvInstruction>(&instruction.what)) {
    ALTIPLANO_ASSIGN(events_[index], communicator_.recv(recv->peer, recv->tag + microbatch, pointer(recv->buffer, slot),
                                                        program_.buffer(recv->buffer).bytes, instruction.stream, {}));
  } else if (const auto* wait = std::get_if<WaitSendInstruction>(&instruction.what)) {
    ALTIPLANO_RETURN_IF_ERROR(communicator_.wait(last_send_[wait->buffer.index()]));
    last_send_[wait->buffer.index()] = {};
  } else if (const auto* fill = std::get_if<FillInstruction>(&instruction.what)) {
    ALTIPLANO_RETURN_IF_ERROR(device_.fill_zero(pointer(fill->buffer, slot), program_.buffer(fill->buffer).bytes));
  } else if (const auto* feed_what = std::get_if<FeedInstruction>(&instruction.what)) {
    ALTIPLANO_RETURN_IF_ERROR(feed(*feed_what, prepared, entry, input));
  } else if (const auto* fetch_what = std::get_if<FetchInstruction>(&instruction.what)) {
    return fetch(*fetch_what, scalars, decide);
  }
  return false;
}

Status Executor::compute(const Instruction& instruction, const ComputeInstruction& what, Prepared& prepared,
                         const TimetableEntry& entry, const StepScalars& scalars) {
  int slot = entry.stash_slot;
  for (size_t i = 0; i < what.inputs.size(); ++i) prepared.inputs[i] = pointer(what.inputs[i].buffer, slot);
  for (size_t i = 0; i < what.outputs.size(); ++i) prepared.outputs[i] = pointer(what.outputs[i].buffer, slot);
  KernelCall call{prepared.inputs, prepared.outputs, &scalars, entry.action.microbatch * program_.microbatch_samples,
                  what.workspace.is_valid() ? pointer(what.workspace, slot) : nullptr};
  if (search_ == nullptr) return prepared.kernel->run(call);
  ALTIPLANO_RETURN_IF_ERROR(search_->before(what, prepared.inputs));
  ALTIPLANO_RETURN_IF_ERROR(prepared.kernel->run(call));
  return search_->after(what, prepared.outputs, entry.action, instruction.label);
}

Status Executor::feed(const FeedInstruction& what, Prepared& prepared, const TimetableEntry& entry,
                      InputSource& input) {
  const auto batch_dim = static_cast<size_t>(what.batch_dim);
  prepared.box.origin[batch_dim] = what.box.origin[batch_dim] + entry.action.microbatch * program_.microbatch_samples;
  ALTIPLANO_RETURN_IF_ERROR(input.fill(what.value, prepared.box, host_.data()));
  return device_.copy_from_host(pointer(what.buffer, entry.stash_slot), host_.data(),
                                program_.buffer(what.buffer).bytes);
}

Result<bool> Executor::fetch(const FetchInstruction& what, StepScalars& scalars, const Decide& decide) {
  const Buffer& buffer = program_.buffer(what.buffer);
  ALTIPLANO_RETURN_IF_ERROR(device_.copy_to_host(host_.data(), pointer(what.buffer, 0), buffer.bytes));
  if (what.what == FetchKind::kTotals) {
    double values[kNumTotals];
    std::memcpy(values, host_.data(), sizeof(values));
    return !decide({values[0], values[1], values[2], values[3]}, scalars);
  }
  auto count = static_cast<size_t>(num_elements(buffer.extents));
  logits_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    if (buffer.dtype == DType::kF64) logits_[i] = static_cast<float>(reinterpret_cast<const double*>(host_.data())[i]);
    if (buffer.dtype == DType::kF32) logits_[i] = reinterpret_cast<const float*>(host_.data())[i];
    if (buffer.dtype == DType::kBF16)
      logits_[i] = float_from_bfloat16({reinterpret_cast<const uint16_t*>(host_.data())[i]});
  }
  return false;
}

// ---- initial weights ----

namespace {

void store(DType dtype, void* memory, int64_t first, std::span<const double> values) {
  const auto as = [&](auto* to, auto narrow) { std::transform(values.begin(), values.end(), to + first, narrow); };
  if (dtype == DType::kF64) as(static_cast<double*>(memory), [](double x) { return x; });
  if (dtype == DType::kF32) as(static_cast<float*>(memory), [](double x) { return static_cast<float>(x); });
  if (dtype == DType::kBF16)
    as(static_cast<BFloat16*>(memory), [](double x) { return bfloat16_from_float(static_cast<float>(x)); });
}

/// Calls visit(first local index, first global row-major index, count) for runs of elements that lie side by side in
/// the global tensor.
template <typename Visit>
void for_each_run(const Box& box, const Shape& global, Visit visit) {
  size_t dims = box.extents.size();  // that are walked; those behind them are whole
  int64_t run = 1;
  while (dims > 0) {
    --dims;
    run *= box.extents[dims];
    if (box.extents[dims] != global[dims]) break;
  }
  std::vector<int64_t> at(box.extents.size(), 0);
  const int64_t count = box.num_elements();
  for (int64_t local = 0; local < count; local += run) {
    int64_t index = 0;
    for (size_t d = 0; d < at.size(); ++d) index = index * global[d] + box.origin[d] + at[d];
    visit(local, static_cast<uint64_t>(index), run);
    for (size_t d = dims; d-- > 0;) {
      if (++at[d] < box.extents[d]) break;
      at[d] = 0;
    }
  }
}

/// Calls fill(part of the box, its first local index) on up to `threads` threads, for slices along dim 0.
template <typename Fill>
void for_each_slice(const Box& box, int threads, Fill fill) {
  constexpr int64_t kLeast = 1 << 14;  // elements that are worth a thread
  const int64_t rows = box.extents.empty() ? 1 : box.extents[0],
                width = box.num_elements() / std::max<int64_t>(1, rows);
  const int64_t slices = std::clamp<int64_t>(box.num_elements() / kLeast, 1, std::min<int64_t>(threads, rows));
  std::vector<std::jthread> others;
  for (int64_t i = slices; i-- > 0;) {
    const int64_t begin = rows * i / slices, end = rows * (i + 1) / slices;
    Box part = box;
    if (slices > 1) part.origin[0] += begin, part.extents[0] = end - begin;
    if (i == 0)
      fill(part, 0);
    else
      others.emplace_back([fill, part, first = begin * width] { fill(part, first); });
  }
}

}  // namespace

Status Executor::initialize(uint64_t seed) {
  for (const PersistentTensor& tensor : program_.tensors) ALTIPLANO_RETURN_IF_ERROR(initialize_tensor(tensor, seed));
  return Status::ok();
}

Status Executor::initialize_tensor(const PersistentTensor& tensor, uint64_t seed) {
  const Buffer& buffer = program_.buffer(tensor.buffer);
  bool is_weight = tensor.role == TensorRole::kParameter || tensor.role == TensorRole::kParameterCopy ||
                   tensor.role == TensorRole::kMaster;
  if (!is_weight || buffer.bytes == 0)
    return buffer.bytes == 0 ? Status::ok() : device_.fill_zero(pointer(tensor.buffer, 0), buffer.bytes);
  // A master draws the numbers of its parameter.
  std::string name = tensor.name;
  if (tensor.role == TensorRole::kMaster) name.resize(name.size() - std::string(".master").size());
  uint64_t stream = random_stream(seed, name);
  // Where the host reaches the device's memory, numbers are drawn into it.
  void* const memory = pointer(tensor.buffer, 0);
  std::vector<char> values(device_.info().is_host_memory ? 0 : static_cast<size_t>(buffer.bytes));
  void* const to = device_.info().is_host_memory ? memory : values.data();
  for_each_slice(tensor.box, device_.info().threads, [&](const Box& part, int64_t begin) {
    std::array<double, 1024> drawn;
    for_each_run(part, tensor.global, [&](int64_t local, uint64_t index, int64_t run) {
      for (int64_t i = 0; i < run; i += static_cast<int64_t>(drawn.size())) {
        const std::span<double> some(drawn.data(), std::min(drawn.size(), static_cast<size_t>(run - i)));
        initial_elements(tensor.init, stream, index + static_cast<uint64_t>(i), some);
        store(buffer.dtype, to, begin + local + i, some);
      }
    });
  });
  return values.empty() ? Status::ok() : device_.copy_from_host(memory, values.data(), buffer.bytes);
}

}  // namespace altiplano
