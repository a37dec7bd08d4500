#pragma once
// Frames and data by UCP's tagged messages. The tag says which of both, whose, and which number:
//   bit 63 data, bits 32..62 the sender's rank, bits 0..31 the number.
// Endpoints watch their peer (UCP_ERR_HANDLING_MODE_PEER): one that dies is a Loss, as far as UCX notices; a link that
// is cut it does not, and a deadline tells. Requests are UCP's.
#include <ucp/api/ucp.h>

#include <deque>
#include <memory>
#include <vector>

#include "framework/api/network/transport.hpp"

namespace altiplano::ucx {

/// ok for UCS_OK.
Status status_of(ucs_status_t code, const std::string& what);

/// A context and a worker of UCP, before it is known who else there is.
class Worker {
 public:
  /// `devices`: UCX_NET_DEVICES; empty: as it is set, else all.
  static Result<std::unique_ptr<Worker>> open(const std::vector<std::string>& devices);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  ucp_worker_h get() const { return worker_; }
  /// As text, for a rendezvous.
  Result<std::string> address() const;

 private:
  Worker() = default;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
};

class UcxTransport final : public network::Transport {
 public:
  /// `addresses` and `names` ("rank 3 (n2)") by rank. `about`: "UCX (eth0)".
  UcxTransport(std::unique_ptr<Worker> worker, int rank, std::vector<std::string> addresses,
               std::vector<std::string> names, std::string about);
  ~UcxTransport() override;

  /// Makes the endpoints of small worlds; those of others are made when they are needed.
  Status connect();

  std::mutex& mutex() override { return mutex_; }
  std::string name() const override { return about_; }
  int64_t most_bytes() const override { return int64_t{1} << 40; }
  void progress() override { ucp_worker_progress(worker_->get()); }
  bool is_connected(int peer) const override { return peers_[static_cast<size_t>(peer)].endpoint != nullptr; }
  Result<network::Request> send_frame(int peer, const std::byte* frame, size_t bytes) override;
  Result<network::Request> receive_frame(std::byte* to) override;
  Result<network::Request> send_data(int peer, uint32_t number, const std::byte* data, int64_t bytes) override;
  Result<network::Request> receive_data(int peer, uint32_t number, std::byte* data, int64_t bytes) override;
  Result<bool> test(network::Request& request) override;
  Result<std::optional<network::FrameArrival>> test_frame(network::Request& request) override;
  void cancel(network::Request& request, std::chrono::milliseconds limit) override;
  std::optional<network::Loss> next_loss() override;
  void stop() override;

 private:
  struct Peer {
    UcxTransport* transport = nullptr;
    int rank = 0;
    ucp_ep_h endpoint = nullptr;
    bool is_lost = false;
  };
  Result<ucp_ep_h> endpoint(int peer);
  Result<network::Request> send(int peer, uint64_t tag, const std::byte* data, size_t bytes);
  static void* begin_close(ucp_ep_h endpoint, bool by_force);
  void close_endpoints(bool by_force);
  static void on_error(void* peer, ucp_ep_h endpoint, ucs_status_t status);

  std::mutex mutex_;
  const std::unique_ptr<Worker> worker_;
  const int rank_;
  const std::vector<std::string> addresses_, names_;
  const std::string about_;
  std::vector<Peer> peers_;
  std::deque<network::Loss> losses_;
};

}  // namespace altiplano::ucx
