#pragma once

#include <string>
#include <utility>
#include <vector>

#include "argosy/rpc/agent.h"

/// The agent of this process, in the words of Paddle and PyTorch:
///
///     rpc::serve("add", [](double a, double b) { return a + b; });
///     rpc::init_rpc("worker0");                                   // argosy launch --run_mode rpc -n 2
///     double sum = rpc::rpc_sync<double>("worker1", "add", 2, 3);
///     rpc::Future<double> later = rpc::rpc_async<double>({"worker1", 500ms}, "add", 2, 3);
///     … later.wait() …
///     rpc::shutdown();
///
/// Programs that want no state of the process have an Agent of their own.
namespace argosy::rpc {

/// Joins the job under `name`, which is unique there. Functions that were served before are there
/// for the first call. What is left at the end of the process leaves the job then. Errors:
/// UsageError when it is called twice; those of Agent.
void init_rpc(const std::string& name = "", AgentOptions options = {});
/// True between init_rpc() and shutdown().
[[nodiscard]] bool is_initialized();
/// Returns the agent. Errors: UsageError without init_rpc(), or after shutdown().
[[nodiscard]] Agent& agent();
/// Returns the functions that this process serves.
[[nodiscard]] Functions& functions();

/// See Functions::serve(). Before or after init_rpc().
template <typename F>
void serve(const std::string& name, F function, const ServeOptions& options = {}) {
  functions().serve(name, std::move(function), options);
}

/// See Agent::call().
template <typename Result = void, typename... Arguments>
Result call(const Target& to, const std::string& function, const Arguments&... arguments) {
  return agent().call<Result>(to, function, arguments...);
}
template <typename Result = void, typename... Arguments>
Result rpc_sync(const Target& to, const std::string& function, const Arguments&... arguments) {
  return agent().call<Result>(to, function, arguments...);
}
/// See Agent::call_async().
template <typename Result = void, typename... Arguments>
[[nodiscard]] Future<Result> rpc_async(const Target& to,
                                       const std::string& function,
                                       const Arguments&... arguments) {
  return agent().call_async<Result>(to, function, arguments...);
}
/// See Agent::stream().
template <typename T, typename... Arguments>
[[nodiscard]] Incoming<T> stream(const Target& to,
                                 const std::string& function,
                                 const Arguments&... arguments) {
  return agent().stream<T>(to, function, arguments...);
}

[[nodiscard]] WorkerInfo get_worker_info(const std::string& name);
[[nodiscard]] WorkerInfo get_current_worker_info();
[[nodiscard]] std::vector<WorkerInfo> get_all_worker_infos();

/// See Agent::shutdown(). A worker that died is not waited for.
void shutdown(std::chrono::milliseconds timeout = std::chrono::minutes(5));

}  // namespace argosy::rpc
