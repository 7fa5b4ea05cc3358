#include "argosy/comm/family.h"

#include <algorithm>

#include "argosy/base/check.h"
#include "argosy/base/env.h"
#include "argosy/base/log.h"
#include "argosy/comm/failure.h"
#include "argosy/comm/group_state.h"

namespace argosy::comm {

Family::Family(int rank,
               const std::string& group,
               TransportFactory make_transport,
               TransportFactory make_device_transport,
               std::vector<int> hosts_of_world)
    : make_transport(std::move(make_transport)),
      make_device_transport(std::move(make_device_transport)),
      hosts(std::move(hosts_of_world)),
      recorder(std::make_shared<FlightRecorder>(
          rank, env::get("ARGOSY_LOG_DIR").value_or(std::string()), group)),
      hooks_(std::make_shared<const Hooks>(Hooks{recorder})) {}

void Family::add(std::shared_ptr<Hook> hook) {
  const std::lock_guard lock(mutex_);
  auto hooks = std::make_shared<Hooks>(*hooks_);
  hooks->push_back(std::move(hook));
  hooks_ = std::move(hooks);
}

void Family::remove(const std::shared_ptr<Hook>& hook) {
  const std::lock_guard lock(mutex_);
  auto hooks = std::make_shared<Hooks>(*hooks_);
  std::erase(*hooks, hook);
  hooks_ = std::move(hooks);
}

std::shared_ptr<const Family::Hooks> Family::hooks() const {
  const std::lock_guard lock(mutex_);
  return hooks_;
}

void Family::tell(void (Hook::*when)(const OperationEvent&), const OperationEvent& event) const {
  const std::shared_ptr<const Hooks> all = hooks();
  for (const std::shared_ptr<Hook>& hook : *all) {
    try {
      (hook.get()->*when)(event);
    } catch (...) {
      log::error("[comm.hook] a hook threw and was ignored: {}",
                 message_of(std::current_exception()));
    }
  }
}

void Family::note(Failure failure) {
  const std::lock_guard lock(mutex_);
  if (!failure_.has_value()) {
    failure_ = std::move(failure);
  }
}

std::optional<Family::Failure> Family::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::unique_ptr<transport::Transport> Family::meet(std::string_view op,
                                                   const TransportFactory& make,
                                                   const TransportRequest& request) {
  using Clock = std::chrono::steady_clock;
  OperationEvent event{.id = next_id(), .group = request.group, .op = op};
  event.enqueued = Clock::now();
  tell(&Hook::on_enqueued, event);
  event.started = Clock::now();
  tell(&Hook::on_started, event);
  std::unique_ptr<transport::Transport> transport;
  try {
    transport = make(request);
  } catch (const std::exception& e) {
    event.ended = Clock::now();
    event.error = e.what();
    tell(&Hook::on_ended, event);
    throw;
  }
  event.ended = Clock::now();
  tell(&Hook::on_ended, event);
  return transport;
}

void add_hook(const Group& group, std::shared_ptr<Hook> hook) {
  ARGOSY_CHECK(hook != nullptr, "comm.add_hook", "the hook is a null pointer");
  group.state().family().add(std::move(hook));
}

void remove_hook(const Group& group, const std::shared_ptr<Hook>& hook) {
  group.state().family().remove(hook);
}

}  // namespace argosy::comm
