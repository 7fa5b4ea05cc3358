#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/client_context.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "argosy/base/deadline.h"

#include "store.grpc.pb.h"

namespace argosy::rendezvous {

/// The client's end of one member's presence: a stream whose life is the member's.
///
/// Thread-safe.
/// Lifetime: gRPC's threads use it until end() has returned true, so only a PresenceStream::Ptr
/// owns it. Never destroy it *on* one of those threads: it holds the channel, and the last channel
/// that is destroyed joins them (gRPC 1.51).
class PresenceStream final
    : public grpc::ClientBidiReactor<wire::PresenceUpdate, wire::PresenceReply> {
 public:
  /// Ends the stream before it is deleted. A stream that does not end is leaked: gRPC still uses
  /// it.
  struct Ending {
    void operator()(PresenceStream* stream) const;
  };
  using Ptr = std::unique_ptr<PresenceStream, Ending>;

  /// `context` must carry protocol and token, and no deadline.
  PresenceStream(std::shared_ptr<wire::StoreService::Stub> stub,
                 std::unique_ptr<grpc::ClientContext> context);

  /// Starts the stream, and waits until the server took the member. A status that is not ok says
  /// why it did not.
  [[nodiscard]] grpc::Status open(const std::string& member, const Deadline& deadline);
  /// Sends the newest note: at once, or kNoteInterval after the last one.
  void note(std::string text);
  /// Sends the goodbye and waits until the server has it, the connection broke, or the deadline.
  void leave(std::string note, const Deadline& deadline);

 private:
  /// Cancels the stream unless it is over. True if gRPC is done with it.
  bool end(const Deadline& deadline);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;
  void on_timer();

  // Under the lock:
  void write_next();
  void write_later();

  const std::shared_ptr<wire::StoreService::Stub> stub_;
  const std::unique_ptr<grpc::ClientContext> context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool opened_ = false;
  bool taken_ = false;
  bool writing_ = false;
  bool over_ = false;  ///< no further write may start
  std::optional<grpc::Status> done_;
  std::optional<std::string> next_note_;
  std::optional<std::string> goodbye_;
  Deadline::Clock::time_point last_write_{};
  std::unique_ptr<grpc::Alarm> timer_;
  bool timer_set_ = false;
  wire::PresenceUpdate update_;
  wire::PresenceReply reply_;
};

}  // namespace argosy::rendezvous
