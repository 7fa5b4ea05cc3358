#include "argosy/launch/output.h"

#include <poll.h>

#include <algorithm>
#include <array>

#include "argosy/base/deadline.h"

namespace argosy::launch {

using namespace std::chrono_literals;

Output::Output(int out_fd, int err_fd) : out_(out_fd) {
  if (!same_target(out_fd, err_fd)) {
    own_err_.emplace(err_fd);
  }
}

bool Output::pending() const {
  return unsent() > 0;
}

size_t Output::unsent() const {
  return out_.unsent() + (own_err_ ? own_err_->unsent() : 0);
}

void Output::flush() {
  out_.flush();
  err().flush();
}

void Output::hand_over(std::chrono::milliseconds patience,
                       int wake_fd,
                       const std::function<bool()>& stop) {
  flush();
  Deadline deadline = Deadline::after(patience);
  while (pending() && !deadline.expired() && !stop()) {
    std::array<pollfd, 3> polls{{{wake_fd, POLLIN, 0}, {-1, POLLOUT, 0}, {-1, POLLOUT, 0}}};
    if (out_.unsent() > 0) {
      polls[1].fd = out_.poll_fd();
    }
    if (own_err_ && own_err_->unsent() > 0) {
      polls[2].fd = own_err_->poll_fd();
    }
    const auto step = std::min<std::chrono::milliseconds>(deadline.remaining(), 1h);
    (void)::poll(polls.data(), polls.size(), static_cast<int>(step.count()));
    const size_t before = unsent();
    flush();
    if (unsent() < before) {
      deadline = Deadline::after(patience);
    }
  }
}

}  // namespace argosy::launch
