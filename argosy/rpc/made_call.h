#pragma once

#include <grpcpp/support/status.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "argosy/base/deadline.h"
#include "argosy/rpc/future.h"
#include "argosy/rpc/message.h"
#include "argosy/rpc/parcel.h"
#include "argosy/rpc/peer.h"

#include "rpc.pb.h"

namespace argosy::rpc {

/// A call of another worker, whatever carries it: what came of it, and the error that says so.
/// Internal to the room.
class MadeCall : public Pending {
 public:
  MadeCall(std::shared_ptr<Peer> peer, std::string function, const Deadline& deadline)
      : peer_(std::move(peer)),
        function_(std::move(function)),
        deadline_(deadline),
        start_(Deadline::Clock::now()) {}

  bool wait(const Deadline& deadline) override;
  bool is_completed() const override;
  const Parcel& result() override;
  std::exception_ptr misread(const std::string& why) const final;

 protected:
  /// How a call ended that brought no answer of the function.
  struct NoAnswer {
    grpc::Status status{};
    bool refused = false;    ///< by the worker, whose words `status` has
    bool unread = false;     ///< the worker is gone and had not read the call
    bool cancelled = false;  ///< here
    std::string broken{};    ///< what is wrong with the answer
  };

  [[nodiscard]] Peer& peer() const { return *peer_; }
  [[nodiscard]] const Deadline& deadline() const { return deadline_; }
  /// Returns the request. Its memory is in `leaving`.
  [[nodiscard]] wire::Request request(Parcel& arguments, Leaving& leaving) const;

  // With the mutex.
  void end_with(Parcel value);
  void end_with(wire::Failure failure);
  void end_with(NoAnswer why);
  void end_stream() { end(); }
  /// Throws why there is no value. It lets go of the mutex for a while.
  void throw_if_failed(std::unique_lock<std::mutex>& lock);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Parcel> values_{};
  Offers offers_{};  ///< taken back when it ends
  bool ended_ = false;

 private:
  void end();
  [[nodiscard]] std::exception_ptr remote_error(const wire::Failure& failure) const;
  [[nodiscard]] std::exception_ptr error_of(const NoAnswer& why) const;

  const std::shared_ptr<Peer> peer_;
  const std::string function_;
  const Deadline deadline_;
  const Deadline::Clock::time_point start_;
  std::chrono::duration<double> took_{};
  std::optional<wire::Failure> thrown_{};
  std::optional<NoAnswer> unanswered_{};
  std::exception_ptr error_{};
};

}  // namespace argosy::rpc
