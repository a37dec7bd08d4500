#pragma once
// Frames and data by MPI's non-blocking point-to-point, each on a communicator of its own. Requests are MPI_Requests.
#include "framework/api/network/transport.hpp"
#include "plugins/comms/mpi/mpi_session.hpp"

namespace altiplano::mpi {

class MpiTransport final : public network::Transport {
 public:
  /// MPI's communicators stay when it ends: a number that MPI used again would take in what a late peer still sends.
  explicit MpiTransport(Connection connection) : connection_(connection) {}

  std::mutex& mutex() override { return mpi_mutex(); }
  std::string name() const override { return "MPI"; }
  int64_t most_bytes() const override;
  Result<network::Request> send_frame(int peer, const std::byte* frame, size_t bytes) override;
  Result<network::Request> receive_frame(std::byte* to) override;
  Result<network::Request> send_data(int peer, uint32_t number, const std::byte* data, int64_t bytes) override;
  Result<network::Request> receive_data(int peer, uint32_t number, std::byte* data, int64_t bytes) override;
  Result<bool> test(network::Request& request) override;
  Result<std::optional<network::FrameArrival>> test_frame(network::Request& request) override;
  void cancel(network::Request& request, std::chrono::milliseconds limit) override;
  void note_failure() override { mpi::note_failure(); }

 private:
  const Connection connection_;
};

}  // namespace altiplano::mpi
