#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <mutex>
#include <set>
#include <string>

namespace argosy::rendezvous::wire {

/// Lets in who speaks our version and knows the job's token. Shared by all services of a job.
/// Thread-safe.
class Admission final {
 public:
  /// `where` stands in the log ("rendezvous.store"), `what` in the answer ("store").
  Admission(std::string where, std::string what, std::string token);

  /// Returns ok, or why the caller is refused. Logs a refusal once per host, for sixteen hosts at
  /// most, so a stranger cannot fill the log.
  [[nodiscard]] grpc::Status admit(const grpc::ServerContextBase& context) const;

 private:
  [[nodiscard]] grpc::Status examine(const grpc::ServerContextBase& context) const;
  void log_refusal(const std::string& peer, const std::string& why) const;

  const std::string where_;
  const std::string what_;
  const std::string token_;
  mutable std::mutex mutex_;
  mutable std::set<std::string> refused_{};
};

}  // namespace argosy::rendezvous::wire
