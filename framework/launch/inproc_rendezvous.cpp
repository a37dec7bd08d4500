#include "framework/launch/inproc_rendezvous.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "framework/base/text.hpp"

namespace altiplano {

std::string short_host_name() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return split(name, '.').front();
}

std::string names_of_ranks(const std::vector<int>& ranks, const std::string& host) {
  std::vector<std::string> names;
  for (int rank : ranks) names.push_back(fmt::format("rank {0} ({1}, local {0})", rank, host));
  return join(names, ", ");
}

InprocWorld::InprocWorld(int world_size, std::string job_id)
    : world_size_(world_size), job_id_(std::move(job_id)), at_fence_(static_cast<size_t>(world_size)) {}

std::string InprocRendezvous::host() const {
  return short_host_name();
}

Status InprocRendezvous::put(const std::string& key, const std::string& value) {
  std::lock_guard lock(world_->mutex_);
  world_->values_[{rank_.value, key}] = value;
  return Status::ok();
}

Status InprocRendezvous::fence(std::chrono::milliseconds deadline) {
  InprocWorld& world = *world_;
  std::unique_lock lock(world.mutex_);
  const uint64_t mine = world.fences_;
  world.at_fence_[rank_.index()] = true;
  if (std::all_of(world.at_fence_.begin(), world.at_fence_.end(), [](bool here) { return here; })) {
    world.at_fence_.assign(world.at_fence_.size(), false);
    ++world.fences_;
    world.changed_.notify_all();
    return Status::ok();
  }
  if (world.changed_.wait_for(lock, deadline, [&] { return world.fences_ != mine; })) return Status::ok();
  std::vector<int> missing;
  for (size_t r = 0; r < world.at_fence_.size(); ++r)
    if (!world.at_fence_[r]) missing.push_back(static_cast<int>(r));
  return {StatusCode::kPeerStuck,
          fmt::format("{} did not come within {:.1f} s at the start; noticed by rank {}",
                      names_of_ranks(missing, host()), std::chrono::duration<double>(deadline).count(), rank_)};
}

Result<std::string> InprocRendezvous::get(RankId rank, const std::string& key) {
  std::lock_guard lock(world_->mutex_);
  const auto found = world_->values_.find({rank.value, key});
  if (found == world_->values_.end()) return runtime_failure("rank {} has put no '{}'", rank, key);
  return found->second;
}

std::shared_ptr<void> InprocRendezvous::shared_in_process(const std::string& key, size_t bytes) {
  std::lock_guard lock(world_->mutex_);
  if (auto existing = world_->memory_[key].lock()) return existing;
  // Untouched pages of a mapping cost nothing: rings that are never used take no memory.
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  std::shared_ptr<void> owner(memory, [bytes](void* p) { munmap(p, bytes); });
  world_->memory_[key] = owner;
  return owner;
}

}  // namespace altiplano
