#include "argosy/transport/gloo/proven_pairs.h"

#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/loop.h>
#include <gloo/transport/tcp/pair.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"

namespace argosy::transport {
namespace {

namespace tcp = ::gloo::transport::tcp;

#if __has_include(<gloo/transport/tcp/socket.h>)  // a newer Gloo: its device listens, and no pair

/// Nothing is to be held: a pair takes nobody before it is told to connect.
struct LoopHold final {
  explicit LoopHold(const tcp::Device& /*device*/) {}
};

class ProvenPair final : public tcp::Pair {
 public:
  ProvenPair(tcp::Context& context,
             tcp::Device& device,
             int rank,
             std::chrono::milliseconds timeout,
             os::UniqueFd connection)
      : tcp::Pair(&context, &device, rank, timeout) {
    connectCallback(std::make_shared<tcp::Socket>(connection.release()), tcp::Error());
  }
};

#else

/// While it lives, Gloo's thread stands still and takes no caller.
class LoopHold final : public tcp::Handler {
 public:
  explicit LoopHold(tcp::Device& device)
      : device_(device), always_ready_(os::make_pipe().or_throw<Error>("transport.gloo")) {
    always_ready_.write.close();  // its end is news for ever
    device_.registerDescriptor(always_ready_.read.get(), EPOLLIN, this);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return holds_; });
  }
  ~LoopHold() override {
    {
      const std::lock_guard lock(mutex_);
      released_ = true;
      changed_.notify_all();
    }
    device_.unregisterDescriptor(always_ready_.read.get(), this);  // waits for Gloo's thread
  }
  LoopHold(const LoopHold&) = delete;
  LoopHold& operator=(const LoopHold&) = delete;

  void handleEvents(int /*events*/) override {
    std::unique_lock lock(mutex_);
    holds_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return released_; });
  }

 private:
  tcp::Device& device_;
  os::Pipe always_ready_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool holds_ = false;
  bool released_ = false;
};

class ProvenPair final : public tcp::Pair {
 public:
  /// Needs a LoopHold: until this has returned, Gloo's thread would take whoever calls.
  ProvenPair(tcp::Context& context,
             tcp::Device& device,
             int rank,
             std::chrono::milliseconds timeout,
             os::UniqueFd connection)
      : tcp::Pair(&context, &device, rank, timeout) {
    const std::lock_guard lock(m_);
    ARGOSY_INVARIANT(state_ == LISTENING, "transport.gloo");
    // No events, should a process that was forked just now keep the socket, and with it the entry.
    device.registerDescriptor(fd_, 0, this);
    ::close(fd_);  // the kernel resets its callers
    fd_ = connection.release();
    try {
      handleConnected();
    } catch (...) {
      // The destructor of a pair that listens would wait for Gloo's thread, which is held.
      ::close(std::exchange(fd_, -1));
      throw;
    }
  }
};

#endif

}  // namespace

void adopt(::gloo::transport::Device& device,
           ::gloo::transport::Context& context,
           std::vector<os::UniqueFd> connections) {
  auto& tcp_device = dynamic_cast<tcp::Device&>(device);
  auto& tcp_context = dynamic_cast<tcp::Context&>(context);
  const LoopHold hold(tcp_device);
  for (size_t rank = 0; rank < connections.size(); ++rank) {
    if (connections[rank]) {
      context.getPair(static_cast<int>(rank)) =
          std::make_unique<ProvenPair>(tcp_context,
                                       tcp_device,
                                       static_cast<int>(rank),
                                       context.getTimeout(),
                                       std::move(connections[rank]));
    }
  }
}

}  // namespace argosy::transport
