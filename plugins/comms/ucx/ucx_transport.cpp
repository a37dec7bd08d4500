#include "plugins/comms/ucx/ucx_transport.hpp"

#include <ucs/config/global_opts.h>

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/text.hpp"
#include "plugins/comms/ucx/ucx_devices.hpp"

namespace altiplano::ucx {
namespace {

using network::FrameArrival;
using network::Request;

constexpr uint64_t kData = uint64_t{1} << 63;
constexpr size_t kConnectsAll = 64;  // ranks: worlds up to this size connect all pairs at the start

uint64_t tag_of(int sender, uint32_t number) {
  return static_cast<uint64_t>(sender) << 32 | number;
}

Request request_of(ucs_status_ptr_t handle) {
  return {reinterpret_cast<uint64_t>(handle)};
}

void* handle_of(const Request& request) {
  return reinterpret_cast<void*>(request.word);
}

std::string to_hex(const void* bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += fmt::format("{:02x}", static_cast<const unsigned char*>(bytes)[i]);
  return text;
}

std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::strtoul(text.substr(i, 2).c_str(), nullptr, 16)));
  return bytes;
}

/// What a person may look at where UCX finds no way.
std::string about_devices() {
  std::vector<std::string> names = rdma_ports_of_this_host();
  for (const Interface& interface : interfaces_of_this_host()) names.push_back(interface.name);
  const char* wanted = std::getenv("UCX_NET_DEVICES");
  return fmt::format("UCX_NET_DEVICES is {}, this host has {}", wanted == nullptr ? "not set" : wanted,
                     join(names, ", "));
}

}  // namespace

Status status_of(ucs_status_t code, const std::string& what) {
  if (code == UCS_OK) return Status::ok();
  return runtime_failure("comm/ucx: {}: {}", what, ucs_status_string(code));
}

// ---- worker ----

Result<std::unique_ptr<Worker>> Worker::open(const std::vector<std::string>& devices) {
  // What goes wrong is told by the communicator; UCX would say on the console that ranks have ended.
  if (std::getenv("UCX_LOG_LEVEL") == nullptr) (void)ucs_global_opts_set_value("LOG_LEVEL", "fatal");
  std::unique_ptr<Worker> worker(new Worker);
  ucp_config_t* config = nullptr;
  ALTIPLANO_RETURN_IF_ERROR(status_of(ucp_config_read(nullptr, nullptr, &config), "read UCX_ variables"));
  if (!devices.empty()) (void)ucp_config_modify(config, "NET_DEVICES", join(devices, ",").c_str());
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_TAG;
  const ucs_status_t begun = ucp_init(&params, config, &worker->context_);
  ucp_config_release(config);
  ALTIPLANO_RETURN_IF_ERROR(status_of(begun, "start (" + about_devices() + ")"));
  ucp_worker_params_t worker_params{};
  worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker_params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ALTIPLANO_RETURN_IF_ERROR(
      status_of(ucp_worker_create(worker->context_, &worker_params, &worker->worker_), "make a worker"));
  return worker;
}

Worker::~Worker() {
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
}

Result<std::string> Worker::address() const {
  ucp_address_t* address = nullptr;
  size_t bytes = 0;
  ALTIPLANO_RETURN_IF_ERROR(status_of(ucp_worker_get_address(worker_, &address, &bytes), "get its address"));
  std::string text = to_hex(address, bytes);
  ucp_worker_release_address(worker_, address);
  return text;
}

// ---- endpoints ----

UcxTransport::UcxTransport(std::unique_ptr<Worker> worker, int rank, std::vector<std::string> addresses,
                           std::vector<std::string> names, std::string about)
    : worker_(std::move(worker)),
      rank_(rank),
      addresses_(std::move(addresses)),
      names_(std::move(names)),
      about_(std::move(about)),
      peers_(addresses_.size()) {
  for (size_t i = 0; i < peers_.size(); ++i) peers_[i] = {this, static_cast<int>(i)};
}

UcxTransport::~UcxTransport() {
  std::lock_guard lock(mutex_);
  close_endpoints(/*by_force=*/false);
}

void UcxTransport::stop() {
  close_endpoints(/*by_force=*/true);
}

/// Null: nothing is left to wait for.
void* UcxTransport::begin_close(ucp_ep_h endpoint, bool by_force) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = by_force ? UCP_EP_CLOSE_FLAG_FORCE : 0;
  void* request = ucp_ep_close_nbx(endpoint, &param);
  return request == nullptr || UCS_PTR_IS_ERR(request) ? nullptr : request;
}

/// All at once: each end needs the peer's answer, and ranks that took one after the other would wait for each other in
/// turn.
void UcxTransport::close_endpoints(bool by_force) {
  constexpr auto kLimit = std::chrono::seconds(1);
  std::vector<void*> requests;
  for (Peer& peer : peers_)
    if (peer.endpoint != nullptr)
      requests.push_back(begin_close(std::exchange(peer.endpoint, nullptr), by_force || peer.is_lost));
  std::erase(requests, nullptr);
  const auto is_open = [](void* request) { return ucp_request_check_status(request) == UCS_INPROGRESS; };
  const auto until = std::chrono::steady_clock::now() + kLimit;
  while (std::ranges::any_of(requests, is_open) && std::chrono::steady_clock::now() < until) progress();
  for (void* request : requests) ucp_request_free(request);
}

