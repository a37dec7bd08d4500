#include "plugins/comms/mpi/mpi_transport.hpp"

#include <climits>
#include <cstring>
#include <thread>

namespace altiplano::mpi {
namespace {

using network::FrameArrival;
using network::Request;

constexpr int kFrameTag = 0;

static_assert(sizeof(MPI_Request) <= sizeof(Request::word));

MPI_Request to_mpi(const Request& request) {
  MPI_Request result;
  std::memcpy(&result, &request.word, sizeof(result));
  return request.word == 0 ? MPI_REQUEST_NULL : result;
}

Request from_mpi(MPI_Request request) {
  Request result;
  if (request != MPI_REQUEST_NULL) std::memcpy(&result.word, &request, sizeof(request));
  return result;
}

Result<Request> begun(int code, MPI_Request request, const char* what) {
  ALTIPLANO_RETURN_IF_ERROR(status_of(code, what));
  return from_mpi(request);
}

/// Tests; the request's word is 0 afterwards where it is done.
Result<bool> is_done(Request& request, MPI_Status* status, const char* what) {
  MPI_Request mpi = to_mpi(request);
  int done = 0;
  const int code = MPI_Test(&mpi, &done, status);
  request = from_mpi(mpi);
  ALTIPLANO_RETURN_IF_ERROR(status_of(code, what));
  return done != 0;
}

}  // namespace

int64_t MpiTransport::most_bytes() const {
  return INT_MAX / 2;  // what MPI counts in one call
}

Result<Request> MpiTransport::send_frame(int peer, const std::byte* frame, size_t bytes) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Isend(frame, static_cast<int>(bytes), MPI_BYTE, peer, kFrameTag, connection_.frames, &request);
  return begun(code, request, "send");
}

Result<Request> MpiTransport::receive_frame(std::byte* to) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Irecv(to, kFrameBytes, MPI_BYTE, MPI_ANY_SOURCE, kFrameTag, connection_.frames, &request);
  return begun(code, request, "receive");
}

Result<Request> MpiTransport::send_data(int peer, uint32_t number, const std::byte* data, int64_t bytes) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code =
      MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, static_cast<int>(number), connection_.data, &request);
  return begun(code, request, "send");
}

Result<Request> MpiTransport::receive_data(int peer, uint32_t number, std::byte* data, int64_t bytes) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code =
      MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, peer, static_cast<int>(number), connection_.data, &request);
  return begun(code, request, "receive");
}

Result<bool> MpiTransport::test(Request& request) {
  return is_done(request, MPI_STATUS_IGNORE, "send or receive");
}

Result<std::optional<FrameArrival>> MpiTransport::test_frame(Request& request) {
  MPI_Status status;
  ALTIPLANO_ASSIGN(const bool done, is_done(request, &status, "receive"));
  return done ? std::optional(FrameArrival{status.MPI_SOURCE}) : std::nullopt;
}

void MpiTransport::cancel(Request& request, std::chrono::milliseconds limit) {
  MPI_Request mpi = to_mpi(request);
  if (mpi == MPI_REQUEST_NULL) return;
  MPI_Cancel(&mpi);
  const auto until = std::chrono::steady_clock::now() + limit;
  for (int done = 0; done == 0 && std::chrono::steady_clock::now() < until; std::this_thread::yield())
    if (MPI_Test(&mpi, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
  request = from_mpi(mpi);
}

}  // namespace altiplano::mpi
