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
#include <set>
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

bool is_of_rank(const std::string& name) {
  return name.find(':') != std::string::npos;
}

std::string start_of(const std::string& name) {
  return name.substr(0, name.rfind(':'));
}

void ring(int event) {
  const uint64_t one = 1;
  (void)!write(event, &one, sizeof(one));
}

struct Peer {
  int socket = -1;
  std::string from, input, name;  ///< name: empty until it has said the secret
  BeatClock::time_point since = BeatClock::now();
  bool is_closed = false, knows_end = false;
};

}  // namespace

struct HeartbeatServer::State {
  std::string secret, address;
  int listener = -1, stop = -1, wake = -1;
  std::list<Peer> peers;
  std::mutex mutex;  ///< of the following
  std::map<std::string, BeatClock::time_point> heard;
  std::map<std::string, Word> words;  ///< of ranks
  std::set<std::string> over;         ///< starts
  std::vector<std::string> refusals;
  std::thread thread;

  void run();
  void accept_peer();
  void read_peer(Peer& peer);
  void take(Peer& peer, const std::string& line);
  void refuse(Peer& peer, const std::string& why);
  void note_heard(const std::string& name, const std::string& word);
  void forget(const std::string& name);
  void tell_end(Peer& peer);
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
  state.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
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
    ring(state_->stop);
    state_->thread.join();
  }
  for (const Peer& peer : state_->peers) close(peer.socket);
  for (const int descriptor : {state_->listener, state_->stop, state_->wake})
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
    std::vector<pollfd> polls = {{stop, POLLIN, 0}, {listener, POLLIN, 0}, {wake, POLLIN, 0}};
    for (const Peer& peer : peers) polls.push_back({peer.socket, POLLIN, 0});
    poll(polls.data(), polls.size(), 1000);
    if (polls[0].revents != 0) break;
    uint64_t rings = 0;
    (void)!read(wake, &rings, sizeof(rings));
    size_t at = polls.size() - peers.size();
    for (Peer& peer : peers)
      if (polls[at++].revents != 0) read_peer(peer);
    if (polls[1].revents != 0) accept_peer();
    for (Peer& peer : peers)
      if (peer.name.empty() && !peer.is_closed && BeatClock::now() - peer.since > kHelloLimit)
        refuse(peer, "said nothing");
    for (Peer& peer : peers) tell_end(peer);
    for (const Peer& peer : peers) {
      if (!peer.is_closed) continue;
      close(peer.socket);
      forget(peer.name);
    }
    peers.remove_if([](const Peer& peer) { return peer.is_closed; });
  }
  for (const Peer& peer : peers)
    if (!peer.name.empty()) send_line(peer.socket, "BYE");
}

