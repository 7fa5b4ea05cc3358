#include "argosy/comm/device_line.h"

#include <exception>
#include <mutex>
#include <utility>

#include "argosy/base/log.h"
#include "argosy/transport/device_queue.h"

namespace argosy::comm {

/// One operation, as the transport and the caller's thread tell of it. It ends when both are done
/// with it.
class DeviceLine::Course final : public transport::CollectiveListener {
 public:
  Course(DeviceLine& line, std::shared_ptr<Operation> operation)
      : line_(line), operation_(std::move(operation)) {}

  /// The caller's thread is done. Keeps the tensors of the operation, which is queued, until it
  /// ends. libtorch's allocator knows who uses its own memory; other memory may be freed as soon as
  /// its last tensor goes. `failure`: what went wrong behind the collective.
  void keep(Operation::Body body, std::exception_ptr failure = nullptr) {
    {
      const std::lock_guard lock(mutex_);
      failure_ = std::move(failure);
      body_ = std::move(body);
      if (!std::exchange(half_done_, true)) {
        return;
      }
    }
    end();
  }
  /// Of the caller's thread.
  [[nodiscard]] bool is_accepted() const { return accepted_; }
  void accepted() override { accepted_ = true; }
  void started() override { line_.listener_.started(*operation_); }
  void ended(std::exception_ptr error) override {
    {
      const std::lock_guard lock(mutex_);
      error_ = std::move(error);
      if (!std::exchange(half_done_, true)) {
        return;
      }
    }
    end();
  }

 private:
  void end() {
    body_ = nullptr;
    line_.listener_.ended(*operation_, error_ != nullptr ? error_ : failure_);
    // Under the lock: who waits may destroy the line as soon as it can take it.
    const std::lock_guard lock(line_.mutex_);
    --line_.queued_;
    line_.passed_.notify_all();
  }

  DeviceLine& line_;
  const std::shared_ptr<Operation> operation_;
  bool accepted_ = false;
  std::mutex mutex_;
  bool half_done_ = false;  // one of the two is done
  Operation::Body body_;
  std::exception_ptr failure_;
  std::exception_ptr error_;
};

DeviceLine::~DeviceLine() {
  try {
    close();
  } catch (const std::exception& e) {
    log::debug("[comm.DeviceLine] it did not close cleanly: {}", e.what());
  }
}

void DeviceLine::queue(const std::shared_ptr<Operation>& operation,
                       const std::function<void(Operation&)>& numbered) {
  const std::lock_guard in_order(order_);
  operation->seq = next_seq_++;
  numbered(*operation);
  {
    const std::lock_guard lock(mutex_);
    ++queued_;
  }
  transport_->set_place(operation->info.place);
  transport_->set_exact(operation->info.exact);
  const auto course = std::make_shared<Course>(*this, operation);
  transport_->listen(course);
  Operation::Body body = std::move(operation->body);
  try {
    body(*transport_, Deadline::after(operation->timeout));
  } catch (...) {
    transport_->listen(nullptr);
    if (course->is_accepted()) {  // what failed came behind the collective, which will end
      course->keep(std::move(body), std::current_exception());
      return;
    }
    const std::lock_guard lock(mutex_);
    --queued_;
    passed_.notify_all();
    throw;
  }
  std::exception_ptr failure;
  try {
    operation->set_end_on_device(transport_->queue()->mark());
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  course->keep(std::move(body), failure);
}

bool DeviceLine::drain(const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  return wait_until(passed_, lock, deadline, [this] { return queued_ == 0; });
}

void DeviceLine::close() {
  transport_->close();
}

}  // namespace argosy::comm
