#include "framework/launch/pmix_rendezvous.hpp"

#ifdef ALTIPLANO_HAS_PMIX
#include <pmix.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "framework/base/text.hpp"
#include "framework/launch/inproc_rendezvous.hpp"
#endif

namespace altiplano {

#ifndef ALTIPLANO_HAS_PMIX

bool is_built_with_pmix() {
  return false;
}

Result<std::unique_ptr<Rendezvous>> connect_pmix_rendezvous() {
  return invalid_argument(
      "this altiplano was built without PMIx, by which ranks that srun or mpirun started meet; install libpmix-dev and "
      "build it again, or start local ranks with altiplano launch");
}

#else

namespace {

using Json = nlohmann::json;

Status pmix_failure(const char* what, pmix_status_t code) {
  return runtime_failure("PMIx: {}: {}", what, PMIx_Error_string(code));
}

/// An answer that comes by another thread, perhaps after nobody waits for it any more.
struct Answer {
  std::mutex mutex;
  std::condition_variable came;
  std::optional<pmix_status_t> status;

  void set(pmix_status_t code) {
    std::lock_guard lock(mutex);
    status = code;
    came.notify_all();
  }
  std::optional<pmix_status_t> wait(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex);
    came.wait_for(lock, limit, [&] { return status.has_value(); });
    return status;
  }
};
using SharedAnswer = std::shared_ptr<Answer>;

SharedAnswer take_over(void* hold) {
  const std::unique_ptr<SharedAnswer> owned(static_cast<SharedAnswer*>(hold));
  return *owned;
}
void on_fence(pmix_status_t status, void* hold) {
  take_over(hold)->set(status);
}
void on_value(pmix_status_t status, pmix_value_t* /*value*/, void* hold) {
  take_over(hold)->set(status);
}

class PmixRendezvous final : public Rendezvous {
 public:
  explicit PmixRendezvous(const pmix_proc_t& me) : me_(me), all_(proc(PMIX_RANK_WILDCARD)) {}
  ~PmixRendezvous() override { PMIx_Finalize(nullptr, 0); }
  PmixRendezvous(const PmixRendezvous&) = delete;
  PmixRendezvous& operator=(const PmixRendezvous&) = delete;

  Status read_world_size() {
    pmix_value_t* value = nullptr;
    const pmix_status_t code = PMIx_Get(&all_, PMIX_JOB_SIZE, nullptr, 0, &value);
    if (code != PMIX_SUCCESS) return pmix_failure("the size of the job", code);
    world_size_ = static_cast<int>(value->data.uint32);
    PMIX_VALUE_RELEASE(value);
    return Status::ok();
  }

  RankId rank() const override { return RankId(static_cast<int>(me_.rank)); }
  int world_size() const override { return world_size_; }
  std::string host() const override { return short_host_name(); }
  std::string job_id() const override {
    std::string id = me_.nspace;
    for (char& c : id)
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_') c = '-';
    return id;
  }

  Status put(const std::string& key, const std::string& value) override {
    waiting_[key] = value;
    return Status::ok();
  }

  Status fence(std::chrono::milliseconds deadline) override {
    const std::string key = key_of(++fences_);
    ALTIPLANO_RETURN_IF_ERROR(send(key, Json::to_cbor(Json(waiting_))));
    waiting_.clear();
    const auto answer = std::make_shared<Answer>();
    bool collects = true;
    pmix_info_t info;
    PMIX_INFO_CONSTRUCT(&info);
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collects, PMIX_BOOL);
    auto* hold = new SharedAnswer(answer);
    const pmix_status_t begun = PMIx_Fence_nb(&all_, 1, &info, 1, on_fence, hold);
    if (begun != PMIX_SUCCESS) {
      delete hold;
      return pmix_failure("fence", begun);
    }
    const auto status = answer->wait(deadline);
    if (!status) return late(key, deadline);
    return *status == PMIX_SUCCESS ? Status::ok() : pmix_failure("fence", *status);
  }

  Result<std::string> get(RankId rank, const std::string& key) override {
    auto& seen = seen_[rank.value];
    for (; seen.fences < fences_; ++seen.fences) {
      ALTIPLANO_ASSIGN(const Json values, fetch(rank, key_of(seen.fences + 1)));
      for (const auto& [name, value] : values.items()) seen.values[name] = value.get<std::string>();
    }
    const auto found = seen.values.find(key);
    if (found == seen.values.end()) return runtime_failure("rank {} has put no '{}'", rank, key);
    return found->second;
  }

 private:
  /// What a rank has put, up to a fence.
  struct Seen {
    int fences = 0;
    std::map<std::string, std::string> values;
  };

