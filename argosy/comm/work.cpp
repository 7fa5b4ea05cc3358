#include "argosy/comm/work.h"

#include <fmt/format.h>

#include "argosy/base/error.h"
#include "argosy/comm/operation.h"

namespace argosy::comm {

void Work::wait() const {
  if (!state_) {
    return;
  }
  state_->wait();
  if (const std::exception_ptr error = state_->error()) {
    std::rethrow_exception(error);
  }
}

void Work::wait(std::chrono::milliseconds timeout) const {
  if (state_ && !state_->wait_until(Deadline::after(timeout))) {
    throw TimeoutError(
        "comm.Work",
        fmt::format(
            "not finished after {} ms ({}). It continues until its own limit: wait again, or "
            "look for a rank that did not call it.",
            timeout.count(),
            state_->describe()));
  }
  wait();
}

bool Work::is_completed() const {
  return !state_ || state_->is_completed();
}

bool Work::is_success() const {
  return !state_ || (state_->is_completed() && !state_->error());
}

std::exception_ptr Work::exception() const {
  return state_ ? state_->error() : nullptr;
}

}  // namespace argosy::comm