void HeartbeatServer::State::accept_peer() {
  sockaddr_in from{};
  socklen_t length = sizeof(from);
  const int socket = accept4(listener, generic(from), &length, SOCK_CLOEXEC);
  if (socket < 0) return;
  const auto strangers = std::ranges::count_if(peers, [](const Peer& peer) { return peer.name.empty(); });
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
  if (!peer.name.empty()) {
    if (line.substr(0, line.find(' ')) != "BEAT") return refuse(peer, "said what is no heartbeat");
    note_heard(peer.name, line.substr(std::min(line.size(), std::string("BEAT ").size())));
    if (!send_line(peer.socket, "BEAT")) peer.is_closed = true;
    return;
  }
  const auto words = split(line, ' ');
  if (words.size() != 3 || words[0] != "HELLO" || words[2].empty()) return refuse(peer, "said no hello");
  if (!is_same(words[1], secret)) return refuse(peer, "does not know the job's secret");
  peer.name = words[2];
  note_heard(peer.name, "");
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

void HeartbeatServer::State::note_heard(const std::string& name, const std::string& word) {
  const auto now = BeatClock::now();
  std::lock_guard lock(mutex);
  if (!is_of_rank(name)) {
    heard[name] = now;
    return;
  }
  auto [said, is_new] = words.try_emplace(name, Word{word, now, now});
  if (!is_new && said->second.text != word) said->second = {word, now, now};
  said->second.heard = now;
}

void HeartbeatServer::State::tell_end(Peer& peer) {
  std::lock_guard lock(mutex);
  if (peer.knows_end || !is_of_rank(peer.name) || !over.contains(start_of(peer.name))) return;
  peer.knows_end = send_line(peer.socket, "END");
}

void HeartbeatServer::end_ranks(const std::string& start) {
  {
    std::lock_guard lock(state_->mutex);
    state_->over.insert(start);
  }
  ring(state_->wake);
}

/// A rank that has left is missed by nobody; a host is.
void HeartbeatServer::State::forget(const std::string& name) {
  std::lock_guard lock(mutex);
  words.erase(name);
}

std::map<int, HeartbeatServer::Word> HeartbeatServer::words_of_ranks(const std::string& start) const {
  std::map<int, Word> words;
  std::lock_guard lock(state_->mutex);
  for (const auto& [name, word] : state_->words) {
    const auto rank = parse_int(name.substr(name.rfind(':') + 1));
    if (start_of(name) == start && rank && !word.text.empty()) words[static_cast<int>(*rank)] = word;
  }
  return words;
}

namespace {

/// Until `socket` can be read, or the time has come; false: stopped.
bool rest(int socket, int stop, BeatClock::time_point until) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - BeatClock::now()).count();
    if (left <= 0) return true;
    pollfd waiting[] = {{stop, POLLIN, 0}, {socket, POLLIN, 0}};  // a negative one is left out
    const int ready = poll(waiting, 2, static_cast<int>(std::min<int64_t>(left, 1000)));
    if (ready <= 0) continue;
    return waiting[0].revents == 0;
  }
}

/// The next line by then; kSilent, kClosed, kStopped otherwise.
struct Heard {
  std::string line;
  AgentEnd trouble = AgentEnd::kSilent;  ///< of an empty line
};
Heard hear_line(int socket, int stop, std::string& input, BeatClock::time_point until) {
  for (;;) {
    if (auto line = take_line(input)) return {std::move(*line), AgentEnd::kGoodbye};
    if (!rest(socket, stop, until)) return {"", AgentEnd::kStopped};
    if (BeatClock::now() >= until) return {"", AgentEnd::kSilent};
    std::array<char, kLongestLine> chunk{};
    const ssize_t bytes = recv(socket, chunk.data(), chunk.size(), MSG_DONTWAIT);
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

/// The end that this means; nothing: it goes on.
std::optional<AgentEnd> end_of(const Heard& heard) {
  if (heard.line.empty()) return heard.trouble;
  if (heard.line == "BYE") return AgentEnd::kGoodbye;
  if (heard.line == "NO") return AgentEnd::kRefused;
  if (heard.line == "END") return AgentEnd::kOver;
  return std::nullopt;
}

/// Between two beats, too, the supervisor may say that the end has come.
std::optional<AgentEnd> listen_until(int socket, int stop, std::string& input, BeatClock::time_point until) {
  for (;;) {
    const Heard heard = hear_line(socket, stop, input, until);
    if (heard.line.empty() && heard.trouble == AgentEnd::kSilent) return std::nullopt;
    if (const auto end = end_of(heard)) return end;
  }
}

AgentEnd beat(int socket, const AgentRequest& request) {
  std::string input, say = fmt::format("HELLO {} {}", request.secret, request.name);
  for (BeatClock::time_point next = BeatClock::now();;) {
    next += request.interval;
    send_line(socket, say);  // what cannot be sent is not answered
    if (const auto end = end_of(hear_line(socket, request.stop, input, BeatClock::now() + request.deadline)))
      return *end;
    if (const auto end = listen_until(socket, request.stop, input, next)) return *end;
    const std::string word = request.word ? request.word() : std::string();
    say = word.empty() ? "BEAT" : "BEAT " + word;
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