  static std::string key_of(int fence) { return fmt::format("altiplano.{}", fence); }
  pmix_proc_t proc(pmix_rank_t rank) const {
    pmix_proc_t result;
    PMIX_LOAD_PROCID(&result, me_.nspace, rank);
    return result;
  }

  static Status send(const std::string& key, std::vector<uint8_t> bytes) {
    pmix_value_t value;
    PMIX_VALUE_CONSTRUCT(&value);
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = reinterpret_cast<char*>(bytes.data());
    value.data.bo.size = bytes.size();
    if (const pmix_status_t code = PMIx_Put(PMIX_GLOBAL, key.c_str(), &value); code != PMIX_SUCCESS)
      return pmix_failure("put", code);
    const pmix_status_t code = PMIx_Commit();
    return code == PMIX_SUCCESS ? Status::ok() : pmix_failure("commit", code);
  }

  Result<Json> fetch(RankId rank, const std::string& key) const try {
    const pmix_proc_t whose = proc(static_cast<pmix_rank_t>(rank.value));
    pmix_value_t* value = nullptr;
    const pmix_status_t code = PMIx_Get(&whose, key.c_str(), nullptr, 0, &value);
    if (code != PMIX_SUCCESS) return pmix_failure(fmt::format("what rank {} has put", rank).c_str(), code);
    const auto* bytes = reinterpret_cast<const uint8_t*>(value->data.bo.bytes);
    const std::vector<uint8_t> copy(bytes, bytes + value->data.bo.size);
    PMIX_VALUE_RELEASE(value);
    return Json::from_cbor(copy);
  } catch (const std::exception& e) {
    return runtime_failure("PMIx: what rank {} has put is malformed: {}", rank, e.what());
  }

  /// Who has not put what the fence carries is asked for directly: those that do not answer are missing.
  Status late(const std::string& key, std::chrono::milliseconds deadline) const {
    constexpr auto kAnswerLimit = std::chrono::milliseconds(2000);
    std::vector<SharedAnswer> answers;
    for (int rank = 0; rank < world_size_; ++rank) {
      const pmix_proc_t whose = proc(static_cast<pmix_rank_t>(rank));
      answers.push_back(std::make_shared<Answer>());
      auto* hold = new SharedAnswer(answers.back());
      if (PMIx_Get_nb(&whose, key.c_str(), nullptr, 0, on_value, hold) != PMIX_SUCCESS) delete hold;
    }
    const auto until = std::chrono::steady_clock::now() + kAnswerLimit;
    std::vector<std::string> missing;
    for (int rank = 0; rank < world_size_; ++rank) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      const auto status = answers[static_cast<size_t>(rank)]->wait(std::max(left, std::chrono::milliseconds(0)));
      if (rank != this->rank().value && status != PMIX_SUCCESS) missing.push_back(name_of(rank));
    }
    return {StatusCode::kPeerStuck,
            fmt::format("{} did not come within {:.1f} s at the start; noticed by {}",
                        missing.empty() ? std::string("some rank") : join(missing, ", "),
                        std::chrono::duration<double>(deadline).count(), name_of(rank().value))};
  }

  /// "rank 3 (n2)"
  std::string name_of(int rank) const {
    const pmix_proc_t whose = proc(static_cast<pmix_rank_t>(rank));
    pmix_value_t* value = nullptr;
    if (PMIx_Get(&whose, PMIX_HOSTNAME, nullptr, 0, &value) != PMIX_SUCCESS) return fmt::format("rank {}", rank);
    const std::string host = split(value->data.string, '.').front();
    PMIX_VALUE_RELEASE(value);
    return fmt::format("rank {} ({})", rank, host);
  }

  pmix_proc_t me_, all_;
  int world_size_ = 0;
  int fences_ = 0;
  std::map<std::string, std::string> waiting_;  ///< put since the last fence
  std::map<int, Seen> seen_;
};

}  // namespace

bool is_built_with_pmix() {
  return true;
}

Result<std::unique_ptr<Rendezvous>> connect_pmix_rendezvous() {
  pmix_proc_t me;
  if (const pmix_status_t code = PMIx_Init(&me, nullptr, 0); code != PMIX_SUCCESS)
    return pmix_failure("no server answers; start ranks with srun --mpi=pmix or mpirun", code);
  auto rendezvous = std::make_unique<PmixRendezvous>(me);
  ALTIPLANO_RETURN_IF_ERROR(rendezvous->read_world_size());
  return std::unique_ptr<Rendezvous>(std::move(rendezvous));
}

#endif

}  // namespace altiplano
