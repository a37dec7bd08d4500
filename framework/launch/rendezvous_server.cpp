#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "framework/base/plural.hpp"
#include "framework/base/text.hpp"
#include "framework/launch/inproc_rendezvous.hpp"
#include "framework/launch/local_rendezvous.hpp"
#include "framework/launch/socket_message.hpp"

namespace altiplano {
namespace {

using Clock = std::chrono::steady_clock;

struct Client {
  int socket = -1;
  int rank = -1;  ///< -1: has not shown the token
  MessageBuffer input;
  std::optional<Clock::time_point> fence_began, fence_ends;
  bool is_closed = false;
};

bool is_own_user(int socket) {
  ucred credentials{};
  socklen_t length = sizeof(credentials);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 && credentials.uid == geteuid();
}

}  // namespace

struct RendezvousServer::State {
  int world_size = 1;
  LocalAddress address;
  int listener = -1;
  int stop = -1;  ///< eventfd
  int news = -1;  ///< eventfd: look at `failure`
  std::mutex mutex;
  std::string failure;    ///< under the mutex; empty: none
  bool is_stuck = false;  ///< under the mutex; the failure is a rank that did not come
  std::thread thread;
  std::list<Client> clients;
  std::map<std::pair<int, std::string>, std::string> values;

  void run();
  void accept_client();
  void read_client(Client& client);
  nlohmann::json answer(Client& client, const nlohmann::json& question);
  nlohmann::json greet(Client& client, const nlohmann::json& question) const;
  void finish_fence();
  void expire_fences();
  void fail_fences();
  nlohmann::json failure_answer();  ///< null: none
  int poll_timeout() const;
  std::string missing_at_fence() const;
};

void RendezvousServer::State::accept_client() {
  const int socket = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket < 0) return;
  if (!is_own_user(socket)) {
    close(socket);
    return;
  }
  clients.emplace_back().socket = socket;
}

void RendezvousServer::State::read_client(Client& client) try {
  char chunk[4096];
  const ssize_t n = recv(client.socket, chunk, sizeof(chunk), MSG_DONTWAIT);
  if (n <= 0) {
    client.is_closed = n == 0 || (errno != EINTR && errno != EAGAIN);
    return;
  }
  client.input.append(chunk, static_cast<size_t>(n));
  while (const auto question = client.input.next()) {
    const nlohmann::json reply = answer(client, *question);
    if (!reply.is_null() && !send_message(client.socket, reply).is_ok()) client.is_closed = true;
  }
} catch (const std::exception&) {
  client.is_closed = true;  // not one of ours
}

nlohmann::json RendezvousServer::State::greet(Client& client, const nlohmann::json& question) const {
  if (question.at("token") != address.token) return {{"error", "the rendezvous token is wrong"}};
  const int rank = question.at("rank");
  const int size = question.at("world_size");
  if (size != world_size)
    return {{"error", fmt::format("it counts {}, the launcher {}", counted(size, "rank"), world_size)}};
  if (rank < 0 || rank >= world_size) return {{"error", fmt::format("rank {} is not in 0..{}", rank, world_size - 1)}};
  if (std::any_of(clients.begin(), clients.end(), [&](const Client& other) { return other.rank == rank; }))
    return {{"error", fmt::format("another process is rank {} already", rank)}};
  client.rank = rank;
  return {{"ok", true}};
}

/// Null: answered later.
nlohmann::json RendezvousServer::State::answer(Client& client, const nlohmann::json& question) {
  const std::string what = question.at("do");
  if (what == "hello") return greet(client, question);
  if (client.rank < 0) return {{"error", "no hello before the first request"}};
  if (nlohmann::json failed = failure_answer(); !failed.is_null()) return failed;
  if (what == "put") {
    values[{client.rank, question.at("key")}] = question.at("value");
    return {{"ok", true}};
  }
  if (what == "get") {
    const int rank = question.at("rank");
    const std::string key = question.at("key");
    const auto found = values.find({rank, key});
    if (found == values.end()) return {{"error", fmt::format("rank {} has put no '{}'", rank, key)}};
    return {{"value", found->second}};
  }
  if (what != "fence") return {{"error", fmt::format("unknown request '{}'", what)}};
  client.fence_began = Clock::now();
  client.fence_ends = *client.fence_began + std::chrono::milliseconds(question.at("deadline").get<int64_t>());
  finish_fence();
  return nullptr;
}

