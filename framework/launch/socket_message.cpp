#include "framework/launch/socket_message.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "framework/base/text.hpp"

namespace altiplano {
namespace {

constexpr uint32_t kLargestMessage = 16u << 20;

std::pair<sockaddr_un, socklen_t> socket_address(const LocalAddress& address) {
  sockaddr_un result{};
  result.sun_family = AF_UNIX;
  const size_t length = std::min(address.name.size(), sizeof(result.sun_path) - 1);
  std::memcpy(result.sun_path + 1, address.name.data(), length);  // leading NUL: abstract
  return {result, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length)};
}

Status system_failure(const char* what) {
  return runtime_failure("{}: {}", what, std::strerror(errno));
}

}  // namespace

std::optional<LocalAddress> parse_local_address(const std::string& text) {
  const auto parts = split(text, ':');
  if (parts.size() != 3 || parts[0] != "unix" || parts[1].empty() || parts[2].empty()) return std::nullopt;
  return LocalAddress{parts[1], parts[2]};
}

std::string random_hex(int bytes) {
  std::string raw(static_cast<size_t>(bytes), '\0'), text;
  for (size_t have = 0; have < raw.size();) {
    const ssize_t got = getrandom(raw.data() + have, raw.size() - have, 0);
    if (got > 0) have += static_cast<size_t>(got);
  }
  for (unsigned char c : raw) text += fmt::format("{:02x}", c);
  return text;
}

Result<int> listen_local(const LocalAddress& address) {
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return system_failure("rendezvous socket");
  const auto [where, length] = socket_address(address);
  if (bind(descriptor, reinterpret_cast<const sockaddr*>(&where), length) != 0 || listen(descriptor, 1024) != 0) {
    const Status failure = system_failure("rendezvous socket");
    close(descriptor);
    return failure;
  }
  return descriptor;
}

Result<int> connect_local(const LocalAddress& address) {
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return system_failure("rendezvous socket");
  const auto [where, length] = socket_address(address);
  if (connect(descriptor, reinterpret_cast<const sockaddr*>(&where), length) != 0) {
    const Status failure = runtime_failure("cannot reach the launcher at {}: {}; is it still running?", address.name,
                                           std::strerror(errno));
    close(descriptor);
    return failure;
  }
  return descriptor;
}

Status send_message(int socket, const nlohmann::json& message) {
  const auto body = nlohmann::json::to_cbor(message);
  const auto size = static_cast<uint32_t>(body.size());
  std::string bytes(reinterpret_cast<const char*>(&size), sizeof(size));
  bytes.append(body.begin(), body.end());
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t n = ::send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) return runtime_failure("the launcher closed the rendezvous");
    if (n < 0) return system_failure("rendezvous send");
    sent += static_cast<size_t>(n);
  }
  return Status::ok();
}

Result<nlohmann::json> receive_message(int socket, std::chrono::milliseconds deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  MessageBuffer buffer;
  for (;;) {
    if (auto message = buffer.next()) return std::move(*message);
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Status(StatusCode::kPeerStuck, "the launcher did not answer in time");
    pollfd waiting{socket, POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left.count(), 1000))) <= 0) continue;
    char chunk[4096];
    const ssize_t n = recv(socket, chunk, sizeof(chunk), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return runtime_failure("the launcher closed the rendezvous");
    buffer.append(chunk, static_cast<size_t>(n));
  }
}

std::optional<nlohmann::json> MessageBuffer::next() {
  uint32_t size = 0;
  if (bytes_.size() < sizeof(size)) return std::nullopt;
  std::memcpy(&size, bytes_.data(), sizeof(size));
  if (size > kLargestMessage) throw std::runtime_error("message too large");
  if (bytes_.size() < sizeof(size) + size) return std::nullopt;
  const auto* body = reinterpret_cast<const uint8_t*>(bytes_.data()) + sizeof(size);
  auto message = nlohmann::json::from_cbor(body, body + size);
  bytes_.erase(0, sizeof(size) + size);
  return message;
}

}  // namespace altiplano
