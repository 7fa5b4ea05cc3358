#include "argosy/ps/own_server.h"

#include <chrono>
#include <exception>
#include <utility>

#include "argosy/base/log.h"
#include "argosy/os/random.h"
#include "argosy/ps/views.h"
#include "argosy/rendezvous/store.h"

namespace argosy::ps {

OwnServer::OwnServer(const TableSet& tables,
                     const TableServerOptions& options,
                     rpc::AgentOptions agent)
    : server_(tables, options), worker_(std::move(agent)) {
  worker_.store = rendezvous::in_process_store();
  worker_.token = os::random_hex(16);
  worker_.world_size = 2;
  rpc::AgentOptions own = worker_;
  own.name = options.servers.front();
  own.rank = 0;
  worker_.rank = 1;
  rpc::Functions functions;
  server_.serve(functions);
  thread_ = std::thread([this, own, functions] { run(own, functions); });
}

OwnServer::~OwnServer() {
  abandoned_ = true;  // unless the thread has ended
  try {
    Views(worker_.store).end();  // where the worker ended by an error
  } catch (const std::exception& error) {
    log::warn("[ps.server] {}", error.what());
  }
  thread_.join();
}

void OwnServer::await_start() {
  started_.get_future().get();
}

void OwnServer::run(const rpc::AgentOptions& options, const rpc::Functions& functions) {
  bool has_started = false;
  try {
    rpc::Agent agent(options, functions);
    (void)server_.run(agent, Deadline::never(), [&] {
      started_.set_value();
      has_started = true;
    });
    if (!abandoned_) {
      agent.shutdown();
    }
  } catch (const std::exception& error) {
    log::error("[ps.server] {}", error.what());
    if (!has_started) {
      started_.set_exception(std::current_exception());
    }
  }
}

}  // namespace argosy::ps