void RendezvousServer::State::finish_fence() {
  const auto arrived =
      std::count_if(clients.begin(), clients.end(), [](const Client& c) { return c.fence_ends.has_value(); });
  if (arrived < world_size) return;
  for (Client& client : clients) {
    if (!client.fence_ends) continue;
    client.fence_began.reset();
    client.fence_ends.reset();
    if (!send_message(client.socket, {{"ok", true}}).is_ok()) client.is_closed = true;
  }
}

nlohmann::json RendezvousServer::State::failure_answer() {
  std::lock_guard lock(mutex);
  if (failure.empty()) return nullptr;
  return {{"error", failure}, {is_stuck ? "stuck" : "cancelled", true}};
}

void RendezvousServer::State::fail_fences() {
  const nlohmann::json reply = failure_answer();
  if (reply.is_null()) return;
  for (Client& client : clients) {
    if (!client.fence_ends) continue;
    client.fence_began.reset();
    client.fence_ends.reset();
    if (!send_message(client.socket, reply).is_ok()) client.is_closed = true;
  }
}

std::string RendezvousServer::State::missing_at_fence() const {
  std::vector<int> missing;
  for (int rank = 0; rank < world_size; ++rank)
    if (std::none_of(clients.begin(), clients.end(), [&](const Client& c) { return c.rank == rank && c.fence_ends; }))
      missing.push_back(rank);
  return names_of_ranks(missing, short_host_name());
}

/// The first whose time is over ends the fence for all, and the job: later comers get the same answer, and who was
/// there in time is named by nobody.
void RendezvousServer::State::expire_fences() {
  const auto late = std::ranges::find_if(
      clients, [](const Client& client) { return client.fence_ends && Clock::now() >= *client.fence_ends; });
  if (late == clients.end()) return;
  const double waited = std::chrono::duration<double>(Clock::now() - *late->fence_began).count();
  {
    std::lock_guard lock(mutex);
    if (failure.empty()) {
      failure = fmt::format("{} did not come within {:.1f} s at the start", missing_at_fence(), waited);
      is_stuck = true;
    }
  }
  fail_fences();
}

int RendezvousServer::State::poll_timeout() const {
  std::optional<Clock::time_point> first;
  for (const Client& client : clients)
    if (client.fence_ends && (!first || *client.fence_ends < *first)) first = client.fence_ends;
  if (!first) return -1;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*first - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left + 1, 0, 60'000));
}

void RendezvousServer::State::run() {
  for (;;) {
    std::vector<pollfd> polls = {{stop, POLLIN, 0}, {listener, POLLIN, 0}, {news, POLLIN, 0}};
    std::vector<Client*> polled;
    for (Client& client : clients) {
      polls.push_back({client.socket, POLLIN, 0});
      polled.push_back(&client);
    }
    poll(polls.data(), polls.size(), poll_timeout());
    if (polls[0].revents != 0) return;
    for (size_t i = 0; i < polled.size(); ++i)
      if (polls[i + 3].revents != 0) read_client(*polled[i]);
    if (polls[2].revents != 0) {
      eventfd_t ignored = 0;
      eventfd_read(news, &ignored);
      fail_fences();
    }
    expire_fences();
    if (polls[1].revents != 0) accept_client();
    clients.remove_if([](const Client& client) { return client.is_closed && (close(client.socket), true); });
  }
}

RendezvousServer::RendezvousServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<RendezvousServer>> RendezvousServer::listen(int world_size) {
  auto state = std::make_unique<State>();
  state->world_size = world_size;
  state->address = {"altiplano-" + random_hex(8), random_hex(16)};
  ALTIPLANO_ASSIGN(state->listener, listen_local(state->address));
  state->stop = eventfd(0, EFD_CLOEXEC);
  state->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return std::make_unique<RendezvousServer>(std::move(state));
}

void RendezvousServer::serve() {
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

void RendezvousServer::fail(const std::string& reason) {
  {
    std::lock_guard lock(state_->mutex);
    if (state_->failure.empty()) state_->failure = reason;
  }
  eventfd_write(state_->news, 1);
}

std::string RendezvousServer::address() const {
  return state_->address.to_string();
}

RendezvousServer::~RendezvousServer() {
  if (state_->thread.joinable()) {
    eventfd_write(state_->stop, 1);
    state_->thread.join();
  }
  for (const Client& client : state_->clients) close(client.socket);
  close(state_->listener);
  close(state_->stop);
  close(state_->news);
}

}  // namespace altiplano
