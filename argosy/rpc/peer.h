#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "argosy/base/deadline.h"
#include "argosy/rendezvous/tls.h"
#include "argosy/rpc/errors.h"
#include "argosy/rpc/future.h"
#include "argosy/rpc/memory.h"
#include "argosy/rpc/parcel.h"
#include "argosy/rpc/shared_line.h"

#include "rpc.pb.h"

namespace argosy::rpc {

class LaneCaller;

/// Who calls, and how.
struct CallerOptions {
  std::string name{};
  int rank = 0;
  std::string token{};
  rendezvous::Tls tls{};
  std::string neighbourhood{};     ///< of this process; empty: it shares no memory
  size_t shared_memory_bytes = 0;  ///< see SharedLine
  size_t largest_call_bytes = 0;
  /// Says in words what became of a worker: "died (…)"; empty: nothing is known. Asked when a call
  /// to it fails. `patience`: how long it may look.
  std::function<std::string(const wire::Card& card, std::chrono::milliseconds patience)>
      what_became_of{};
};

/// Another worker, as this one calls it. Thread-safe. Internal to the room.
class Peer final : public std::enable_shared_from_this<Peer> {
 public:
  Peer(wire::Card card, std::shared_ptr<const CallerOptions> options);

  [[nodiscard]] const wire::Card& card() const { return card_; }
  [[nodiscard]] const CallerOptions& options() const { return *options_; }
  /// "worker "ps0" (rank 0, node1 pid 4127)".
  [[nodiscard]] std::string described() const;

  enum class Kind { kOne, kStream };
  /// Sends the call. Blocks: until the worker can be reached, the first time.
  /// Errors: CallError, refused, when it cannot be; UsageError when the values are too large.
  [[nodiscard]] std::shared_ptr<Pending> start(const std::string& function,
                                               Parcel arguments,
                                               const Deadline& deadline,
                                               Kind kind);
  [[nodiscard]] Draft allocate(size_t bytes, const Deadline& deadline);

  /// Says what became of the process that has this card; "": nothing is known.
  [[nodiscard]] std::string fate(std::chrono::milliseconds patience) const;
  /// True when fate() has said something.
  [[nodiscard]] bool is_gone() const { return gone_; }
  /// Returns the error of a call to it.
  [[nodiscard]] std::exception_ptr error(const std::string& function,
                                         CallOutcome outcome,
                                         bool timeout,
                                         const std::string& what) const;

 private:
  class GrpcCall;

  void refuse_if_gone(const std::string& function);
  void connect(const std::string& function, const Deadline& deadline);
  /// By which a worker of this host is reached, beside gRPC.
  struct Shortcut {
    std::string id{};
    std::shared_ptr<SharedLine> line{};  ///< nullptr: no memory is shared
    std::shared_ptr<LaneCaller> lane{};  ///< nullptr: there is none
  };
  [[nodiscard]] Shortcut shortcut();
  void make_shortcut();

  const wire::Card card_;
  const std::shared_ptr<const CallerOptions> options_;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  mutable std::atomic<bool> gone_ = false;
  std::mutex mutex_;
  bool shortcut_tried_ = false;
  Shortcut shortcut_{};
};

}  // namespace argosy::rpc
