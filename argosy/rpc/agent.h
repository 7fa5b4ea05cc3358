#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/rendezvous/tls.h"
#include "argosy/rpc/codec.h"
#include "argosy/rpc/errors.h"
#include "argosy/rpc/functions.h"
#include "argosy/rpc/future.h"
#include "argosy/rpc/memory.h"

namespace argosy::rendezvous {
class Store;
}

namespace argosy::rpc {

/// A worker of the job: a process that calls functions of others and serves its own.
struct WorkerInfo {
  std::string name{};
  int rank = -1;
  std::string ip{};
  uint16_t port = 0;
};

/// Whom a call goes to, and how long it may take: "ps0", 3 (a rank), a WorkerInfo, or {"ps0",
/// 500ms}.
struct Target {
  // NOLINTBEGIN(google-explicit-constructor): a call says its target in place
  Target(std::string to, std::chrono::milliseconds limit = {})
      : name(std::move(to)), timeout(limit) {}
  Target(const char* to, std::chrono::milliseconds limit = {}) : name(to), timeout(limit) {}
  Target(int to, std::chrono::milliseconds limit = {}) : rank(to), timeout(limit) {}
  Target(const WorkerInfo& to, std::chrono::milliseconds limit = {})
      : rank(to.rank), timeout(limit) {}
  // NOLINTEND(google-explicit-constructor)

  std::string name{};
  int rank = -1;  ///< -1: the name says it
  /// From the call to the end of its answer. 0: AgentOptions::timeout.
  std::chrono::milliseconds timeout{};
};

struct AgentOptions {
  /// Unique in the job: at most 127 letters, digits and "_", ":", ".", "-". Empty: "worker<rank>".
  std::string name{};
  int rank = -1;        ///< -1: the environment says it, as the launcher sets it
  int world_size = -1;  ///< -1: the same
  /// "host:port" of rank 0, which hosts the store there. Empty: the environment says where all
  /// meet.
  std::string master_endpoint{};
  /// Of calls that say none. Each call has one. 0 or less: a day.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
  /// For all workers to come.
  std::chrono::milliseconds join_timeout = std::chrono::minutes(5);
  /// Threads that run functions for others. Default: PyTorch's.
  int num_worker_threads = 16;
  /// Calls that may wait for such a thread. What comes beyond is refused.
  size_t most_queued_calls = 10000;
  /// Of the values and memory of one call or answer.
  size_t largest_call_bytes = size_t{64} << 30;
  /// Of the memory that a worker shares with one other of its host, in each direction. What does
  /// not fit travels through the network stack. 0: none is shared.
  size_t shared_memory_bytes = size_t{4} << 30;
  /// A store in which the ranks of the job have met already; rank and world_size are then given
  /// too. nullptr: the agent joins the job itself.
  std::shared_ptr<rendezvous::Store> store{};
  std::string token{};          ///< with `store`: the job's
  rendezvous::TlsChoice tls{};  ///< with `store`: how calls are encrypted
};

/// The place of this process among the workers of a job: typed calls of their functions, and theirs
/// of ours. Only who knows the job's token may call.
///
///     rpc::Functions functions;
///     functions.serve("scale", [](std::vector<double> values, double by) {
///       for (double& value : values) value *= by;
///       return values;
///     });
///     rpc::Agent agent({}, functions);                        // waits until all workers are there
///     auto values = agent.call<std::vector<double>>("worker1", "scale", std::vector{1.0, 2.0}, 3.0);
///     rpc::Future<double> norm = agent.call_async<double>("worker1", "norm", values);
///     … norm.wait() …
///     agent.shutdown();                                       // waits until all are done
///
/// A call runs at most once: nothing is sent again. Arguments and results: see Codec. Thread-safe.
class Agent final {
 public:
  /// Joins the job. Blocks: until all workers have.
  /// Errors: RendezvousError, TimeoutError, ConfigError as rendezvous::join(); UsageError for a
  /// name that is malformed; RendezvousError for one that another worker has.
  explicit Agent(const AgentOptions& options, Functions functions = {});
  /// Leaves: calls of others that run end with an error, and so do ours.
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  Agent(Agent&&) = delete;
  Agent& operator=(Agent&&) = delete;

  /// Offers another function. Others may call it as soon as this returns.
  template <typename F>
  void serve(const std::string& name, F function, const ServeOptions& options = {}) {
    functions_.serve(name, std::move(function), options);
  }

  /// Calls a function of a worker and returns its result.
  ///
  /// Errors: RemoteError when the function threw. CallError otherwise, whose outcome() says whether
  /// it may have run: refused (no such function, other arguments, a wrong token, a worker that
  /// cannot be reached) or unknown (the worker died, which the message says, or the deadline
  /// passed). UsageError when there is no such worker.
  template <typename Result = void, typename... Arguments>
  Result call(const Target& to, const std::string& function, const Arguments&... arguments) {
    return call_async<Result>(to, function, arguments...).wait();
  }
  /// The same without waiting for the result. It blocks until the worker can be reached the first
  /// time.
  template <typename Result = void, typename... Arguments>
  [[nodiscard]] Future<Result> call_async(const Target& to,
                                          const std::string& function,
                                          const Arguments&... arguments) {
    return Future<Result>(start(to, function, pack(arguments...), false));
  }
  /// Calls a function that takes a Stream<T>, and returns what it puts there.
  template <typename T, typename... Arguments>
  [[nodiscard]] Incoming<T> stream(const Target& to,
                                   const std::string& function,
                                   const Arguments&... arguments) {
    return Incoming<T>(start(to, function, pack(arguments...), true));
  }
  /// Returns memory for an argument of a call to that worker, which reads it in place where both
  /// share a host.
  [[nodiscard]] Draft allocate(const Target& to, size_t bytes);

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] int rank() const;
  [[nodiscard]] int world_size() const;
  /// Errors: UsageError when no worker has the name, which lists those that there are.
  [[nodiscard]] WorkerInfo worker(const std::string& name);
  [[nodiscard]] WorkerInfo worker(int rank);
  [[nodiscard]] WorkerInfo worker() { return worker(rank()); }  ///< this process
  [[nodiscard]] std::vector<WorkerInfo> workers();
  /// True when the others had met before: this process takes the place of one that is gone. Their
  /// calls to its name reach it as soon as they know that.
  [[nodiscard]] bool rejoined() const;
  /// Says what became of a worker: "died (…)", "has left the job". "": nothing is known, so it
  /// lives, or it is gone and nobody knows yet. Looks for at most `patience`. Of one that is gone
  /// it says so once; then it speaks of the process that took its place, if there is one.
  [[nodiscard]] std::string fate_of(const Target& worker, std::chrono::milliseconds patience = {});
  /// The job's store, where the workers have met.
  [[nodiscard]] std::shared_ptr<rendezvous::Store> store() const;

  /// Waits until this worker's calls have ended and all workers have called it too, or have died;
  /// then leaves. Idempotent. Errors: TimeoutError naming the workers that did not come.
  void shutdown(std::chrono::milliseconds timeout = std::chrono::minutes(5));

 private:
  template <typename... Arguments>
  static Parcel pack(const Arguments&... arguments) {
    Parcel parcel;
    [[maybe_unused]] Writer writer(parcel);
    (Codec<Sent<Arguments>>::put(writer, arguments), ...);
    return parcel;
  }
  [[nodiscard]] std::shared_ptr<Pending> start(const Target& to,
                                               const std::string& function,
                                               Parcel arguments,
                                               bool stream);

  class Impl;
  Functions functions_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace argosy::rpc
