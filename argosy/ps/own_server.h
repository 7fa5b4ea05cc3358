#pragma once

#include <atomic>
#include <future>
#include <thread>

#include "argosy/ps/table_server.h"
#include "argosy/rpc/agent.h"

namespace argosy::ps {

/// The only server of a job that is one process: a thread of it has the tables, so that a model
/// with rows trains and predicts without a launcher. The worker meets it by worker_options().
class OwnServer final {
 public:
  /// Begins to serve. `tables` stay. Errors: UsageError for options that cannot be.
  OwnServer(const TableSet& tables, const TableServerOptions& options, rpc::AgentOptions agent);
  /// Stops, also when no worker has said so. The worker's agent has ended before.
  ~OwnServer();
  OwnServer(const OwnServer&) = delete;
  OwnServer& operator=(const OwnServer&) = delete;
  OwnServer(OwnServer&&) = delete;
  OwnServer& operator=(OwnServer&&) = delete;

  /// The options of the worker's agent: where both meet.
  [[nodiscard]] const rpc::AgentOptions& worker_options() const { return worker_; }
  /// Returns when it answers requests. The worker's agent has been made before, and waits for this
  /// server's. Errors: why it does not, those of TableServer::run().
  void await_start();

 private:
  void run(const rpc::AgentOptions& options, const rpc::Functions& functions);

  TableServer server_;
  rpc::AgentOptions worker_;
  std::promise<void> started_{};
  std::atomic<bool> abandoned_ = false;  ///< the worker has not said that it is done
  std::thread thread_;
};

}  // namespace argosy::ps
