#pragma once
// api/network/: communicators of ranks that share no memory. A comm plugin brings a Transport, the few things that a
// network library must do; messages.hpp makes matched messages of any size of it, network_communicator.hpp the rest.
#include <mutex>
#include <optional>
#include <string>

#include "framework/api/comm.hpp"

namespace altiplano::network {

/// A message that the library has in hand. What the words mean is the transport's affair.
struct Request {
  uint64_t word = 0;  ///< 0: done
};

/// A frame that has come.
struct FrameArrival {
  int from = 0;
};

struct Loss {
  int peer = 0;
  std::string why;  ///< as the library puts it
};

/// Ranks are those of the world. Frames (of at most kFrameBytes) and data travel apart: frames of one peer arrive in
/// the order in which they were sent, data finds the receive of its number. Memory stays the caller's until the request
/// is done or cancelled. One thread at a time, under mutex().
class Transport {
 public:
  static constexpr size_t kFrameBytes = 4096;

  virtual ~Transport() = default;
  virtual std::mutex& mutex() = 0;
  /// "UCX (tcp)"
  virtual std::string name() const = 0;
  /// Of data in one request, at most.
  virtual int64_t most_bytes() const = 0;
  virtual void progress() {}
  /// Whether the two have ever been in touch; a peer with whom not needs no goodbye.
  virtual bool is_connected(int /*peer*/) const { return true; }

  virtual Result<Request> send_frame(int peer, const std::byte* frame, size_t bytes) = 0;
  /// The next frame of any peer.
  virtual Result<Request> receive_frame(std::byte* to) = 0;
  virtual Result<Request> send_data(int peer, uint32_t number, const std::byte* data, int64_t bytes) = 0;
  virtual Result<Request> receive_data(int peer, uint32_t number, std::byte* data, int64_t bytes) = 0;

  /// Whether it is done; then its word is 0. A failure ends it, too.
  virtual Result<bool> test(Request& request) = 0;
  /// The same of a receive_frame(); nullopt: nothing yet.
  virtual Result<std::optional<FrameArrival>> test_frame(Request& request) = 0;
  /// Returns once it is over, done or not, or after `limit`; then its memory is the library's.
  virtual void cancel(Request& request, std::chrono::milliseconds limit) = 0;

  /// A peer whose connection broke, each once.
  virtual std::optional<Loss> next_loss() { return std::nullopt; }
  /// The ranks end by a failure: nobody is waited for when this process closes the library.
  virtual void note_failure() {}
  /// Nothing is sent or received any more; peers write into no memory of this rank.
  virtual void stop() {}
};

}  // namespace altiplano::network
