#include "framework/launch/heartbeat.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <mutex>
#include <optional>
#include <thread>

#include "framework/base/text.hpp"
#include "framework/launch/inproc_rendezvous.hpp"

namespace altiplano {
namespace {

using BeatClock = std::chrono::steady_clock;

constexpr size_t kLongestLine = 512;
constexpr auto kHelloLimit = std::chrono::seconds(5);
constexpr size_t kMostStrangers = 64;  // connections that have not said the secret yet

sockaddr* generic(sockaddr_in& address) {
  return reinterpret_cast<sockaddr*>(&address);
}

std::string text_of(const sockaddr_in& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return fmt::format("{}:{}", text.data(), ntohs(address.sin_port));
}

std::optional<sockaddr_in> parse_address(const std::string& text) {
  const size_t colon = text.rfind(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  const auto port = colon == std::string::npos ? std::nullopt : parse_int(text.substr(colon + 1));
  if (!port || *port < 1 || *port > 65535) return std::nullopt;
  address.sin_port = htons(static_cast<uint16_t>(*port));
  if (inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr) != 1) return std::nullopt;
  return address;
}

std::optional<sockaddr_in> resolve(const std::string& host) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return std::nullopt;
  sockaddr_in address{};
  std::memcpy(&address, found->ai_addr, sizeof(address));
  freeaddrinfo(found);
  return address;
}

/// This host's address on the way to `host`; nothing is sent. A host's own name often means the loopback.
std::optional<sockaddr_in> own_address_towards(const std::string& host) {
  auto other = resolve(host);
  if (!other) return std::nullopt;
  other->sin_port = htons(9);
  const int probe = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in own{};
  socklen_t length = sizeof(own);
  const bool is_found =
      connect(probe, generic(*other), sizeof(*other)) == 0 && getsockname(probe, generic(own), &length) == 0;
  close(probe);
  own.sin_port = 0;
  return is_found ? std::optional<sockaddr_in>(own) : std::nullopt;
}

sockaddr_in loopback() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// Takes as long for any two texts of one length, so that nobody can feel for the secret.
bool is_same(const std::string& a, const std::string& b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  return difference == 0;
}

bool send_line(int socket, const std::string& line) {
  const std::string text = line + "\n";
  return ::send(socket, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(text.size());
}

/// Takes a line out of `input`.
std::optional<std::string> take_line(std::string& input) {
  const size_t end = input.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = input.substr(0, end);
  input.erase(0, end + 1);
  return line;
}

struct Peer {
  int socket = -1;
  std::string from, input, host;  ///< host: empty until it has said the secret
  BeatClock::time_point since = BeatClock::now();
  bool is_closed = false;
};

}  // namespace

struct HeartbeatServer::State {
  std::string secret, address;
  int listener = -1, stop = -1;
  std::list<Peer> peers;
  std::mutex mutex;  ///< of the following
  std::map<std::string, BeatClock::time_point> heard;
  std::vector<std::string> refusals;
  std::thread thread;

