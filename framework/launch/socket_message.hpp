#pragma once
// Private to launch/: length-prefixed CBOR objects over a stream socket, and local addresses.
//
// Addresses are "unix:NAME:TOKEN". NAME is in the abstract name space (nothing to clean up after a kill); TOKEN is a
// random secret that a client must show first.
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "framework/base/status.hpp"

namespace altiplano {

struct LocalAddress {
  std::string name, token;
  std::string to_string() const { return "unix:" + name + ":" + token; }
};
std::optional<LocalAddress> parse_local_address(const std::string& text);
std::string random_hex(int bytes);

/// Listening socket, close-on-exec.
Result<int> listen_local(const LocalAddress& address);
Result<int> connect_local(const LocalAddress& address);

Status send_message(int socket, const nlohmann::json& message);
/// kPeerStuck after the deadline, kRuntimeFailure when the other side closed.
Result<nlohmann::json> receive_message(int socket, std::chrono::milliseconds deadline);

/// Takes whole messages out of bytes that come in pieces.
class MessageBuffer {
 public:
  void append(const char* data, size_t bytes) { bytes_.append(data, bytes); }
  /// nullopt: more bytes are needed. Malformed or oversized input throws.
  std::optional<nlohmann::json> next();

 private:
  std::string bytes_;
};

}  // namespace altiplano
