#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "argosy/transport/watched_transport.h"

// Internal to the room.
namespace argosy::transport {

/// A transport that gives each collective to an object that knows it. `Self` provides
/// `reduction(deal, dtype, op, deadline)` and `movement(deadline)`. The objects that these return
/// have functions of the names below.
template <typename Self>
class ForwardingTransport : public WatchedTransport {
 protected:
  using WatchedTransport::WatchedTransport;

  void do_all_reduce(const TreeBuffers& buffers,
                     int64_t count,
                     DType dtype,
                     ReduceOp op,
                     const Deadline& deadline) final {
    self().reduction(buffers.deal, dtype, op, deadline).all_reduce(buffers, count);
  }
  void do_reduce(const TreeBuffers& buffers,
                 int64_t count,
                 DType dtype,
                 ReduceOp op,
                 int root,
                 const Deadline& deadline) final {
    self().reduction(buffers.deal, dtype, op, deadline).reduce(buffers, count, root);
  }
  void do_reduce_scatter(const TreeBuffers& buffers,
                         int64_t count,
                         DType dtype,
                         ReduceOp op,
                         const Deadline& deadline) final {
    self().reduction(buffers.deal, dtype, op, deadline).reduce_scatter(buffers, count);
  }
  void do_broadcast(void* data, int64_t bytes, int root, const Deadline& deadline) final {
    self().movement(deadline).broadcast(data, bytes, root);
  }
  void do_all_gather(const void* input,
                     void* output,
                     const Parts& parts,
                     const Deadline& deadline) final {
    self().movement(deadline).all_gather(input, output, parts);
  }
  void do_gather(
      const void* input, void* output, int64_t bytes, int root, const Deadline& deadline) final {
    self().movement(deadline).gather(input, output, bytes, root);
  }
  void do_scatter(
      const void* input, void* output, int64_t bytes, int root, const Deadline& deadline) final {
    self().movement(deadline).scatter(input, output, bytes, root);
  }
  void do_all_to_all(const void* input,
                     const Parts& sends,
                     void* output,
                     const Parts& receives,
                     const Deadline& deadline) final {
    self().movement(deadline).all_to_all(input, sends, output, receives);
  }
  void do_barrier(const Deadline& deadline) final { self().movement(deadline).barrier(); }

 private:
  Self& self() { return static_cast<Self&>(*this); }
};

/// What a transport opens while its ranks connect. Another thread may interrupt it before that.
template <typename T>
class Interruptible final {
 public:
  /// Returns false when interrupt() was called before.
  [[nodiscard]] bool open(std::shared_ptr<T> opened) {
    const std::lock_guard lock(mutex_);
    opened_ = std::move(opened);
    return !interrupted_;
  }
  /// Returns what is open; null before open().
  [[nodiscard]] std::shared_ptr<T> interrupt() {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
    return opened_;
  }
  /// The same for another thread than the one that opens it, without an interruption.
  [[nodiscard]] std::shared_ptr<T> look() {
    const std::lock_guard lock(mutex_);
    return opened_;
  }
  /// For the thread that called open().
  [[nodiscard]] const std::shared_ptr<T>& get() const { return opened_; }
  T* operator->() const { return opened_.get(); }
  T& operator*() const { return *opened_; }

 private:
  std::mutex mutex_;
  bool interrupted_ = false;
  std::shared_ptr<T> opened_;
};

}  // namespace argosy::transport