  void run();
  void accept_peer();
  void read_peer(Peer& peer);
  void take(Peer& peer, const std::string& line);
  void refuse(Peer& peer, const std::string& why);
  void note_heard(const std::string& host);
};

Result<std::unique_ptr<HeartbeatServer>> HeartbeatServer::listen(const std::string& secret,
                                                                 const std::vector<std::string>& hosts) {
  std::optional<sockaddr_in> address;
  for (const std::string& host : hosts)
    if (!address && host != short_host_name()) address = own_address_towards(host);
  if (!address) address = loopback();
  std::unique_ptr<HeartbeatServer> server(new HeartbeatServer);
  server->state_ = std::make_unique<State>();
  State& state = *server->state_;
  state.secret = secret;
  state.stop = eventfd(0, EFD_CLOEXEC);
  state.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  socklen_t length = sizeof(*address);
  if (state.listener < 0 || bind(state.listener, generic(*address), length) != 0 ||
      ::listen(state.listener, 1024) != 0 || getsockname(state.listener, generic(*address), &length) != 0)
    return runtime_failure("heartbeats: cannot listen on {}: {}", text_of(*address), std::strerror(errno));
  state.address = text_of(*address);
  state.thread = std::thread([&state] { state.run(); });
  return server;
}

HeartbeatServer::~HeartbeatServer() {
  if (!state_) return;
  if (state_->thread.joinable()) {
    const uint64_t one = 1;
    const ssize_t written = write(state_->stop, &one, sizeof(one));
    (void)written;
    state_->thread.join();
  }
  for (const Peer& peer : state_->peers) close(peer.socket);
  for (const int descriptor : {state_->listener, state_->stop})
    if (descriptor >= 0) close(descriptor);
}

std::string HeartbeatServer::address() const {
  return state_->address;
}

std::map<std::string, std::chrono::steady_clock::time_point> HeartbeatServer::last_heard() const {
  std::lock_guard lock(state_->mutex);
  return state_->heard;
}

std::vector<std::string> HeartbeatServer::take_refusals() {
  std::lock_guard lock(state_->mutex);
  return std::exchange(state_->refusals, {});
}

void HeartbeatServer::State::run() {
  for (;;) {
    std::vector<pollfd> polls = {{stop, POLLIN, 0}, {listener, POLLIN, 0}};
    for (const Peer& peer : peers) polls.push_back({peer.socket, POLLIN, 0});
    poll(polls.data(), polls.size(), 1000);
    if (polls[0].revents != 0) break;
    size_t at = 2;
    for (Peer& peer : peers)
      if (polls[at++].revents != 0) read_peer(peer);
    if (polls[1].revents != 0) accept_peer();
    for (Peer& peer : peers)
      if (peer.host.empty() && !peer.is_closed && BeatClock::now() - peer.since > kHelloLimit)
        refuse(peer, "said nothing");
    for (const Peer& peer : peers)
      if (peer.is_closed) close(peer.socket);
    peers.remove_if([](const Peer& peer) { return peer.is_closed; });
  }
  for (const Peer& peer : peers)
    if (!peer.host.empty()) send_line(peer.socket, "BYE");
}

void HeartbeatServer::State::accept_peer() {
  sockaddr_in from{};
  socklen_t length = sizeof(from);
  const int socket = accept4(listener, generic(from), &length, SOCK_CLOEXEC);
  if (socket < 0) return;
  const auto strangers = std::ranges::count_if(peers, [](const Peer& peer) { return peer.host.empty(); });
  Peer& peer = peers.emplace_back();
  peer.socket = socket;
  peer.from = text_of(from);
  if (static_cast<size_t>(strangers) >= kMostStrangers) refuse(peer, "is one of too many that said nothing yet");
}

void HeartbeatServer::State::read_peer(Peer& peer) {
  std::array<char, kLongestLine> chunk{};
  const ssize_t bytes = recv(peer.socket, chunk.data(), chunk.size(), MSG_DONTWAIT);
  if (bytes <= 0) {
    peer.is_closed = bytes == 0 || (errno != EINTR && errno != EAGAIN);
    return;
  }
  peer.input.append(chunk.data(), static_cast<size_t>(bytes));
  while (!peer.is_closed) {
    const auto line = take_line(peer.input);
    if (!line) break;
    take(peer, *line);
  }
  if (!peer.is_closed && peer.input.size() > kLongestLine) refuse(peer, "sent a line without end");
}

void HeartbeatServer::State::take(Peer& peer, const std::string& line) {
  if (!peer.host.empty()) {
    if (line != "BEAT") return refuse(peer, "said what is no heartbeat");
    note_heard(peer.host);
    if (!send_line(peer.socket, "BEAT")) peer.is_closed = true;
    return;
  }
  const auto words = split(line, ' ');
  if (words.size() != 3 || words[0] != "HELLO" || words[2].empty()) return refuse(peer, "said no hello");
  if (!is_same(words[1], secret)) return refuse(peer, "does not know the job's secret");
  peer.host = words[2];
  note_heard(peer.host);
  send_line(peer.socket, "BEAT");
}

void HeartbeatServer::State::refuse(Peer& peer, const std::string& why) {
  constexpr size_t kMostKept = 100;
  send_line(peer.socket, "NO");
  peer.is_closed = true;
  std::lock_guard lock(mutex);
  if (refusals.size() < kMostKept)
    refusals.push_back(fmt::format("a connection from {} was refused: it {}", peer.from, why));
}

void HeartbeatServer::State::note_heard(const std::string& host) {
  std::lock_guard lock(mutex);
  heard[host] = BeatClock::now();
}

namespace {

/// The next line within the limit; kSilent, kClosed otherwise.
struct Heard {
  std::string line;
  AgentEnd trouble = AgentEnd::kSilent;  ///< of an empty line
};
Heard hear_line(int socket, std::string& input, BeatClock::time_point until) {
  for (;;) {
    if (auto line = take_line(input)) return {std::move(*line), AgentEnd::kGoodbye};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - BeatClock::now()).count();
    if (left <= 0) return {"", AgentEnd::kSilent};
    pollfd waiting{socket, POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left, 1000))) <= 0) continue;
    std::array<char, kLongestLine> chunk{};
    const ssize_t bytes = recv(socket, chunk.data(), chunk.size(), 0);
    if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (bytes < 0 && errno == ETIMEDOUT) return {"", AgentEnd::kSilent};
    if (bytes <= 0) return {"", AgentEnd::kClosed};
    input.append(chunk.data(), static_cast<size_t>(bytes));
  }
}

/// Connected within the limit, or -1 with errno.
int connect_within(const sockaddr_in& address, std::chrono::milliseconds limit) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in copy = address;
  if (connect(socket, generic(copy), sizeof(copy)) != 0 && errno != EINPROGRESS) return close(socket), -1;
  pollfd waiting{socket, POLLOUT, 0};
  int error = ETIMEDOUT;
  socklen_t length = sizeof(error);
  if (poll(&waiting, 1, static_cast<int>(limit.count())) == 1)
    getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length);
  if (error == 0) return socket;
  close(socket);
  errno = error;
  return -1;
}

AgentEnd beat(int socket, const AgentRequest& request) {
  std::string input, say = fmt::format("HELLO {} {}", request.secret, request.host);
  for (BeatClock::time_point next = BeatClock::now();; std::this_thread::sleep_until(next)) {
    next += request.interval;
    send_line(socket, say);  // what cannot be sent is not answered
    say = "BEAT";
    const Heard heard = hear_line(socket, input, BeatClock::now() + request.deadline);
    if (heard.line.empty()) return heard.trouble;
    if (heard.line == "BYE") return AgentEnd::kGoodbye;
    if (heard.line == "NO") return AgentEnd::kRefused;
  }
}

}  // namespace

AgentEnd send_heartbeats(const AgentRequest& request) {
  const auto address = parse_address(request.address);
  if (!address) return AgentEnd::kRefused;
  const int socket = connect_within(*address, request.deadline);
  if (socket < 0) return errno == ECONNREFUSED ? AgentEnd::kClosed : AgentEnd::kSilent;
  const AgentEnd end = beat(socket, request);
  close(socket);
  return end;
}

}  // namespace altiplano