Status UcxTransport::connect() {
  if (peers_.size() > kConnectsAll) return Status::ok();
  std::lock_guard lock(mutex_);
  for (const Peer& peer : peers_)
    if (peer.rank != rank_) ALTIPLANO_RETURN_IF_ERROR(endpoint(peer.rank).status());
  return Status::ok();
}

Result<ucp_ep_h> UcxTransport::endpoint(int rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  if (peer.endpoint != nullptr) return peer.endpoint;
  const std::vector<std::byte> address = from_hex(addresses_[static_cast<size_t>(rank)]);
  ucp_ep_params_t params{};
  params.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {on_error, &peer};
  const ucs_status_t made = ucp_ep_create(worker_->get(), &params, &peer.endpoint);
  if (made == UCS_OK) return peer.endpoint;
  peer.endpoint = nullptr;
  return status_of(made, fmt::format("no way from {} to {} ({})", names_[static_cast<size_t>(rank_)],
                                     names_[static_cast<size_t>(rank)], about_devices()));
}

void UcxTransport::on_error(void* peer, ucp_ep_h /*endpoint*/, ucs_status_t status) {
  auto& lost = *static_cast<Peer*>(peer);
  if (lost.is_lost) return;
  lost.is_lost = true;
  lost.transport->losses_.push_back({lost.rank, fmt::format("its connection broke ({})", ucs_status_string(status))});
}

std::optional<network::Loss> UcxTransport::next_loss() {
  if (losses_.empty()) return std::nullopt;
  network::Loss loss = std::move(losses_.front());
  losses_.pop_front();
  return loss;
}

// ---- messages ----

Result<Request> UcxTransport::send(int peer, uint64_t tag, const std::byte* data, size_t bytes) {
  ALTIPLANO_ASSIGN(ucp_ep_h to, endpoint(peer));
  ucp_request_param_t param{};
  const ucs_status_ptr_t handle = ucp_tag_send_nbx(to, data, bytes, tag, &param);
  if (UCS_PTR_IS_ERR(handle)) return status_of(UCS_PTR_STATUS(handle), "send to " + names_[static_cast<size_t>(peer)]);
  return request_of(handle);
}

Result<Request> UcxTransport::send_frame(int peer, const std::byte* frame, size_t bytes) {
  return send(peer, tag_of(rank_, 0), frame, bytes);
}

Result<Request> UcxTransport::send_data(int peer, uint32_t number, const std::byte* data, int64_t bytes) {
  return send(peer, kData | tag_of(rank_, number), data, static_cast<size_t>(bytes));
}

Result<Request> UcxTransport::receive_frame(std::byte* to) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;  // the sender is asked of the request
  const ucs_status_ptr_t handle = ucp_tag_recv_nbx(worker_->get(), to, kFrameBytes, 0, kData, &param);
  if (UCS_PTR_IS_ERR(handle)) return status_of(UCS_PTR_STATUS(handle), "receive");
  return request_of(handle);
}

Result<Request> UcxTransport::receive_data(int peer, uint32_t number, std::byte* data, int64_t bytes) {
  ALTIPLANO_RETURN_IF_ERROR(endpoint(peer).status());  // it watches the peer
  ucp_request_param_t param{};
  const ucs_status_ptr_t handle = ucp_tag_recv_nbx(worker_->get(), data, static_cast<size_t>(bytes),
                                                   kData | tag_of(peer, number), ~uint64_t{0}, &param);
  if (UCS_PTR_IS_ERR(handle)) return status_of(UCS_PTR_STATUS(handle), "receive");
  return request_of(handle);
}

Result<bool> UcxTransport::test(Request& request) {
  if (request.word == 0) return true;
  const ucs_status_t status = ucp_request_check_status(handle_of(request));
  if (status == UCS_INPROGRESS) return false;
  ucp_request_free(handle_of(request));
  request.word = 0;
  ALTIPLANO_RETURN_IF_ERROR(status_of(status, "send or receive"));
  return true;
}

Result<std::optional<FrameArrival>> UcxTransport::test_frame(Request& request) {
  ucp_tag_recv_info_t info{};
  const ucs_status_t status = ucp_tag_recv_request_test(handle_of(request), &info);
  if (status == UCS_INPROGRESS) return std::optional<FrameArrival>();
  ucp_request_free(handle_of(request));
  request.word = 0;
  ALTIPLANO_RETURN_IF_ERROR(status_of(status, "receive"));
  return std::optional(FrameArrival{static_cast<int>(info.sender_tag >> 32)});
}

void UcxTransport::cancel(Request& request, std::chrono::milliseconds limit) {
  if (request.word == 0) return;
  ucp_request_cancel(worker_->get(), handle_of(request));
  const auto until = std::chrono::steady_clock::now() + limit;
  while (ucp_request_check_status(handle_of(request)) == UCS_INPROGRESS && std::chrono::steady_clock::now() < until)
    progress();
  ucp_request_free(handle_of(request));
  request.word = 0;
}

}  // namespace altiplano::ucx
