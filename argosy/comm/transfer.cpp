/// Point to point: send, recv and their asynchronous forms.
#include "argosy/comm/call.h"
#include "argosy/comm/collectives.h"

namespace argosy::comm {
namespace {

using transport::Transfer;
using transport::Transport;

/// A transfer that is checked and ready to start.
struct Ready {
  GroupState& state;
  std::chrono::milliseconds timeout;
  OperationInfo info;
  GroupState::StartTransfer start;
  std::function<void()> finish;

  [[nodiscard]] Work submit() && {
    return state.submit_transfer(std::move(info), timeout, start, std::move(finish));
  }
  void run() && { state.run_transfer(std::move(info), timeout, start, finish); }
};

GroupState& checked_peer(std::string_view op,
                         int peer,
                         const Group& group,
                         const PeerOptions& options) {
  GroupState& state = usable(group, op);
  const std::string place = fmt::format("comm.{}", op);
  ARGOSY_CHECK(peer >= 0 && peer < state.size(),
               place,
               "peer {} is not in group \"{}\": expected 0 to {}",
               peer,
               state.options().name,
               state.size() - 1);
  ARGOSY_CHECK(peer != state.rank(), place, "peer {} is this rank itself. Copy the tensor.", peer);
  ARGOSY_CHECK(options.tag <= 0x7fffffffU,
               place,
               "tag {} is too large: expected 0 to 2147483647",
               options.tag);
  return state;
}

OperationInfo info_of(
    std::string_view op, const at::Tensor& tensor, const Buffer& buffer, int peer, uint32_t tag) {
  return {.op = op,
          .dtype = dtype_name(tensor),
          .elements = tensor.numel(),
          .bytes = buffer.bytes(),
          .peer = peer,
          .tag = tag};
}

Ready ready_send(std::string_view op,
                 const at::Tensor& tensor,
                 int peer,
                 const Group& group,
                 const PeerOptions& options) {
  GroupState& state = checked_peer(op, peer, group, options);
  const Buffer buffer = Buffer::to_read(op, tensor);
  return {state,
          options.timeout,
          info_of(op, tensor, buffer, peer, options.tag),
          [buffer, peer, tag = options.tag](Transport& transport) -> std::unique_ptr<Transfer> {
            return transport.send(buffer.data(), static_cast<size_t>(buffer.bytes()), peer, tag);
          },
          [buffer] { (void)buffer; }};  // keeps the memory until the transfer is over
}

Ready ready_recv(std::string_view op,
                 const at::Tensor& tensor,
                 int peer,
                 const Group& group,
                 const PeerOptions& options) {
  GroupState& state = checked_peer(op, peer, group, options);
  const Buffer buffer = Buffer::to_write(op, tensor);
  return {state,
          options.timeout,
          info_of(op, tensor, buffer, peer, options.tag),
          [buffer, peer, tag = options.tag](Transport& transport) -> std::unique_ptr<Transfer> {
            return transport.recv(buffer.data(), static_cast<size_t>(buffer.bytes()), peer, tag);
          },
          [buffer] { buffer.finish(); }};
}

}  // namespace

void send(const at::Tensor& tensor, int peer, const Group& group, const PeerOptions& options) {
  ready_send("send", tensor, peer, group, options).run();
}
void recv(const at::Tensor& tensor, int peer, const Group& group, const PeerOptions& options) {
  ready_recv("recv", tensor, peer, group, options).run();
}
Work isend(const at::Tensor& tensor, int peer, const Group& group, const PeerOptions& options) {
  return ready_send("isend", tensor, peer, group, options).submit();
}
Work irecv(const at::Tensor& tensor, int peer, const Group& group, const PeerOptions& options) {
  return ready_recv("irecv", tensor, peer, group, options).submit();
}

}  // namespace argosy::comm
