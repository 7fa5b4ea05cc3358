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
  std::shared_ptr<DeviceLine> line{};

  [[nodiscard]] Work submit() && {
    return state.submit_transfer(std::move(info), timeout, start, std::move(finish), line.get());
  }
  void run() && {
    if (line != nullptr) {
      std::move(*this).submit().wait();
    } else {
      state.run_transfer(std::move(info), timeout, start, finish);
    }
  }
};

GroupState& checked_peer(std::string_view op,
                         int peer,
                         const Group& group,
                         const PeerOptions& options) {
  GroupState& state = usable(group, op);
  const std::string where = place(op);
  ARGOSY_CHECK(peer >= 0 && peer < state.size(),
               where,
               "peer {} is not in group \"{}\": expected 0 to {}",
               peer,
               state.options().name,
               state.size() - 1);
  ARGOSY_CHECK(peer != state.rank(), where, "peer {} is this rank itself. Copy the tensor.", peer);
  ARGOSY_CHECK(options.tag <= 0x7fffffffU,
               where,
               "tag {} is too large: expected 0 to 2147483647",
               options.tag);
  return state;
}

enum class Direction { kSend, kReceive };

Ready ready(Direction direction,
            const at::Tensor& tensor,
            int peer,
            const Group& group,
            const PeerOptions& options) {
  const bool sends = direction == Direction::kSend;
  const std::string_view op = sends ? "send" : "recv";
  GroupState& state = checked_peer(op, peer, group, options);
  // Messages on a device have no tags: those with one go through the host's memory.
  const Route route = options.tag == 0 ? route_of(state, tensor) : Route{};
  ARGOSY_CHECK(route.line == nullptr || sends || tensor.is_contiguous(),
               place(op),
               "what is received on a device must be contiguous, got sizes {}. Receive into a "
               "contiguous tensor, and copy.",
               shape_text(tensor));
  // Both closures hold it, so the memory lives until the transfer is over.
  const Buffer buffer = sends ? Buffer::to_read(op, tensor, route.medium)
                              : Buffer::to_write(op, tensor, route.medium);
  return {state,
          options.timeout,
          {.op = op,
           .dtype = dtype_name(tensor),
           .elements = tensor.numel(),
           .bytes = buffer.bytes(),
           .peer = peer,
           .tag = options.tag},
          [=, tag = options.tag](Transport& transport) -> std::unique_ptr<Transfer> {
            const auto bytes = static_cast<size_t>(buffer.bytes());
            return sends ? transport.send(buffer.data(), bytes, peer, tag)
                         : transport.recv(buffer.data(), bytes, peer, tag);
          },
          [=] {
            if (!sends) {
              buffer.finish();
            }
          },
          route.line};
}

}  // namespace

void send(const at::Tensor& tensor, int peer, const Group& group, const PeerOptions& options) {
  ready(Direction::kSend, tensor, peer, group, options).run();
}
void recv(const at::Tensor& tensor, int peer, const Group& group, const PeerOptions& options) {
  ready(Direction::kReceive, tensor, peer, group, options).run();
}
Work send_async(const at::Tensor& tensor,
                int peer,
                const Group& group,
                const PeerOptions& options) {
  return ready(Direction::kSend, tensor, peer, group, options).submit();
}
Work recv_async(const at::Tensor& tensor,
                int peer,
                const Group& group,
                const PeerOptions& options) {
  return ready(Direction::kReceive, tensor, peer, group, options).submit();
}

}  // namespace argosy::comm
