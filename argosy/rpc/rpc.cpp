#include "argosy/rpc/rpc.h"

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <mutex>

#include "argosy/base/check.h"

namespace argosy::rpc {
namespace {

/// The only state of the process in this room.
struct Process {
  std::mutex mutex;
  Functions functions;
  std::unique_ptr<Agent> agent;
};

/// Never destroyed: functions may be served by what outlives main().
Process& process() {
  static auto* const all = new Process;
  return *all;
}

std::unique_ptr<Agent> take_agent() {
  const std::lock_guard lock(process().mutex);
  return std::move(process().agent);
}

/// Registered when the first agent is there, so it runs before what gRPC has registered. A child
/// that was forked since shares the lanes of its parent, and has none of its threads.
void leave_at_exit() {
  static const pid_t owner = ::getpid();
  static const int registered = std::atexit([] {
    std::unique_ptr<Agent> agent = take_agent();
    if (::getpid() != owner) {
      (void)agent.release();
    }
  });
  (void)registered;
}

}  // namespace

void init_rpc(const std::string& name, AgentOptions options) {
  ARGOSY_CHECK(
      !is_initialized(), "rpc.init_rpc", "this process has joined already: shutdown() first");
  options.name = name.empty() ? options.name : name;
  auto agent = std::make_unique<Agent>(options, process().functions);
  leave_at_exit();
  const std::lock_guard lock(process().mutex);
  process().agent = std::move(agent);
}

bool is_initialized() {
  const std::lock_guard lock(process().mutex);
  return process().agent != nullptr;
}

Agent& agent() {
  const std::lock_guard lock(process().mutex);
  ARGOSY_CHECK(process().agent != nullptr,
               "rpc.agent",
               "this process has not joined the workers, or has left them: call init_rpc() first");
  return *process().agent;
}

Functions& functions() {
  return process().functions;
}

WorkerInfo get_worker_info(const std::string& name) {
  return agent().worker(name);
}
WorkerInfo get_current_worker_info() {
  return agent().worker();
}
std::vector<WorkerInfo> get_all_worker_infos() {
  return agent().workers();
}

void shutdown(std::chrono::milliseconds timeout) {
  agent().shutdown(timeout);
  take_agent().reset();
}

}  // namespace argosy::rpc
