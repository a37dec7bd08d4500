#pragma once
// launch/ (L5): how ranks come to be and find each other: rendezvous, rank environment, the local launcher, signals.
// The only home of pmix.h and hwloc. May include L0-L4; knows nothing of what the ranks will do.
//
// InprocRendezvous: ranks that are threads of one process, for tests, sanitizers and debuggers.
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "framework/api/comm.hpp"

namespace altiplano {

/// What the ranks of one job share; make one and hand it to every rank's InprocRendezvous. Thread-safe.
class InprocWorld {
 public:
  explicit InprocWorld(int world_size, std::string job_id = "inproc");

 private:
  friend class InprocRendezvous;
  const int world_size_;
  const std::string job_id_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, std::string>, std::string> values_;
  std::vector<bool> at_fence_;
  uint64_t fences_ = 0;  // completed ones
  std::map<std::string, std::weak_ptr<void>> memory_;
};

class InprocRendezvous final : public Rendezvous {
 public:
  InprocRendezvous(std::shared_ptr<InprocWorld> world, RankId rank) : world_(std::move(world)), rank_(rank) {}
  RankId rank() const override { return rank_; }
  int world_size() const override { return world_->world_size_; }
  std::string host() const override;
  std::string job_id() const override { return world_->job_id_; }
  Status put(const std::string& key, const std::string& value) override;
  Status fence(std::chrono::milliseconds deadline) override;
  Result<std::string> get(RankId rank, const std::string& key) override;
  /// Zeroed, 64-byte aligned; lives as long as any rank holds it.
  std::shared_ptr<void> shared_in_process(const std::string& key, size_t bytes) override;

 private:
  std::shared_ptr<InprocWorld> world_;
  RankId rank_;
};

/// This machine's name without its domain.
std::string short_host_name();
/// "rank 1 (n3, local 1), rank 2 (n3, local 2)": ranks of one host.
std::string names_of_ranks(const std::vector<int>& ranks, const std::string& host);

}  // namespace altiplano
