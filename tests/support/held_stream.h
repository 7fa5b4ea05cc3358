#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <utility>

#include <c10/core/Stream.h>

#include "argosy/engine/gpu_runtime.h"

#include "tests/support/late_queue.h"
#include "tests/support/second_device.h"
#include "tests/support/stream_order.h"

namespace argosy::test {

/// A stream of the second device or of a GPU whose later work begins when the test says so, or
/// after half a minute: a test that waits for it by mistake fails, and does not hang. On a GPU run
/// everything once before: the first use of a kernel may wait for the whole device.
class HeldStream final {
 public:
  explicit HeldStream(c10::Stream stream) {
    const std::shared_future<void> until = open_.get_future().share();
    if (stream.device_type() == type_of_second_device()) {
      StreamOrder::of_process().submit(
          *static_cast<LateQueue*>(handle_of(stream)), [until] { wait_for(until); }, {});
    } else {
      hold_gpu(stream, until);
    }
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
  using Until = std::shared_future<void>;

  static void wait_for(const Until& until) { (void)until.wait_for(std::chrono::seconds(30)); }
  /// The driver calls a function in a thread of its own when the stream has come to it.
  static void hold_gpu(c10::Stream stream, const Until& until) {
    using Launch = int (*)(void* stream, void (*function)(void*), void* data);
    const auto launch = engine::gpu::loaded<Launch>(engine::gpu::is_rocm() ? "hipLaunchHostFunc"
                                                                           : "cudaLaunchHostFunc");
    auto data = std::make_unique<Until>(until);
    const auto wait = [](void* given) {
      const std::unique_ptr<Until> own(static_cast<Until*>(given));
      wait_for(*own);
    };
    if (launch == nullptr || launch(engine::gpu::handle_of(stream), wait, data.get()) != 0) {
      throw std::runtime_error("the stream cannot be held");
    }
    (void)data.release();  // the function's
  }

  std::promise<void> open_;
  bool released_ = false;
};

}  // namespace argosy::test
