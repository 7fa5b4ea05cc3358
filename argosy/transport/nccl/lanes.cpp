#include "argosy/transport/nccl/lanes.h"

#include <fmt/format.h>
#include <pthread.h>

#include <utility>

#include "argosy/transport/link_errors.h"
#include "argosy/transport/nccl/own_fault.h"

namespace argosy::transport::nccl {

Lane::Lane(std::shared_ptr<const Library> library,
           std::unique_ptr<DeviceQueue> queue,
           const Lobby& lobby,
           int from,
           int to,
           int self,
           std::chrono::milliseconds timeout)
    : library_(library),
      queue_(std::move(queue)),
      lobby_(lobby),
      from_(from),
      to_(to),
      sends_(self == from),
      timeout_(timeout),
      communicator_(std::move(library)),
      thread_([this] { run(); }) {}

Lane::~Lane() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  Communicator::abort_together(library_, {&communicator_});
  thread_.join();
}

void Lane::give_up() noexcept {
  const std::lock_guard lock(mutex_);
  if (failure_ == nullptr) {
    failure_ = std::make_exception_ptr(LinkBroken{-1, "interrupted"});
  }
  changed_.notify_all();
}

void Lane::run() {
  pthread_setname_np(pthread_self(), "argosy-lane");
  try {
    const auto inside = or_own_fault([&] { return queue_->enter(); });
    communicator_.connect(lobby_,
                          {.key = fmt::format("nccl/{}-{}", from_, to_),
                           .rank = sends_ ? 0 : 1,
                           .size = 2,
                           .members = {from_, to_},
                           .enter = [this] { return queue_->enter(); }},
                          Deadline::after(timeout_));
    std::unique_lock lock(mutex_);
    connected_ = true;
    while (true) {
      changed_.wait(lock, [this] { return ends_ || (!waiting_.empty() && !queueing_); });
      if (ends_) {
        return;
      }
      const std::shared_ptr<Message> first = std::move(waiting_.front());
      waiting_.pop_front();
      queue(lock, *first);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = failure_ == nullptr ? std::current_exception() : failure_;
    waiting_.clear();
  }
  changed_.notify_all();
}

/// The lock is released while the library is called, which may wait for the other rank.
void Lane::queue(std::unique_lock<std::mutex>& lock, Message& message) {
  queueing_ = true;
  lock.unlock();
  std::shared_ptr<DeviceMark> done;
  std::exception_ptr failure;
  try {
    or_own_fault([&] {
      const Api& api = library_->api();
      const auto bytes = static_cast<size_t>(message.bytes);
      queue_->follow(*message.ready);
      communicator_.queue(
          sends_ ? "ncclSend" : "ncclRecv", Deadline::after(timeout_), [&](Comm comm) {
            void* const stream = queue_->handle();
            return sends_ ? api.send(message.data, bytes, DataType::kInt8, 1, comm, stream)
                          : api.recv(message.data, bytes, DataType::kInt8, 0, comm, stream);
          });
      done = queue_->mark();
    });
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  queueing_ = false;
  changed_.notify_all();
  if (failure != nullptr) {
    std::rethrow_exception(failure);
  }
  message.done = newest_ = std::move(done);
}

std::shared_ptr<Message> Lane::start(void* data, int64_t bytes) {
  auto message = std::make_shared<Message>(
      Message{.data = data, .bytes = bytes, .ready = or_own_fault([&] {
                                              return queue_->mark_of_caller();
                                            })});
  std::unique_lock lock(mutex_);
  if (failure_ != nullptr) {
    std::rethrow_exception(failure_);
  }
  if (connected_ && waiting_.empty() && !queueing_) {
    queue(lock, *message);
  } else {
    waiting_.push_back(message);
    changed_.notify_all();
  }
  return message;
}

bool Lane::is_busy() {
  const std::lock_guard lock(mutex_);
  try {
    return queueing_ || !waiting_.empty() || (newest_ != nullptr && !newest_->has_passed());
  } catch (const std::exception&) {  // a device that failed passes nothing more
    return true;
  }
}

std::shared_ptr<DeviceMark> Lane::wait_until_queued(const Message& message,
                                                    const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  const bool settled = wait_until(
      changed_, lock, deadline, [&] { return message.done != nullptr || failure_ != nullptr; });
  if (!settled) {
    throw LinkTimeout{{sends_ ? to_ : from_}};
  }
  if (message.done == nullptr) {
    std::rethrow_exception(failure_);
  }
  return message.done;
}

std::shared_ptr<Lane> Lanes::with(int peer, bool sends) {
  const std::lock_guard lock(mutex_);
  if (aborted_) {
    throw LinkBroken{peer, "the communicators were aborted"};
  }
  const int from = sends ? rank_ : peer;
  const int to = sends ? peer : rank_;
  auto lane = lanes_.find({from, to});
  if (lane == lanes_.end()) {
    auto made = std::make_shared<Lane>(library_, queues_.make(), lobby_, from, to, rank_, timeout_);
    lane = lanes_.emplace(std::pair(from, to), std::move(made)).first;
  }
  return lane->second;
}

std::vector<std::shared_ptr<Lane>> Lanes::stop() {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  std::vector<std::shared_ptr<Lane>> all;
  for (const auto& [direction, lane] : lanes_) {
    all.push_back(lane);
  }
  return all;
}

}  // namespace argosy::transport::nccl
