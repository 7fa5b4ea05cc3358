#pragma once

#include <future>
#include <utility>

#include <c10/core/Stream.h>

#include "tests/support/late_queue.h"
#include "tests/support/second_device.h"
#include "tests/support/stream_order.h"

namespace argosy::test {

/// A stream of the second device whose later work begins when the test says so.
class HeldStream final {
 public:
  explicit HeldStream(c10::Stream stream) {
    StreamOrder::of_process().submit(*static_cast<LateQueue*>(handle_of(stream)),
                                     [until = open_.get_future().share()] { until.wait(); },
                                     {});
  }
  ~HeldStream() { release(); }
  HeldStream(const HeldStream&) = delete;
  HeldStream& operator=(const HeldStream&) = delete;
  HeldStream(HeldStream&&) = delete;
  HeldStream& operator=(HeldStream&&) = delete;

  void release() {
    if (!std::exchange(released_, true)) {
      open_.set_value();
    }
  }

 private:
  std::promise<void> open_;
  bool released_ = false;
};

}  // namespace argosy::test
