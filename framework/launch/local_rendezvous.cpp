#include "framework/launch/local_rendezvous.hpp"

#include <unistd.h>

#include "framework/launch/inproc_rendezvous.hpp"
#include "framework/launch/socket_message.hpp"

namespace altiplano {
namespace {

constexpr auto kAnswerDeadline = std::chrono::milliseconds(30'000);  // of everything but a fence

class LocalRendezvous final : public Rendezvous {
 public:
  LocalRendezvous(int socket, RankId rank, int world_size, std::string job_id)
      : socket_(socket), rank_(rank), world_size_(world_size), job_id_(std::move(job_id)) {}
  ~LocalRendezvous() override { close(socket_); }

  RankId rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  std::string host() const override { return short_host_name(); }
  std::string job_id() const override { return job_id_; }

  Status hello(const std::string& token) {
    return ask({{"do", "hello"}, {"token", token}, {"rank", rank_.value}, {"world_size", world_size_}}, kAnswerDeadline)
        .status();
  }
  Status put(const std::string& key, const std::string& value) override {
    return ask({{"do", "put"}, {"key", key}, {"value", value}}, kAnswerDeadline).status();
  }
  Status fence(std::chrono::milliseconds deadline) override {
    // The server knows who is missing, so it ends the wait; only a dead server is waited for longer.
    return ask({{"do", "fence"}, {"deadline", deadline.count()}}, deadline + kAnswerDeadline).status();
  }
  Result<std::string> get(RankId rank, const std::string& key) override {
    ALTIPLANO_ASSIGN(const nlohmann::json answer,
                     ask({{"do", "get"}, {"rank", rank.value}, {"key", key}}, kAnswerDeadline));
    return answer.value("value", std::string());
  }

 private:
  Result<nlohmann::json> ask(const nlohmann::json& question, std::chrono::milliseconds deadline) try {
    ALTIPLANO_RETURN_IF_ERROR(send_message(socket_, question));
    ALTIPLANO_ASSIGN(nlohmann::json answer, receive_message(socket_, deadline));
    if (answer.value("cancelled", false)) return Status(StatusCode::kCancelled, answer["error"].get<std::string>());
    if (answer.value("stuck", false))
      return Status(StatusCode::kPeerStuck,
                    fmt::format("{}; noticed by rank {}", answer["error"].get<std::string>(), rank_));
    if (answer.contains("error"))
      return runtime_failure("rank {} ({}): {}", rank_, host(), answer["error"].get<std::string>());
    return answer;
  } catch (const std::exception& e) {
    return runtime_failure("rank {}: the launcher's answer is malformed: {}", rank_, e.what());
  }

  int socket_;
  RankId rank_;
  int world_size_;
  std::string job_id_;
};

}  // namespace

Result<std::unique_ptr<Rendezvous>> connect_local_rendezvous(const std::string& address, RankId rank, int world_size,
                                                             const std::string& job_id) {
  const auto where = parse_local_address(address);
  if (!where) return invalid_argument("ALTIPLANO_RENDEZVOUS: '{}' is not unix:NAME:TOKEN", address);
  ALTIPLANO_ASSIGN(const int socket, connect_local(*where));
  auto rendezvous = std::make_unique<LocalRendezvous>(socket, rank, world_size, job_id);
  ALTIPLANO_RETURN_IF_ERROR(rendezvous->hello(where->token));
  return std::unique_ptr<Rendezvous>(std::move(rendezvous));
}

std::unique_ptr<Rendezvous> single_rank_rendezvous(const std::string& job_id) {
  return std::make_unique<InprocRendezvous>(std::make_shared<InprocWorld>(1, job_id), RankId(0));
}

}  // namespace altiplano
